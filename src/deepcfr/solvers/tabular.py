"""The base of tabular solvers: their state, the variants of CFR as data, and the record of an iteration."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from deepcfr.config import TabularConfig
from deepcfr.errors import ConfigError, NoPolicy
from deepcfr.memory.reservoir import Array, SavedState, SolverState
from deepcfr.types import require_like


@dataclass(frozen=True)
class TabularRecord:
    """The record of one iteration of a tabular solver."""

    iteration: int
    nodes_touched: int
    iteration_seconds: float

    def figures(self) -> str:
        """The figures for the progress display."""
        return f"{self.nodes_touched / max(self.iteration_seconds, 1e-9):,.0f} nodes/s"


class TabularSolver(ABC):
    """The part of `solvers.build.Solver` that all tabular solvers share.

    A state is `iteration`, `nodes_touched` and `arrays()`; the average strategy needs only those not called regret.
    """

    name: ClassVar[str]  # in a checkpoint
    game: Any
    config: TabularConfig
    iteration: int
    nodes_touched: int

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """The live state; a checkpoint saves it and restores by copying into it."""

    @abstractmethod
    def average_policy(self) -> Any:
        """The average strategy."""

    @abstractmethod
    def current_policy(self) -> Any:
        """The newest strategy, by regret matching."""

    @property
    def average_iteration(self) -> int:
        """The last iteration in the average strategy."""
        return self.iteration

    def fit_average(self) -> None:  # noqa: B027
        """Does nothing: tables need no fit."""

    def policy(self, name: str) -> Any:
        """The strategy with the given name; names and errors as in `Solver.policy`."""
        if name == "sd-cfr":
            raise NoPolicy(
                "is not a run of Deep CFR, and the average of SD-CFR needs networks of Deep CFR: use --policy average."
            )
        return self.current_policy() if name == "current" else self.average_policy()

    def state(self, memories: bool) -> SolverState:
        """The state that a checkpoint stores; without `memories` there are no regrets."""
        regrets = {name: array.size for name, array in self.arrays().items() if name.startswith("regret")}
        facts = {
            "solver": self.name,
            "game": self.game.name,
            "iteration": self.iteration,
            "nodes_touched": self.nodes_touched,
            "memories": regrets if memories else {},
        }
        return SolverState(facts, {}, self._saved_arrays(memories).items())

    def restore(self, saved: SavedState, memories: bool) -> None:
        """Restore the result of `state`; without `memories` only what play needs."""
        self.iteration, self.nodes_touched = int(saved.facts["iteration"]), int(saved.facts["nodes_touched"])
        for name, array in self._live(memories).items():
            found = saved.array(name)
            require_like(name, found, array)
            np.copyto(array, found, casting="no")

    def memory_bytes(self, memories: bool) -> int:
        """Bytes of the large arrays of `state`, without copying anything from a device."""
        return sum(array.nbytes for array in self._saved_arrays(memories).values())

    def _saved_arrays(self, memories: bool) -> dict[str, Array]:
        return self._live(memories)

    def _live(self, memories: bool) -> dict[str, Array]:
        return {name: array for name, array in self.arrays().items() if memories or not name.startswith("regret")}

    def thin(self, keep_networks: int) -> None:  # noqa: B027
        """Does nothing: there are no snapshots."""

    def close(self) -> None:  # noqa: B027
        """Does nothing: there are no other processes."""


@dataclass(frozen=True)
class Discounting:
    """A variant of CFR as numbers (Brown and Sandholm 2019, "Solving imperfect-information games via discounted regret
    minimization"): how sums of earlier iterations shrink before iteration t adds to them.

    An infinite exponent leaves the sum unchanged.
    """

    positive: float  # alpha: positive regrets, by (t-1)^alpha / ((t-1)^alpha + 1)
    negative: float  # beta: negative regrets, by (t-1)^beta / ((t-1)^beta + 1)
    average: float  # gamma: the average strategy, by ((t-1) / t)^gamma
    floor: bool = False  # CFR+: regrets below zero become zero after every update
    #: regret matching reads the sum with the newest regret counted twice, as a prediction of the next one (Farina, Kroer
    #: and Sandholm 2021, "Faster game solving via predictive Blackwell approachability", PCFR+)
    predictive: bool = False

    def factors(self, t: int) -> tuple[float, float, float]:
        """Factors of positive regrets, negative regrets and averages before iteration t = 1, 2, ... adds to them."""
        return _regret_factor(t - 1, self.positive), _regret_factor(t - 1, self.negative), ((t - 1) / t) ** self.average


def _regret_factor(t: int, exponent: float) -> float:
    if t == 0 or exponent == float("inf"):
        return 1.0
    power: float = float(t) ** exponent
    return power / (power + 1.0)


DISCOUNTED = Discounting(1.5, 0.0, 2.0)
"""Discounted CFR with the numbers that its paper recommends."""
_VARIANTS = {
    "cfr": Discounting(float("inf"), float("inf"), 0.0),
    "cfr+": Discounting(float("inf"), float("inf"), 1.0, floor=True),
    "pcfr+": Discounting(float("inf"), float("inf"), 2.0, floor=True, predictive=True),
    "linear-cfr": Discounting(1.0, 1.0, 1.0),
    "dcfr": DISCOUNTED,
}


class FullWidthSolver(TabularSolver):
    """A solver that visits all of its game in every iteration: iterate over `iterations()` to advance it."""

    def __init__(self, game: Any, config: TabularConfig) -> None:
        self.game, self.config = game, config
        self.iteration = 0
        self.nodes_touched = 0

    @property
    def precision(self) -> str:
        """The data type of the tables."""
        return "float64"

    @abstractmethod
    def _iterate(self) -> int:
        """One iteration; returns the nodes touched."""

    def iterations(self) -> Iterator[TabularRecord]:
        """From where the state is up to the configured number of iterations."""
        while self.iteration < self.config.iterations:
            start = time.perf_counter()
            touched = self._iterate()
            self.iteration += 1
            self.nodes_touched += touched
            yield TabularRecord(self.iteration, touched, time.perf_counter() - start)

    def describe(self) -> str:
        """One line that describes the run: algorithm, game and sizes."""
        return f"{self.config.algorithm} on {self.game.name}: {self.config.iterations:,} iterations, {self.precision}"

    def seconds_per_iteration(self) -> float:
        """Forecast from two iterations at the start."""
        trial = type(self)(self.game, replace(self.config, iterations=2))
        return list(trial.iterations())[1].iteration_seconds  # the first one compiles


class MatchingSolver(FullWidthSolver):
    """A full-width solver by regret matching, with one table each of regrets and of the average strategy.

    Raises ConfigError for an algorithm that is not full-width.
    """

    def __init__(self, game: Any, config: TabularConfig, shape: tuple[int, ...]) -> None:
        super().__init__(game, config)
        self.variant = discounting(config)
        self.regret = np.zeros(shape, self.precision)  # discounted sums
        self.average = np.zeros(shape, self.precision)  # discounted sums of own reach times strategy
        # what regret matching reads: the sums themselves, or with a prediction
        self.matched = np.zeros_like(self.regret) if self.variant.predictive else self.regret

    @abstractmethod
    def _policy(self, weights: npt.NDArray[Any], name: str) -> Any:
        """The strategy in proportion to positive weights, uniform where there are none."""

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The live state, besides `iteration` and `nodes_touched`: filling these arrays in place restores a solver."""
        predicted = {"matched": self.matched} if self.variant.predictive else {}
        return {"regret": self.regret, "average": self.average, **predicted}

    def average_policy(self) -> Any:
        """The average strategy, uniform at infosets that their player has never reached."""
        return self._policy(self.average, f"average of {self.config.algorithm}")

    def current_policy(self) -> Any:
        """The strategy that the next iteration starts from, by regret matching."""
        return self._policy(self.matched, f"current of {self.config.algorithm}")


def discounting(config: TabularConfig) -> Discounting:
    """The numbers of a full-width algorithm. Raises ConfigError for one that is not full-width."""
    if config.algorithm not in _VARIANTS:
        raise ConfigError(f"'{config.algorithm}' is not a full-width algorithm: {', '.join(_VARIANTS)} are.")
    return _VARIANTS[config.algorithm]
