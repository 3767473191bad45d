"""The base of tabular solvers: their state, the variants of CFR as data, and the record of an iteration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from deepcfr.config import TabularConfig
from deepcfr.errors import ConfigError, NoPolicy
from deepcfr.memory.state import Array, SavedState, State


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

    def state(self, memories: bool) -> State:
        """The state that a checkpoint stores; without `memories` there are no regrets."""
        regrets = {name: array.size for name, array in self.arrays().items() if name.startswith("regret")}
        facts = {
            "solver": self.name,
            "game": self.game.name,
            "iteration": self.iteration,
            "nodes_touched": self.nodes_touched,
            "memories": regrets if memories else {},
        }
        return State(facts, {}, self._saved_arrays(memories).items())

    def restore(self, saved: SavedState, memories: bool) -> None:
        """Restore the result of `state`; without `memories` only what play needs."""
        self.iteration, self.nodes_touched = int(saved.facts["iteration"]), int(saved.facts["nodes_touched"])
        for name, array in self._live(memories).items():
            np.copyto(array, saved.array(name), casting="no")

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


_VARIANTS = {
    "cfr": Discounting(float("inf"), float("inf"), 0.0),
    "cfr+": Discounting(float("inf"), float("inf"), 1.0, floor=True),
    "pcfr+": Discounting(float("inf"), float("inf"), 2.0, floor=True, predictive=True),
    "linear-cfr": Discounting(1.0, 1.0, 1.0),
}
DISCOUNTED = Discounting(1.5, 0.0, 2.0)
"""Discounted CFR with the numbers that its paper recommends."""


def discounting(config: TabularConfig) -> Discounting:
    """The numbers of a full-width algorithm. Raises ConfigError for one that is not full-width."""
    if config.algorithm == "dcfr":
        return Discounting(config.alpha, config.beta, config.gamma)
    if config.algorithm not in _VARIANTS:
        raise ConfigError(f"'{config.algorithm}' is not a full-width algorithm: {', '.join(_VARIANTS)} and dcfr are.")
    return _VARIANTS[config.algorithm]
