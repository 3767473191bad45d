"""Deep Counterfactual Regret Minimization (Brown, Lerer, Gross and Sandholm, ICML 2019), Algorithm 1."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import torch

from deepcfr.config import FitConfig, RunConfig
from deepcfr.core.errors import CheckpointError, NoPolicy
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import generator, key
from deepcfr.core.types import Doubles, require_like
from deepcfr.game.base import Game
from deepcfr.game.poker import poker_game
from deepcfr.network.examples import WEIGHTS, Examples, InfosetExamples
from deepcfr.network.fit import FitResult, fit
from deepcfr.network.memory import Store, bytes_per_sample
from deepcfr.network.networks import SplitNetwork, build_network, count_parameters
from deepcfr.policy.base import Policy
from deepcfr.policy.network import AveragePolicy, FirstRound, RegretMatchingPolicy, WithFirstRound
from deepcfr.policy.styles import ThresholdPolicy
from deepcfr.solve.base import (
    PLAYERS,
    Array,
    SavedState,
    Solver,
    SolverState,
    Tensors,
    load_weights,
    memory_arrays,
    restore_memories,
)
from deepcfr.solve.data import (
    BoardCollector,
    HistoryCollector,
    HistoryValues,
    IterationRecord,
    TraversalJob,
    history_encoding,
    played,
)
from deepcfr.solve.first_round import FirstRoundTable, bootstrapped, kept_share
from deepcfr.solve.memories import memory_bytes, new_memories, without_memories
from deepcfr.solve.snapshots import Snapshots, compact

NO_FIT = FitResult(loss=0.0, steps=0, seconds=0.0, examples=0)


class DeepCFR(Solver):
    """A run of Deep CFR: iterate over `iterations()` to advance it.

    Every random stream is derived from (seed, purpose, iteration, player), so there is no generator state to save.
    """

    average_iteration = 0  # the iteration whose memory the average network was fitted to; 0 if there is none

    def __init__(self, game: Game, config: RunConfig, outside: Outside | None = None) -> None:
        """Start a run; `outside` are other processes that run the traversals, by default threads of this one do."""
        self.game, self.config, self.outside = game, config, outside
        if config.advantage.units == "pots":
            poker_game(game)
        self.advantage_networks = [self._new_network("advantage", player).zero_() for player in PLAYERS]  # V_p
        predicted = PLAYERS if config.advantage.target == "predict" else ()
        self.sum_networks = [self._new_network("sums", player).zero_() for player in predicted]  # where V_p predicts
        self.average_network: SplitNetwork | None = None  # Pi
        self.fits = [0, 0]  # of each V_p in this process
        self.memories = new_memories(game, config)  # M_p of advantages, and M_Pi of strategies
        of_table = config.cfr.first_round == "table"
        self.table = FirstRoundTable(poker_game(game), config.cfr, config.advantage.target) if of_table else None
        self.values = HistoryValues(game, config) if config.has_values else None  # advantages are estimated with them
        self.snapshots = Snapshots(game, config)
        on_cores = game.device == "cpu" or config.sampling.kind == "public-chance"  # boards are swept by the processor
        self.workers = Workers(config.runtime.threads if on_cores else 1)
        elsewhere = self._elsewhere if outside else None
        self.collector = (
            BoardCollector(poker_game(game), config, self.workers, elsewhere)
            if config.sampling.kind == "public-chance"
            else HistoryCollector(game, config, self.values, self.workers, elsewhere)
        )

    def iterations(self) -> Iterator[IterationRecord]:
        """Algorithm 1 from where the state is up to the configured number of iterations; `fit_average` is its last line."""
        for t in range(self.iteration + 1, self.config.iterations + 1):
            record, start = IterationRecord(t), time.perf_counter()
            if self.snapshots.is_due(t):
                self.snapshots.keep(t, self.advantage_networks, self.first_round_strategy())
            for player in PLAYERS:
                if self.values and self.values.come_first:
                    for found in self.traverse(t, player, "values"):  # histories of their own
                        self.values.add(found)
                        record.add(found)
                    record.fit(self.values.fit, t, player, self.workers)
                for found in self.traverse(t, player):  # Algorithm 2, some at a time
                    self.memories.add(player, found)  # advantages to M_p, strategies to M_Pi
                    if self.table:
                        self.table.add(player, t, found)
                    if self.values and not self.values.come_first:
                        self.values.add(found)
                    record.add(found)
                loss = record.fit(self.fit_advantages, t, player).loss  # of V_p, which the next player meets
                record.advantage_loss = (*record.advantage_loss, loss)
                if self.values and not self.values.come_first:
                    record.fit(self.values.fit, t, player, self.workers)
            self.iteration = t
            self.nodes_touched += record.nodes_touched
            record.end(start, self.memories)
            yield record

    def traverse(self, t: int, player: int, purpose: str = "") -> Iterator[Any]:
        """One player's traversals of iteration t with sigma^t, some at a time (Algorithm 2)."""
        return self.collector.traverse(TraversalJob(t, player, purpose), self.matching(), self.first_round_strategy())

    def fit_advantages(self, t: int, player: int) -> FitResult:
        """Fit the advantage network V_p to M_p, from scratch as in Algorithm 1 or from its last weights."""
        config = self.config.advantage
        examples = self.memories.advantage_examples(player, WEIGHTS[self.config.cfr.weighting], t, config)
        if not len(examples):
            return NO_FIT  # the player has never had to act; its network stays as it is
        if not config.bootstrapped:
            return self._fit_one_of(self.advantage_networks, "advantage", t, player, examples)
        assert isinstance(examples, InfosetExamples)
        return self._fit_sums(t, player, examples)

    def _fit_sums(self, t: int, player: int, examples: InfosetExamples) -> FitResult:
        """Fit the network that keeps a player's sums, and one that predicts the next sums if that is what is played."""
        weighting, sampled, signed = self.config.cfr.weighting, examples.targets, self.config.advantage.target == "sum"
        sums = self.sum_networks or self.advantage_networks
        examples.targets = bootstrapped(examples, sums[player], kept_share(t, weighting), signed)
        result = self._fit_one_of(sums, "advantage", t, player, examples)
        if self.sum_networks:
            examples.targets = sampled  # the next iteration's samples may be like these
            examples.targets = bootstrapped(examples, sums[player], kept_share(t + 1, weighting))
            result += self._fit_one_of(self.advantage_networks, "prediction", t, player, examples)
        examples.memory.clear()  # the networks have the sums of all iterations
        return result

    def _fit_one_of(
        self, networks: list[SplitNetwork], purpose: str, t: int, player: int, examples: Examples
    ) -> FitResult:
        """Fit a player's network in `networks`; other purposes have random streams of their own."""
        config = self.config.advantage
        if config.refit == "scratch" or networks[player].is_zero():
            networks[player] = self._new_network(purpose, t, player)
        elif config.bootstrapped:  # where no sample corrects it, the network keeps its sums
            networks[player].keep_outputs_in(examples.scale())
        self.collector.changed(player)
        self.fits[player] += 1
        return fit(networks[player], examples, config, self._stream(f"{purpose} fit", t, player), self.workers)

    def fit_average(self, config: FitConfig | None = None) -> FitResult:
        """Fit the average-strategy network Pi to M_Pi as it is now (Algorithm 1, last line).

        `config` replaces the run's own settings of this fit.
        """
        t, config = self.iteration, config or self.config.average
        examples = self.memories.strategy_examples(WEIGHTS[self.config.cfr.of_averages], t, config)
        if not len(examples):
            self.average_network = self._new_network("average", t).zero_()
            return NO_FIT
        self.average_network = self._new_network("average", t)
        self.average_iteration = t
        return fit(self.average_network, examples, config, self._stream("average fit", t), self.workers)

    def matching(self) -> RegretMatchingPolicy:
        """Regret matching on the advantage networks as they are."""
        fit, networks = self.config.advantage, (self.advantage_networks[0], self.advantage_networks[1])
        sampling = self.config.sampling
        compressed = fit.units == "log" and sampling.on_panel
        return RegretMatchingPolicy(self.game, networks, self.config.cfr.fallback, fit.units == "pots", compressed)

    def first_round_strategy(self) -> FirstRound | None:
        """sigma^t in the first betting round where a table plays it, else None."""
        return self.table.strategy() if self.table else None

    def current_policy(self) -> Policy:
        return played(self.matching(), self.first_round_strategy())

    def average_policy(self) -> Policy:
        """The average strategy, without its rare actions. Raises NoPolicy before `fit_average`."""
        if self.average_network is None:
            raise NoPolicy(
                "has no average-strategy network yet: 'deepcfr resume {run}' fits one at its end, and --policy current "
                "uses the newest iteration's strategy."
            )
        policy: Policy = AveragePolicy(self.game, self.average_network)
        if threshold := self.config.evaluation.threshold:
            policy = ThresholdPolicy(policy, threshold)
        return WithFirstRound(policy, self.table.average_strategy()) if self.table else policy

    def policy(self, name: str) -> Policy:
        return self.snapshots.sd_cfr_policy() if name == "sd-cfr" else super().policy(name)

    def describe(self) -> str:
        sampling = self.config.sampling
        if sampling.kind == "public-chance":
            sampled = f"about {sampling.boards:,} boards"
        else:
            sampled = f"{sampling.traversals:,} traversals, {sampling.kind} sampling"
        return (
            f"{self.config.method} on {self.game.name}: {self.config.iterations:,} iterations of {sampled}, "
            f"networks of {count_parameters(self.advantage_networks[0]):,} parameters, seed {self.config.seed}"
        )

    @staticmethod
    def memory_bytes(game: Game, config: RunConfig) -> int:
        values = config.values.capacity * bytes_per_sample(history_encoding(game)) if config.has_values else 0
        return memory_bytes(game, config) + values

    def state(self, memories: bool) -> SolverState:
        """As in `Solver`; without `memories` the weights of networks are in the form of `compact`, as of snapshots."""
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
        kept = self._stores() if memories else {}
        facts = self._facts("deep-cfr", {name: memory.seen for name, memory in kept.items()})
        facts["average_iteration"] = self.average_iteration
        return SolverState(facts, weights | self.snapshots.tensors() | self._tables(), memory_arrays(kept))

    def restore(self, saved: SavedState, memories: bool) -> None:
        """Restore the result of `state`; without `memories` only what play needs.

        Raises CheckpointError if the state has other tables or memories than the configuration asks for.
        """
        tables = {name for name in saved.tensors if name.startswith("first-round")}
        if tables != set(self._tables()) or (memories and self._stores().keys() != saved.facts["memories"].keys()):
            raise CheckpointError(
                "It was written with another cfr.first_round or kind of sampling than the run's config.toml has."
            )
        self._restore_facts(saved)
        self.average_iteration = int(saved.facts["average_iteration"])
        for player in PLAYERS:
            load_weights(self.advantage_networks[player], saved.part(f"advantage-{player}."), f"advantage-{player}.")
        if average := saved.part("average."):
            self.average_network = self._new_network("average", self.iteration)
            load_weights(self.average_network, average, "average.")
        self.snapshots.restore(saved, self.first_round_strategy())
        for name, table in self._tables().items():
            require_like(name, saved.tensors[name], table)
            table.copy_(saved.tensors[name])
        if memories:
            for name, network in self._learners().items():
                load_weights(network, saved.part(f"{name}."), f"{name}.")
            restore_memories(self._stores(), saved)
        if self.values:
            self.values.fitted = memories and self.iteration > 0

    def state_bytes(self, memories: bool) -> int:
        kept = self._stores() if memories else {}
        return sum(memory.nbytes for memory in kept.values()) + self.snapshots.nbytes

    def thin(self, keep_networks: int) -> None:
        self.snapshots.thin(keep_networks)

    def close(self) -> None:
        if self.outside:
            self.outside.close()

    def _stores(self) -> dict[str, Store]:
        """All memories by their names in a checkpoint."""
        return self.memories.stores | ({"values": self.values.memory} if self.values else {})

    def _learners(self) -> dict[str, SplitNetwork]:
        """Networks that only training reads, with their names in a checkpoint."""
        values = {"values": self.values.network} if self.values else {}
        return {f"sums-{player}": network for player, network in enumerate(self.sum_networks)} | values

    def _tables(self) -> Tensors:
        """The first round's table, if there is one, in the solver's own memory."""
        arrays = self.table.arrays() if self.table else {}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def _new_network(self, *purpose: str | int) -> SplitNetwork:
        return build_network(self.game.encoding, self.config.network, generator(self._stream("network", *purpose)))

    def _stream(self, *purpose: str | int) -> int:
        return key(self.config.seed, *purpose)

    def _elsewhere(self, job: TraversalJob, pieces: Iterable[Any]) -> Iterator[Any]:
        assert self.outside
        return self.outside.run(job, self.iterate(), pieces)

    def iterate(self) -> Iterate:
        """The part of the state that traversals read, for processes that run some of them."""
        return Iterate(
            [
                {name: weight.cpu().numpy() for name, weight in network.state_dict().items()}
                for network in self._read_by_traversals()
            ],
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
        for network, weights in zip(self._read_by_traversals(), iterate.weights, strict=True):
            network.load_state_dict({name: torch.tensor(weight) for name, weight in weights.items()})
        if self.table:
            self.table.regret[:] = iterate.regret
        if self.values:
            self.values.fitted = iterate.has_values

    def _read_by_traversals(self) -> list[SplitNetwork]:
        return [*self.advantage_networks, *([self.values.network] if self.values else [])]


class Iterate(NamedTuple):
    """All that traversals read of a run's state, as arrays: to be sent to processes that run some of them."""

    weights: list[dict[str, Array]]  # of each advantage network, and then of the values of histories, if there are any
    fits: tuple[int, int]  # of each advantage network so far, by which a follower sees that it has changed
    regret: Doubles | None  # of the first round's table
    has_values: bool  # whether values of histories were fitted


class Outside(Protocol):
    """Other processes that run pieces of traversals."""

    def run(self, job: TraversalJob, iterate: Iterate, pieces: Iterable[Any]) -> Iterator[Any]:
        """The results of the pieces of a job in order, each by a collector's `work` in a run that has the iterate."""

    def close(self) -> None:
        """End the processes that this one started."""


class Follower:
    """Runs pieces of another process's traversals: a run of equal configuration, without memories, follows the other's."""

    def __init__(self, game: Game, config: RunConfig) -> None:
        self._solver = DeepCFR(game, without_memories(config))
        self._job: TraversalJob | None = None

    def __call__(self, piece: Any, job: TraversalJob, iterate: Iterate) -> Any:
        """The result of a piece of the job, as the collector's `work` computes it from the iterate."""
        if job != self._job:
            solver = self._solver
            solver.follow(iterate)
            self._work = solver.collector.work(job, solver.matching(), solver.first_round_strategy())
            self._job = job
        return self._work(piece)
