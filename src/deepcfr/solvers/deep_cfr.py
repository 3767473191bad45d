"""Deep Counterfactual Regret Minimization (Brown, Lerer, Gross and Sandholm, ICML 2019), Algorithm 1."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch

from deepcfr.config import FitConfig, RunConfig
from deepcfr.games.base import Deals, Game, card_codes
from deepcfr.memory.reservoir import Memory, bytes_per_sample
from deepcfr.parallel import Workers
from deepcfr.policies.network import AveragePolicy, RegretMatchingPolicy
from deepcfr.policies.regret_matching import regret_matching
from deepcfr.rng import generator, key
from deepcfr.sampling.external import Strategy, Traversals, traverse
from deepcfr.training.fit import WEIGHTS, FitResult, Loss, fit
from deepcfr.training.losses import advantage_loss, strategy_loss
from deepcfr.training.networks import SplitNetwork, build_network

PLAYERS = (0, 1)
NO_FIT = FitResult(loss=0.0, steps=0, seconds=0.0)


@dataclass(frozen=True)
class IterationRecord:
    """What one CFR iteration did; pairs are of players 0 and 1."""

    iteration: int
    traversals: int  # of both players
    nodes_touched: int
    traversal_seconds: float
    fit_seconds: float
    advantage_loss: tuple[float, float]
    advantage_samples: tuple[int, int]  # in the memories
    strategy_samples: int


@dataclass
class DeepCFR:
    """The state of a run, all that a checkpoint needs: iterate over `iterations()` to advance it.

    Every random stream is derived from (seed, purpose, iteration, player), so there is no generator state to save.
    """

    game: Game
    config: RunConfig
    iteration: int = 0
    nodes_touched: int = 0
    average_iteration: int = 0  # the iteration whose memory the average network was fitted to; 0 if there is none
    advantage_networks: list[SplitNetwork] = field(init=False)
    average_network: SplitNetwork | None = field(init=False, default=None)
    advantage_memories: list[Memory] = field(init=False)
    strategy_memory: Memory = field(init=False)
    workers: Workers = field(init=False)

    def __post_init__(self) -> None:
        self.advantage_networks = [self._new_network("advantage", player).zero_() for player in PLAYERS]
        memory, encoding, device = self.config.memory, self.game.encoding, self.game.device
        self.advantage_memories = [Memory(encoding, memory.advantage_capacity, memory.kind, device) for _ in PLAYERS]
        self.strategy_memory = Memory(encoding, memory.strategy_capacity, memory.kind, device)
        self.workers = Workers(self.config.runtime.threads if device == "cpu" else 1)

    def iterations(self) -> Iterator[IterationRecord]:
        """Algorithm 1's outer loop, from where the state is up to the configured number of iterations."""
        while self.iteration < self.config.cfr.iterations:
            yield self._iterate()

    def _iterate(self) -> IterationRecord:
        t = self.iteration + 1
        losses = [0.0, 0.0]
        touched = 0
        traversal_seconds = fit_seconds = 0.0
        for player in PLAYERS:
            start = time.perf_counter()
            touched += self._collect(t, player)
            traversal_seconds += time.perf_counter() - start
            result = self._fit_advantages(t, player)
            fit_seconds += result.seconds
            losses[player] = result.loss
        self.iteration = t
        self.nodes_touched += touched
        return IterationRecord(
            iteration=t,
            traversals=2 * self.config.cfr.traversals,
            nodes_touched=touched,
            traversal_seconds=traversal_seconds,
            fit_seconds=fit_seconds,
            advantage_loss=(losses[0], losses[1]),
            advantage_samples=(len(self.advantage_memories[0]), len(self.advantage_memories[1])),
            strategy_samples=len(self.strategy_memory),
        )

    def _collect(self, t: int, traverser: int) -> int:
        """K traversals for one player; returns the nodes touched."""
        total, chunk = self.config.cfr.traversals, self.config.cfr.chunk
        deal_stream, action_stream = self._stream("deal", t, traverser), self._stream("action", t, traverser)

        def run_chunk(first: int) -> Traversals:
            deals = self.game.deal(min(chunk, total - first), deal_stream, first)
            strategies = tuple(self._strategy(self.advantage_networks[player], player, deals) for player in PLAYERS)
            return traverse(self.game, deals, traverser, (strategies[0], strategies[1]), action_stream, t)

        touched = 0
        starts = range(0, total, chunk)
        for first, found in zip(starts, self.workers.map(run_chunk, starts), strict=True):
            self.advantage_memories[traverser].add(
                found.advantages, self._stream("advantage slot", t, traverser, first)
            )
            self.strategy_memory.add(found.strategies, self._stream("strategy slot", t, traverser, first))
            touched += found.nodes_touched
        return touched

    def _strategy(self, network: SplitNetwork, player: int, deals: Deals) -> Strategy:
        """sigma^t of one player on some deals: what it sees in each round is encoded once, before the traversals."""
        game, fallback = self.game, self.config.cfr.fallback
        with torch.no_grad():
            rounds = deals.views.shape[2]
            views = deals.views[:, player].flatten(0, 1)
            # many deals share a hand before the board comes, so distinct views are encoded once
            _, view = torch.unique(card_codes(views, game.encoding), return_inverse=True)
            example = torch.empty(int(view.max()) + 1, dtype=torch.int64, device=view.device)
            example[view] = torch.arange(len(view), device=view.device)
            hands = network.encode_cards(views[example])
            nodes = network.encode_nodes()

        @torch.no_grad()
        def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
            infoset = game.infoset[node]
            advantage = network.joint(hands[view[row * rounds + game.round[node]]] + nodes[infoset])
            return regret_matching(advantage, game.legal[node], fallback)

        return strategy

    def _fit_advantages(self, t: int, player: int) -> FitResult:
        config = self.config.advantage
        if not len(self.advantage_memories[player]):
            return NO_FIT  # the player has never had to act; its network stays as it is
        if config.refit == "scratch" or self.advantage_networks[player].is_zero():
            self.advantage_networks[player] = self._new_network("advantage", t, player)
        stream = self._stream("advantage fit", t, player)
        network, memory = self.advantage_networks[player], self.advantage_memories[player]
        return self._fit(network, memory, advantage_loss, config, stream, t)

    def fit_average(self, config: FitConfig | None = None) -> FitResult:
        """Fit the average-strategy network Pi to the strategy memory as it is now (Algorithm 1, last step)."""
        config = replace(config or self.config.average, scale_targets=False)  # probabilities have no unit to scale
        if not len(self.strategy_memory):
            self.average_network = self.new_average_network().zero_()
            return NO_FIT
        if self.average_network is None or config.refit == "scratch":
            self.average_network = self.new_average_network()
        self.average_iteration = self.iteration
        stream = self._stream("average fit", self.iteration)
        return self._fit(self.average_network, self.strategy_memory, strategy_loss, config, stream, self.iteration)

    def _fit(
        self, network: SplitNetwork, memory: Memory, loss: Loss, config: FitConfig, stream: int, t: int
    ) -> FitResult:
        weights = WEIGHTS[self.config.cfr.weighting]
        return fit(network, memory, self.game.encoding.legal, loss, config, weights, t, stream, self.workers)

    def new_average_network(self) -> SplitNetwork:
        """An average-strategy network with this iteration's random weights."""
        return self._new_network("average", self.iteration)

    def average_policy(self) -> AveragePolicy:
        """The average strategy as a policy; `fit_average` must have run."""
        assert self.average_network is not None
        return AveragePolicy(self.game, self.average_network)

    def current_policy(self) -> RegretMatchingPolicy:
        """The newest iteration's strategy as a policy."""
        return RegretMatchingPolicy(
            self.game, (self.advantage_networks[0], self.advantage_networks[1]), self.config.cfr.fallback
        )

    def _new_network(self, *purpose: str | int) -> SplitNetwork:
        return build_network(self.game.encoding, self.config.network, generator(self._stream("network", *purpose)))

    def _stream(self, *purpose: str | int) -> int:
        return key(self.config.seed, *purpose)


def memory_bytes(game: Game, config: RunConfig) -> int:
    """Bytes that the three memories of a run take when they are full."""
    memory = config.memory
    return bytes_per_sample(game.encoding) * (2 * memory.advantage_capacity + memory.strategy_capacity)
