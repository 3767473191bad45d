"""Deep Counterfactual Regret Minimization (Brown, Lerer, Gross and Sandholm, ICML 2019), Algorithm 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deepcfr.config import FitConfig, RunConfig
from deepcfr.games.base import Game
from deepcfr.solvers.collector import Iterate, IterationRecord, IterationStats, TraversalJob
from deepcfr.solvers.deep_cfr_state import DeepCFRState
from deepcfr.solvers.first_round import bootstrapped, kept_share
from deepcfr.solvers.histories import PLAYERS, HistoryCollector
from deepcfr.solvers.history_values import HistoryValues
from deepcfr.solvers.memories import without_memories
from deepcfr.training.examples import WEIGHTS, Examples, InfosetExamples
from deepcfr.training.fit import FitResult, fit
from deepcfr.training.networks import SplitNetwork

NO_FIT = FitResult(loss=0.0, steps=0, seconds=0.0, examples=0)


class DeepCFR(DeepCFRState):
    """A run of Deep CFR: iterate over `iterations()` to advance it.

    Every random stream is derived from (seed, purpose, iteration, player), so there is no generator state to save.
    """

    def iterations(self) -> Iterator[IterationRecord]:
        """Algorithm 1 from where the state is up to the configured number of iterations; `fit_average` is its last line."""
        for t in range(self.iteration + 1, self.config.cfr.iterations + 1):
            if self.snapshots.is_due(t):
                self.snapshots.keep(t, self.advantage_networks, self.first_round_strategy())
            tally = IterationStats()
            for player in PLAYERS:
                if self.values and self.values.come_first:
                    self._learn_values(self.values, t, player, tally)
                for found in self.collector.traverse(t, player, self.current()):  # Algorithm 2, some at a time
                    self.memories.add(player, found)  # advantages to M_p, strategies to M_Pi
                    if self.table:
                        self.table.add(player, t, found)
                    if self.values and not self.values.come_first:
                        self.values.add(found)
                    tally.add(found)
                tally.losses.append(tally.fit(self.fit_advantages, t, player).loss)  # V_p, which the next player meets
                if self.values and not self.values.come_first:
                    tally.fit(self.values.fit, t, player, self.workers)
            self.iteration = t
            self.nodes_touched += tally.nodes_touched
            yield tally.record(t, self.memories)

    def _learn_values(self, values: HistoryValues, t: int, player: int, tally: IterationStats) -> None:
        """Fit the values to histories of their own, before those of a player's advantages."""
        assert isinstance(self.collector, HistoryCollector)
        for found in self.collector.traverse(t, player, self.current(), "values"):
            values.add(found)
            tally.add(found)
        tally.fit(values.fit, t, player, self.workers)

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


class Follower:
    """Runs pieces of another process's traversals: a run of equal configuration, without memories, follows the other's."""

    def __init__(self, game: Game, config: RunConfig) -> None:
        self._solver = DeepCFR(game, without_memories(config))
        self._job: TraversalJob | None = None

    def __call__(self, piece: Any, job: TraversalJob, iterate: Iterate) -> Any:
        """The result of a piece of the job, as `Collector.work` computes it from the iterate."""
        if job != self._job:
            self._solver.follow(iterate)
            self._work, self._job = self._solver.collector.work(job, self._solver.current()), job
        return self._work(piece)
