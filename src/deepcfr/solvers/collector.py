"""The parts of an iteration of Deep CFR: traversals, the samples that they find, fits, and the iteration's record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from deepcfr.policies.base import Policy
from deepcfr.policies.first_round import FirstRound, WithFirstRound
from deepcfr.policies.network import RegretMatchingPolicy
from deepcfr.solvers.history_values import HistoryValues
from deepcfr.solvers.memories import Memories, TraversalResult
from deepcfr.training.fit import FitResult

WeightArrays = dict[str, npt.NDArray[np.generic]]  # of a network, by name


@dataclass(frozen=True)
class CurrentStrategy:
    """sigma^t: regret matching on a network for each player, and a table for the first round where there is one.

    `values` are the values of its histories where the run learns them.
    """

    matching: RegretMatchingPolicy
    first_round: FirstRound | None
    values: HistoryValues | None = None

    def policy(self) -> Policy:
        """The whole strategy as one policy."""
        return WithFirstRound(self.matching, self.first_round) if self.first_round else self.matching


class TraversalJob(NamedTuple):
    """One player's traversals in one iteration. Another `purpose` has random streams of its own."""

    t: int
    traverser: int
    purpose: str = ""


Elsewhere = Callable[[TraversalJob, Iterable[Any]], Iterator[Any]]
"""Runs pieces of a job in other processes, each by `Collector.work` there; returns their results in order."""


class Collector(Protocol):
    """Runs traversals, in threads of this process or elsewhere; `memories` holds their samples.

    The traversals of a job are a list of pieces. What a piece finds depends on the run's seed, on the job and on the piece,
    and not on who runs it.
    """

    memories: Memories

    def traverse(self, t: int, traverser: int, current: CurrentStrategy) -> Iterator[TraversalResult]:
        """All of iteration t's traversals for one player, in their order; they run while the caller reads the results."""

    def work(self, job: TraversalJob, current: CurrentStrategy) -> Callable[[Any], Any]:
        """The function that runs a piece of the job."""

    def changed(self, player: int) -> None:
        """Call after a player's network changes; drops cached strategies."""


class Iterate(NamedTuple):
    """All that traversals read of a run's state, as arrays: to be sent to processes that run some of them."""

    weights: list[
        WeightArrays
    ]  # of each player's advantage network, and then of the values of histories, if there are any
    fits: tuple[int, int]  # of each advantage network so far, by which a follower sees that it has changed
    regret: npt.NDArray[np.float64] | None  # of the first round's table
    has_values: bool  # whether values of histories were fitted


class Outside(Protocol):
    """Other processes that run pieces of traversals."""

    def run(self, job: TraversalJob, iterate: Iterate, pieces: Iterable[Any]) -> Iterator[Any]:
        """The results of the pieces of a job, in their order, each by `Collector.work` of a run that has the iterate."""

    def close(self) -> None:
        """End the processes that this one started."""


@dataclass(frozen=True)
class IterationRecord:
    """The record of one CFR iteration; pairs are of players 0 and 1."""

    iteration: int
    traversals: int  # of both players: histories from a deal, or boards
    nodes_touched: int
    evaluated: int  # infosets at which networks were asked for a strategy
    trained: int  # examples in the mini-batches of both players' fits, and of those of history values
    traversal_seconds: float  # in which no network was fitted
    fit_seconds: float  # of both players' networks, and of history values
    advantage_loss: tuple[float, float]
    advantage_samples: tuple[int, int]  # in the memories
    strategy_samples: int

    def figures(self) -> str:
        """The figures for the progress display."""
        return (
            f"{self.nodes_touched / max(self.traversal_seconds, 1e-9):,.0f} nodes/s, "
            f"loss {self.advantage_loss[0]:.2f} {self.advantage_loss[1]:.2f}"
        )


@dataclass
class IterationStats:
    """Counts and times of an iteration so far; its clock starts at construction."""

    traversals: int = 0
    nodes_touched: int = 0
    evaluated: int = 0
    trained: int = 0
    fit_seconds: float = 0.0
    losses: list[float] = field(default_factory=list)  # of the players' networks, in their order
    _start: float = field(default_factory=time.perf_counter)

    def add(self, found: TraversalResult) -> None:
        """Count traversals."""
        self.traversals += found.traversals
        self.nodes_touched += found.nodes_touched
        self.evaluated += found.evaluated

    def fit(self, fit: Callable[..., FitResult], *arguments: Any) -> FitResult:
        """Run a fit, and count its time and its examples."""
        begin = time.perf_counter()
        result = fit(*arguments)
        self.fit_seconds += time.perf_counter() - begin
        self.trained += result.examples
        return result

    def record(self, iteration: int, memories: Memories) -> IterationRecord:
        """End the iteration and return its record."""
        seconds = time.perf_counter() - self._start
        advantage_samples, strategy_samples = memories.sizes()
        return IterationRecord(
            iteration=iteration,
            traversals=self.traversals,
            nodes_touched=self.nodes_touched,
            evaluated=self.evaluated,
            trained=self.trained,
            traversal_seconds=seconds - self.fit_seconds,
            fit_seconds=self.fit_seconds,
            advantage_loss=(self.losses[0], self.losses[1]),
            advantage_samples=advantage_samples,
            strategy_samples=strategy_samples,
        )
