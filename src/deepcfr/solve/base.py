"""The contract of solvers, their states in checkpoints, and what tabular solvers share."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from deepcfr.config import RunConfig
from deepcfr.core.errors import CheckpointError, NoPolicy
from deepcfr.core.types import require_like
from deepcfr.game.base import Game
from deepcfr.network.fit import FitResult
from deepcfr.network.memory import Store
from deepcfr.policy.base import Policy
from deepcfr.solve.full_width import discounting

PLAYERS = (0, 1)
Array = npt.NDArray[np.generic]
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class SolverState:
    """The state that a checkpoint stores. `facts["memories"]` is empty if training cannot be resumed from it."""

    facts: dict[str, Any]  # counters, as JSON
    tensors: Tensors  # networks' weights, on the CPU
    arrays: Iterable[tuple[str, Array]]  # large arrays, made one after the other


@dataclass(frozen=True)
class SavedState:
    """The state that a checkpoint restores."""

    facts: dict[str, Any]
    tensors: Tensors  # on the solver's device
    array: Callable[[str], Array]  # reads a large array by its name; the array is read-only

    def part(self, prefix: str) -> Tensors:
        """The tensors whose names begin with `prefix`, without it."""
        return part(self.tensors, prefix)


def part(tensors: Tensors, prefix: str) -> Tensors:
    """The tensors whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def memory_arrays(memories: dict[str, Store]) -> Iterator[tuple[str, Array]]:
    """The filled columns of memories of samples."""
    for name, memory in memories.items():
        for column in memory.columns:
            yield f"memory-{name}-{column}", memory.filled(column).cpu().numpy()


def restore_memories(memories: dict[str, Store], saved: SavedState) -> None:
    """Restore the columns that `memory_arrays` returned. Raises CheckpointError for other shapes and types."""
    for name, memory in memories.items():
        columns = {column: np.array(saved.array(f"memory-{name}-{column}")) for column in memory.columns}
        try:
            memory.restore(
                {column: torch.from_numpy(array) for column, array in columns.items()},
                int(saved.facts["memories"][name]),
            )
        except CheckpointError as error:
            raise CheckpointError(f"'memory-{name}-" + str(error).removeprefix("'")) from error


def load_weights(network: nn.Module, weights: Tensors, name: str) -> None:
    """Put weights into a network, which may be stored in 16 bits. Raises CheckpointError for other shapes and types."""
    own = network.state_dict()
    if own.keys() != weights.keys():
        raise CheckpointError(f"'{name}' has the weights {', '.join(weights)} in place of {', '.join(own)}.")
    for key, tensor in own.items():
        found = weights[key]
        require_like(f"{name}{key}", found.float() if found.dtype == torch.float16 else found, tensor)
    network.load_state_dict(weights)


class Record(Protocol):
    """The record of one iteration; each solver has its own dataclass."""

    @property
    def iteration(self) -> int: ...

    @property
    def nodes_touched(self) -> int: ...

    def figures(self) -> str:
        """The figures for the progress display."""


class Solver(ABC):
    """A run of any algorithm, for training, checkpoints and play."""

    game: Game
    iteration: int = 0
    nodes_touched: int = 0

    @abstractmethod
    def iterations(self) -> Iterator[Record]:
        """Advance one iteration at a time, from where the state is up to the configured number."""

    @abstractmethod
    def average_policy(self) -> Policy:
        """The average strategy, or the result of a run without averages."""

    @abstractmethod
    def current_policy(self) -> Policy:
        """The strategy of the newest iteration."""

    @abstractmethod
    def state(self, memories: bool) -> SolverState:
        """The state that a checkpoint stores; without `memories` it can be played but not trained."""

    @abstractmethod
    def restore(self, saved: SavedState, memories: bool) -> None:
        """Restore the result of `state`; without `memories` only what play needs.

        Raises CheckpointError for a state of another kind or shape.
        """

    @abstractmethod
    def describe(self) -> str:
        """One line that describes the run: algorithm, game and sizes."""

    @abstractmethod
    def state_bytes(self, memories: bool) -> int:
        """Bytes of the large arrays of `state`, without copying anything from a device."""

    @staticmethod
    @abstractmethod
    def memory_bytes(game: Any, config: Any) -> int:
        """Bytes of the memories or tables of a run when they are full, computed before they are allocated."""

    @property
    def average_iteration(self) -> int:
        """The iteration whose average strategy can be played; 0 if there is none."""
        return self.iteration

    def fit_average(self) -> FitResult | None:
        """Fit the average strategy if that is a network to be fitted; otherwise do nothing and return None."""
        return None

    def policy(self, name: str) -> Policy:
        """The strategy of a name in `config.records.EvaluationConfig.policy`, or "current".

        Raises NoPolicy if there is none (yet).
        """
        if name == "sd-cfr":
            raise NoPolicy(
                "is not a run of Deep CFR, and the average of SD-CFR needs networks of Deep CFR: use --policy average."
            )
        return self.current_policy() if name == "current" else self.average_policy()

    def thin(self, keep_networks: int) -> None:  # noqa: B027
        """Keep every `keep_networks`-th snapshot, counted back from the newest, or none if that is 0."""

    def close(self) -> None:  # noqa: B027
        """End the processes that this one started."""

    def _facts(self, solver: str, memories: dict[str, int]) -> dict[str, Any]:
        """The facts of a checkpoint; `memories` is empty if training cannot go on from it."""
        return {
            "solver": solver,
            "game": self.game.name,
            "iteration": self.iteration,
            "nodes_touched": self.nodes_touched,
            "memories": memories,
        }

    def _restore_facts(self, saved: SavedState) -> None:
        self.iteration, self.nodes_touched = int(saved.facts["iteration"]), int(saved.facts["nodes_touched"])


@dataclass(frozen=True)
class TabularRecord:
    """The record of one iteration of a tabular solver."""

    iteration: int
    nodes_touched: int
    iteration_seconds: float

    def figures(self) -> str:
        """The figures for the progress display."""
        return f"{self.nodes_touched / max(self.iteration_seconds, 1e-9):,.0f} nodes/s"


class TabularSolver(Solver):
    """A solver whose state is `iteration`, `nodes_touched` and `arrays()`.

    The average strategy needs only the arrays that are not called regret.
    """

    name: ClassVar[str]  # in a checkpoint
    config: RunConfig

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """The live state; a checkpoint saves it and restores by copying into it."""

    def state(self, memories: bool) -> SolverState:
        regrets = {name: array.size for name, array in self._live(memories).items() if name.startswith("regret")}
        return SolverState(self._facts(self.name, regrets), {}, self._saved_arrays(memories).items())

    def restore(self, saved: SavedState, memories: bool) -> None:
        self._restore_facts(saved)
        for name, array in self._live(memories).items():
            found = saved.array(name)
            require_like(name, found, array)
            np.copyto(array, found, casting="no")

    def state_bytes(self, memories: bool) -> int:
        return sum(array.nbytes for array in self._saved_arrays(memories).values())

    @abstractmethod
    def _iterate(self) -> int:
        """One iteration; returns the nodes touched."""

    def iterations(self) -> Iterator[TabularRecord]:
        while self.iteration < self.config.iterations:
            start = time.perf_counter()
            touched = self._iterate()
            self.iteration += 1
            self.nodes_touched += touched
            yield TabularRecord(self.iteration, touched, time.perf_counter() - start)

    def _saved_arrays(self, memories: bool) -> dict[str, Array]:
        return self._live(memories)

    def _live(self, memories: bool) -> dict[str, Array]:
        return {name: array for name, array in self.arrays().items() if memories or not name.startswith("regret")}


class FullWidthSolver(TabularSolver):
    """A solver that visits all of its game in every iteration: iterate over `iterations()` to advance it."""

    def __init__(self, game: Any, config: RunConfig) -> None:
        self.game, self.config = game, config

    @staticmethod
    def memory_bytes(game: Any, config: RunConfig) -> int:  # noqa: ARG004
        """Bytes of regrets, averages and predictions on an explicit tree: float64 [K, L] each."""
        return 3 * 8 * game.explicit.legal.size

    @property
    def precision(self) -> str:
        """The data type of the tables."""
        return "float64"

    def describe(self) -> str:
        return f"{self.config.solver} on {self.game.name}: {self.config.iterations:,} iterations, {self.precision}"


class MatchingSolver(FullWidthSolver):
    """A full-width solver by regret matching, with one table each of regrets and of the average strategy.

    Raises ConfigError for an algorithm that is not full-width.
    """

    def __init__(self, game: Any, config: RunConfig, shape: tuple[int, ...]) -> None:
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
        predicted = {"matched": self.matched} if self.variant.predictive else {}
        return {"regret": self.regret, "average": self.average, **predicted}

    def average_policy(self) -> Any:
        """The average strategy, uniform at infosets that their player has never reached."""
        return self._policy(self.average, f"average of {self.config.solver}")

    def current_policy(self) -> Any:
        return self._policy(self.matched, f"current of {self.config.solver}")
