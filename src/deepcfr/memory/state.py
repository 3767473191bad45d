"""The state of a solver that checkpoints write and restore."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from deepcfr.errors import CheckpointError
from deepcfr.memory.reservoir import Stored
from deepcfr.types import require_like

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


def memory_arrays(memories: Iterable[tuple[str, Stored]]) -> Iterator[tuple[str, Array]]:
    """The filled columns of memories of samples."""
    for name, memory in memories:
        for column, tensor in memory.contents().items():
            yield f"memory-{name}-{column}", tensor.cpu().numpy()


def restore_memories(memories: Iterable[tuple[str, Stored]], saved: SavedState) -> None:
    """Restore the columns that `memory_arrays` returned. Raises CheckpointError for other shapes and types."""
    for name, memory in memories:
        columns = {column: np.array(saved.array(f"memory-{name}-{column}")) for column in memory.column_names}
        seen = int(saved.facts["memories"][name])
        try:
            memory.restore({column: torch.from_numpy(array) for column, array in columns.items()}, seen)
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
