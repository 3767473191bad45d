"""The state of a run of Deep CFR: networks, memories, the first round's table and snapshots; its policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from deepcfr.config import RunConfig
from deepcfr.errors import CheckpointError, NoPolicy
from deepcfr.games.base import Game
from deepcfr.games.poker import poker_game
from deepcfr.memory.reservoir import (
    SavedState,
    SolverState,
    Stored,
    Tensors,
    load_weights,
    memory_arrays,
    restore_memories,
)
from deepcfr.parallel import Workers
from deepcfr.policies.base import Policy
from deepcfr.policies.first_round import FirstRound, WithFirstRound
from deepcfr.policies.network import AveragePolicy, RegretMatchingPolicy
from deepcfr.policies.snapshots import compact
from deepcfr.policies.styles import ThresholdPolicy
from deepcfr.rng import generator, key
from deepcfr.solvers.board_collector import BoardCollector
from deepcfr.solvers.collector import Collector, CurrentStrategy, Iterate, Outside, TraversalJob
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.histories import PLAYERS, HistoryCollector
from deepcfr.solvers.history_values import HistoryValues
from deepcfr.solvers.memories import Memories
from deepcfr.solvers.snapshots import Snapshots
from deepcfr.training.networks import SplitNetwork, build_network, count_parameters
from deepcfr.types import require_like


@dataclass
class DeepCFRState:
    """The state of a run, all that a checkpoint needs, and the policies that it holds.

    Every random stream is derived from (seed, purpose, iteration, player), so there is no generator state to save.
    """

    game: Game
    config: RunConfig
    outside: Outside | None = None  # other processes that run the traversals; None: threads of this process
    iteration: int = 0
    fits: list[int] = field(init=False, default_factory=lambda: [0, 0])  # of each V_p in this process
    nodes_touched: int = 0
    average_iteration: int = 0  # the iteration whose memory the average network was fitted to; 0 if there is none
    advantage_networks: list[SplitNetwork] = field(init=False)  # V_p of each player p
    sum_networks: list[SplitNetwork] = field(init=False)  # of each player, where V_p predicts the next sums
    average_network: SplitNetwork | None = field(init=False, default=None)  # Pi
    table: FirstRoundTable | None = field(init=False)  # of the first betting round, if networks do not play it
    collector: Collector = field(init=False)  # runs traversals
    values: HistoryValues | None = field(init=False)  # of histories, if advantages are estimated with them
    snapshots: Snapshots = field(init=False)
    workers: Workers = field(init=False)

    def __post_init__(self) -> None:
        self.advantage_networks = [self._new_network("advantage", player).zero_() for player in PLAYERS]
        predicted = PLAYERS if self.config.advantage.target == "predict" else ()
        self.sum_networks = [self._new_network("sums", player).zero_() for player in predicted]
        cfr, sampling, game = self.config.cfr, self.config.sampling, self.game
        target = self.config.advantage.target
        if self.config.advantage.pot_units:
            poker_game(game)
        on_cores = game.device == "cpu" or sampling.kind == "public-chance"  # boards are swept by the processor
        self.workers = Workers(self.config.runtime.threads if on_cores else 1)
        self.table = FirstRoundTable(poker_game(game), cfr, target) if cfr.first_round == "table" else None
        self.values = HistoryValues(game, self.config) if self.config.has_values else None
        self.snapshots = Snapshots(game, self.config)
        elsewhere = self._elsewhere if self.outside else None
        if sampling.kind == "public-chance":
            self.collector = BoardCollector(poker_game(game), self.config, self.table, self.workers, elsewhere)
        else:
            self.collector = HistoryCollector(game, self.config, self.workers, elsewhere)

    @property
    def memories(self) -> Memories:
        """M_p of advantages for each player p, and M_Pi of strategies."""
        return self.collector.memories

    def first_round_strategy(self) -> FirstRound | None:
        """sigma^t in the first betting round where a table plays it, else None."""
        return self.table.strategy() if self.table else None

    def current(self) -> CurrentStrategy:
        """sigma^t, from the networks and the table as they are."""
        fit, networks = self.config.advantage, (self.advantage_networks[0], self.advantage_networks[1])
        compressed = self.memories.compression(fit) > 0
        matching = RegretMatchingPolicy(self.game, networks, self.config.cfr.fallback, fit.pot_units, compressed)
        return CurrentStrategy(matching, self.first_round_strategy(), self.values)

    def _elsewhere(self, job: TraversalJob, pieces: Iterable[Any]) -> Iterator[Any]:
        assert self.outside
        return self.outside.run(job, self.iterate(), pieces)

    def iterate(self) -> Iterate:
        """The part of the state that traversals read, for processes that run some of them."""
        networks = [*self.advantage_networks, *([self.values.network] if self.values else [])]
        return Iterate(
            [{name: weight.cpu().numpy() for name, weight in network.state_dict().items()} for network in networks],
            (self.fits[0], self.fits[1]),
            self.table.regret.copy() if self.table else None,  # these traversals add to it
            self.values is not None and self.values.fitted,
        )

    def follow(self, iterate: Iterate) -> None:
        """Copy the `iterate` of a run of equal configuration in another process."""
        for player in PLAYERS:
            if self.fits[player] != iterate.fits[player]:
                self.collector.changed(player)
        self.fits = list(iterate.fits)
        networks = [*self.advantage_networks, *([self.values.network] if self.values else [])]
        for network, weights in zip(networks, iterate.weights, strict=True):
            network.load_state_dict({name: torch.tensor(weight) for name, weight in weights.items()})
        if self.table:
            self.table.regret[:] = iterate.regret
        if self.values:
            self.values.fitted = iterate.has_values

    def current_policy(self) -> Policy:
        """The strategy of the newest iteration as a policy."""
        return self.current().policy()

    def average_policy(self) -> Policy:
        """The average strategy as a policy, without its rare actions; `fit_average` must have run."""
        assert self.average_network is not None
        policy: Policy = AveragePolicy(self.game, self.average_network)
        if self.config.cfr.average_threshold:
            policy = ThresholdPolicy(policy, self.config.cfr.average_threshold)
        return WithFirstRound(policy, self.table.average_strategy()) if self.table else policy

    def sd_cfr_policy(self) -> Policy:
        """The exact average of the snapshots. Raises NoPolicy if there are none."""
        return self.snapshots.sd_cfr_policy()

    def policy(self, name: str) -> Policy:
        """The strategy with the given name; names and errors as in `Solver.policy`."""
        if name == "current":
            return self.current_policy()
        if name == "sd-cfr":
            return self.sd_cfr_policy()
        if self.average_network is None:
            raise NoPolicy(
                "has no average-strategy network yet: 'deepcfr resume {run}' fits one at its end, and --policy current "
                "uses the newest iteration's strategy."
            )
        return self.average_policy()

    def describe(self) -> str:
        """One line that describes the run: algorithm, game and sizes."""
        sampling = self.config.sampling
        if sampling.kind == "public-chance":
            sampled = f"about {sampling.boards:,} boards"
        else:
            sampled = f"{sampling.traversals:,} traversals, {sampling.kind} sampling"
        return (
            f"{self.config.method} on {self.game.name}: {self.config.cfr.iterations:,} iterations of {sampled}, "
            f"networks of {count_parameters(self.advantage_networks[0]):,} parameters, seed {self.config.seed}"
        )

    def seconds_per_iteration(self) -> None:
        """None: unknown before an iteration has run."""

    def state(self, memories: bool) -> SolverState:
        """The state that a checkpoint stores; without `memories` it can be played but not trained.

        The weights of networks are then in the form of `compact`, as those of snapshots.
        """
        networks = {"advantage-0": self.advantage_networks[0], "advantage-1": self.advantage_networks[1]}
        if self.average_network is not None:
            networks["average"] = self.average_network
        if memories:
            networks |= self._learners()
        weights = {
            f"{name}.{key}": tensor.cpu().contiguous()
            for name, network in networks.items()
            for key, tensor in (network.state_dict() if memories else compact(network)).items()
        }
        kept = self._stored() if memories else []
        facts = {
            "solver": "deep-cfr",
            "game": self.game.name,
            "iteration": self.iteration,
            "nodes_touched": self.nodes_touched,
            "memories": {name: memory.seen for name, memory in kept},
            "average_iteration": self.average_iteration,
        }
        return SolverState(facts, weights | self.snapshots.tensors() | self._tables(), memory_arrays(kept))

    def restore(self, saved: SavedState, memories: bool) -> None:
        """Restore the result of `state`; without `memories` only what play needs.

        Raises CheckpointError if the state has other tables or memories than the configuration asks for.
        """
        tables = {name for name in saved.tensors if name.startswith("first-round")}
        stored = {name for name, _ in self._stored()}
        if tables != set(self._tables()) or (memories and stored != set(saved.facts["memories"])):
            raise CheckpointError(
                "It was written with another cfr.first_round or kind of sampling than the run's config.toml has."
            )
        self.iteration, self.nodes_touched = int(saved.facts["iteration"]), int(saved.facts["nodes_touched"])
        self.average_iteration = int(saved.facts["average_iteration"])
        for player in PLAYERS:
            load_weights(self.advantage_networks[player], saved.part(f"advantage-{player}."), f"advantage-{player}.")
        if average := saved.part("average."):
            self.average_network = self.new_average_network()
            load_weights(self.average_network, average, "average.")
        self.snapshots.restore(saved, self.first_round_strategy())
        for name, table in self._tables().items():
            require_like(name, saved.tensors[name], table)
            table.copy_(saved.tensors[name])
        if memories:
            for name, network in self._learners().items():
                load_weights(network, saved.part(f"{name}."), f"{name}.")
        if self.values:
            self.values.fitted = memories and self.iteration > 0
        restore_memories(self._stored() if memories else [], saved)

    def memory_bytes(self, memories: bool) -> int:
        """Bytes of the large arrays of `state`, without copying anything from a device."""
        kept = self._stored() if memories else []
        return sum(memory.nbytes for _, memory in kept) + self.snapshots.nbytes

    def thin(self, keep_networks: int) -> None:
        """Keep every `keep_networks`-th snapshot, counted back from the newest, or none if it is 0."""
        self.snapshots.thin(keep_networks)

    def close(self) -> None:
        """End the processes that this one started."""
        if self.outside:
            self.outside.close()

    def _stored(self) -> list[tuple[str, Stored]]:
        """All memories with their names in a checkpoint."""
        return [*self.memories.named(), *([("values", self.values.memory)] if self.values else [])]

    def _learners(self) -> dict[str, SplitNetwork]:
        """Networks that only training reads, with their names in a checkpoint."""
        values = {"values": self.values.network} if self.values else {}
        return {f"sums-{player}": network for player, network in enumerate(self.sum_networks)} | values

    def _tables(self) -> Tensors:
        """The first round's table, if there is one, in the solver's own memory."""
        arrays = self.table.arrays() if self.table else {}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def new_average_network(self) -> SplitNetwork:
        """An average-strategy network with this iteration's random weights."""
        return self._new_network("average", self.iteration)

    def _new_network(self, *purpose: str | int) -> SplitNetwork:
        return build_network(self.game.encoding, self.config.network, generator(self._stream("network", *purpose)))

    def _stream(self, *purpose: str | int) -> int:
        return key(self.config.seed, *purpose)
