"""Deep Counterfactual Regret Minimization (Brown, Lerer, Gross and Sandholm, ICML 2019), Algorithm 1."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from deepcfr.config import FitConfig, RunConfig
from deepcfr.errors import TrainingError
from deepcfr.games.base import Game
from deepcfr.games.poker import poker_game
from deepcfr.memory.reservoir import bytes_per_sample
from deepcfr.parallel import Workers
from deepcfr.policies.base import Policy
from deepcfr.policies.first_round import FirstRound, WithFirstRound, first_board
from deepcfr.policies.iterates import Iterate, compact, expand, iterate_weight, mean_iterate
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.policies.network import AveragePolicy, RegretMatchingPolicy
from deepcfr.ranges.boards import Board, RoundTree, round_trees
from deepcfr.rng import generator, key
from deepcfr.solvers.board_collector import BoardCollector
from deepcfr.solvers.collector import Collected, Collecting, Collector, Current
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.histories import PLAYERS, HistoryCollector
from deepcfr.solvers.memories import Memories, hand_memory_bytes, panel_rows
from deepcfr.solvers.smoothing import smoothed_strategies
from deepcfr.training.examples import WEIGHTS, InfosetExamples
from deepcfr.training.fit import FitResult
from deepcfr.training.networks import SplitNetwork, build_network

NO_FIT = FitResult(loss=0.0, steps=0, seconds=0.0, examples=0)


@dataclass(frozen=True)
class IterationRecord:
    """What one CFR iteration did; pairs are of players 0 and 1."""

    iteration: int
    traversals: int  # of both players: histories from a deal, or boards
    nodes_touched: int
    evaluated: int  # infosets at which networks were asked for a strategy
    trained: int  # examples in the mini-batches of both players' fits
    traversal_seconds: float  # in which no network was fitted
    fit_seconds: float  # of both players' networks
    advantage_loss: tuple[float, float]
    advantage_samples: tuple[int, int]  # in the memories
    strategy_samples: int


@dataclass(frozen=True)
class _Timed:
    """A fit, and when it was on, by `perf_counter`."""

    result: FitResult
    begin: float
    end: float


@dataclass
class DeepCFR:
    """The state of a run, all that a checkpoint needs: iterate over `iterations()` to advance it.

    Every random stream is derived from (seed, purpose, iteration, player), so there is no generator state to save.
    """

    game: Game
    config: RunConfig
    collecting: Collecting | None = None  # None is in this process
    iteration: int = 0
    nodes_touched: int = 0
    average_iteration: int = 0  # the iteration whose memory the average network was fitted to; 0 if there is none
    advantage_networks: list[SplitNetwork] = field(init=False)
    average_network: SplitNetwork | None = field(init=False, default=None)
    table: FirstRoundTable | None = field(init=False)  # of the first betting round, if networks do not play it
    collector: Collector = field(init=False)  # of samples, with the memories that keep them
    iterates: list[Iterate] = field(init=False, default_factory=list)  # kept for SD-CFR, oldest first
    smoothed: Iterate | None = field(init=False, default=None)  # their `mean_iterate`, in an export that left them out
    workers: Workers = field(init=False)
    _fitted_average: FitResult | None = field(init=False, default=None)  # of this iteration, beside the other networks

    def __post_init__(self) -> None:
        self.advantage_networks = [self._new_network("advantage", player).zero_() for player in PLAYERS]
        cfr, game = self.config.cfr, self.game
        if self.config.advantage.pot_units or cfr.remove_luck:
            poker_game(game)
        on_cores = game.device == "cpu" or cfr.sampler == "public-chance"  # boards are swept by the processor
        self.workers = Workers(self.config.runtime.threads if on_cores else 1)
        self.table = FirstRoundTable(poker_game(game), cfr) if cfr.first_round == "table" else None
        if self.collecting:
            self.collector = self.collecting(game, self.config, self.table)
        elif cfr.sampler == "public-chance":
            self.collector = BoardCollector(poker_game(game), self.config, self.table, self.workers)
        else:
            self.collector = HistoryCollector(game, self.config, self.table, self.workers)

    @property
    def memories(self) -> Memories:
        """Of advantages for each player, and of strategies."""
        return self.collector.memories

    def iterations(self, average_due: Callable[[int], bool] = lambda _: False) -> Iterator[IterationRecord]:
        """Algorithm 1's outer loop, from where the state is up to the configured number of iterations.

        `average_due` says after which iterations `fit_average` will be called. Where fits run side by side, that fit then
        begins with the iteration's other ones; it is the same fit at either time.
        """
        while self.iteration < self.config.cfr.iterations:
            yield self._iterate(average_due(self.iteration + 1))

    def _iterate(self, average_due: bool) -> IterationRecord:
        t = self.iteration + 1
        self._fitted_average = None
        self._keep_iterate(t)
        start = time.perf_counter()
        if self.config.cfr.updates == "alternating":
            found, timed = self._alternately(t)
        else:
            found, timed = self._simultaneously(t, average_due)
        seconds = time.perf_counter() - start
        fits = [fit.result for fit in timed]
        self.iteration = t
        touched = sum(collected.nodes_touched for collected in found)
        self.nodes_touched += touched
        advantage_samples, strategy_samples = self.memories.sizes()
        return IterationRecord(
            iteration=t,
            traversals=sum(collected.traversals for collected in found),
            nodes_touched=touched,
            evaluated=sum(collected.evaluated for collected in found),
            trained=sum(result.examples for result in fits[:2]),
            traversal_seconds=seconds - _covered(timed),
            fit_seconds=_covered(timed[:2]),
            advantage_loss=(fits[0].loss, fits[1].loss),
            advantage_samples=advantage_samples,
            strategy_samples=strategy_samples,
        )

    def _alternately(self, t: int) -> tuple[list[Collected], list[_Timed]]:
        """As in Algorithm 1, the second player's traversals meet the first one's new network."""
        found, fits = [], []
        for player in PLAYERS:
            found.append(self.collector.begin(t, player, self.current())())
            fits.append(_timed(self._fit_advantages, t, player))
        return found, fits

    def _simultaneously(self, t: int, average_due: bool) -> tuple[list[Collected], list[_Timed]]:
        """Everybody plays sigma^t, so the second player's traversals can run while the first one's network is fitted.

        When they have ended, all memories are those of iteration t, and the average network can be fitted as well.
        """
        current = self.current()
        waiting = [self.collector.begin(t, player, current) for player in PLAYERS]
        if not self.collector.side_by_side:
            return [wait() for wait in waiting], [_timed(self._fit_advantages, t, player) for player in PLAYERS]
        found, fits = [], []
        pool = ThreadPoolExecutor(self.collector.side_by_side)
        try:
            for player, wait in enumerate(waiting):
                found.append(wait())
                fits.append(pool.submit(_timed, self._fit_advantages, t, player))
            if average_due:
                fits.append(pool.submit(_timed, self._fit_average, t, self.config.average))
            timed = [fit.result() for fit in fits]
        finally:
            pool.shutdown(cancel_futures=True)  # after a loss, no fit need begin
        self._fitted_average = timed[-1].result if average_due else None
        return found, timed

    def _fit_advantages(self, t: int, player: int) -> FitResult:
        config = self.config.advantage
        examples = self.memories.advantage_examples(player, WEIGHTS[self.config.cfr.weighting], t, config)
        if not len(examples):
            return NO_FIT  # the player has never had to act; its network stays as it is
        if config.refit == "scratch" or self.advantage_networks[player].is_zero():
            self.advantage_networks[player] = self._new_network("advantage", t, player)
        stream = self._stream("advantage fit", t, player)
        self.collector.changed(player)
        return self.collector.fit(self.advantage_networks[player], examples, config, stream, self.workers)

    def fit_average(self, config: FitConfig | None = None) -> FitResult:
        """Fit the average-strategy network Pi to the strategy memory as it is now (Algorithm 1, last step).

        If that was done beside the iteration's other fits, this is its result; one with another `config` is a new fit.
        """
        done, self._fitted_average = self._fitted_average, None
        if done and config is None:
            return done
        return self._fit_average(self.iteration, config or self.config.average)

    def _fit_average(self, t: int, config: FitConfig) -> FitResult:
        config = replace(config, scale_targets=False)  # probabilities have no unit to scale
        examples = self.memories.strategy_examples(WEIGHTS[self.config.cfr.of_averages], t, config)
        if not len(examples):
            self.average_network = self._new_network("average", t).zero_()
            return NO_FIT
        fine_tuned = self.config.advantage.refit == "fine-tune"
        if self.config.cfr.average_smoothing and self.iterates and fine_tuned and isinstance(examples, InfosetExamples):
            network, fallback = self._new_network("smoothed"), self.config.cfr.fallback
            found = smoothed_strategies(
                self.game, examples.memory, self.iterates, self.config.cfr.average_smoothing, network, fallback
            )
            examples.replace_targets(found)
        if self.average_network is None or config.refit == "scratch":
            self.average_network = self._new_network("average", t)
        self.average_iteration = t
        return self.collector.fit(self.average_network, examples, config, self._stream("average fit", t), self.workers)

    def _keep_iterate(self, t: int) -> None:
        """Keep sigma^t, from the networks as they are before iteration t, if it is due."""
        every = self.config.cfr.keep_networks
        if every == 0 or t % every:
            return
        table = self.first_round_strategy()
        self.iterates.append(
            Iterate(
                iteration=t,
                weight=iterate_weight(t, every, self.config.cfr.of_averages),
                networks=(compact(self.advantage_networks[0]), compact(self.advantage_networks[1])),
                first_round=None if table is None else table.probabilities,
            )
        )

    def first_round_strategy(self) -> FirstRound | None:
        """sigma^t in the first betting round where a table plays it, else None."""
        return self.table.strategy() if self.table else None

    def sd_cfr_policy(self) -> MixturePolicy:
        """The exact average of the iterates that were kept (Steinberger 2019); there must be one."""
        iterates = self.iterates
        kind = f"exact average of {len(iterates)} iterates up to {iterates[-1].iteration} (SD-CFR)"
        first = first_board(self.game) if iterates[0].first_round is not None else None
        policies = [self._iterate_policy(iterate, first) for iterate in iterates]
        return MixturePolicy(self.game, policies, [iterate.weight for iterate in iterates], kind)

    def smoothed_policy(self) -> Policy:
        """Regret matching on the mean of the networks of the later half of the run; an iterate must have been kept.

        What a fit adds by chance differs from iteration to iteration, and regret matching plays it: the mean has less of
        it. The first round is the table's average if it has a table. Raises TrainingError for networks that are fitted
        from scratch, whose weights have no meaningful mean.
        """
        if self.config.advantage.refit != "fine-tune":
            raise TrainingError(
                "The smoothed policy is of the mean of networks' weights, and these were not fine-tuned from one another: "
                "'advantage.refit' is scratch."
            )
        mean = self.smoothed or mean_iterate(self.iterates)
        networks = [expand(self._new_network("iterate"), weights) for weights in mean.networks]
        policy = RegretMatchingPolicy(self.game, (networks[0], networks[1]), self.config.cfr.fallback)
        policy.kind = f"regret matching on the mean of the advantage networks of the later half of {mean.iteration}"
        return WithFirstRound(policy, self.table.average_strategy()) if self.table else policy

    def _iterate_policy(self, iterate: Iterate, first: tuple[RoundTree, Board] | None) -> Policy:
        networks = [expand(self._new_network("iterate"), weights) for weights in iterate.networks]
        policy = RegretMatchingPolicy(self.game, (networks[0], networks[1]), self.config.cfr.fallback)
        if first is None or iterate.first_round is None:
            return policy
        return WithFirstRound(policy, FirstRound(first[0], first[1].view_cards, iterate.first_round))

    def new_average_network(self) -> SplitNetwork:
        """An average-strategy network with this iteration's random weights."""
        return self._new_network("average", self.iteration)

    def average_policy(self) -> Policy:
        """The average strategy as a policy; `fit_average` must have run."""
        assert self.average_network is not None
        policy = AveragePolicy(self.game, self.average_network)
        return WithFirstRound(policy, self.table.average_strategy()) if self.table else policy

    def current_policy(self) -> Policy:
        """The newest iteration's strategy as a policy."""
        return self.current().policy()

    def current(self) -> Current:
        """sigma^t, from the networks and the table as they are."""
        return Current(self._matching(), self.first_round_strategy())

    def _matching(self) -> RegretMatchingPolicy:
        networks = (self.advantage_networks[0], self.advantage_networks[1])
        fit = self.config.advantage
        compressed = self.memories.compression(fit) > 0
        return RegretMatchingPolicy(self.game, networks, self.config.cfr.fallback, fit.pot_units, compressed)

    def _new_network(self, *purpose: str | int) -> SplitNetwork:
        return build_network(self.game.encoding, self.config.network, generator(self._stream("network", *purpose)))

    def _stream(self, *purpose: str | int) -> int:
        return key(self.config.seed, *purpose)


def _timed(fit: Callable[..., FitResult], *arguments: Any) -> _Timed:
    begin = time.perf_counter()
    return _Timed(fit(*arguments), begin, time.perf_counter())


def _covered(fits: list[_Timed]) -> float:
    """Seconds in which at least one of the fits was on."""
    seconds, end = 0.0, 0.0
    for fit in sorted(fits, key=lambda fit: fit.begin):
        seconds += max(0.0, fit.end - max(end, fit.begin))
        end = max(end, fit.end)
    return seconds


def memory_bytes(game: Game, config: RunConfig) -> int:
    """Bytes that the memories of a run take when they are full, of infosets or of hands."""
    memory = config.memory
    if config.cfr.sampler == "public-chance" and config.public_chance.record == "hands":
        poker, first = poker_game(game), 1 if config.cfr.first_round == "table" else 0
        return hand_memory_bytes(poker, memory, round_trees(poker), first, panel_rows(poker, config.public_chance))
    return bytes_per_sample(game.encoding) * (2 * memory.advantage_capacity + memory.strategy_capacity)
