"""Bounded memories of samples: a uniform reservoir (Vitter 1985, Algorithm R), and a sliding window as its ablation.

Memories of hands have in one row the targets of one private hand on one board at all decisions of a betting round: a pass
over a whole board computes the advantages of every hand at every node (`ranges/public_chance.py`), a hand takes a few
bytes for each action, and a fit encodes its cards once for all its decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from deepcfr.errors import CheckpointError, TrainingError
from deepcfr.games.base import card_codes
from deepcfr.rng import generator
from deepcfr.types import Encoding, HandSamples, Infosets, Samples, require_like

MemoryKind = Literal["reservoir", "window"]
INFOSET_COLUMNS = ("node", "cards", "iteration", "target")


class Stored(Protocol):
    """The interface of memories for checkpoints, local or in other processes."""

    seen: int  # rows ever added

    def __len__(self) -> int: ...

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns of `contents` and `restore`."""

    @property
    def nbytes(self) -> int:
        """Bytes of the filled rows."""

    def contents(self) -> dict[str, torch.Tensor]:
        """The filled part of every column, for a checkpoint."""

    def restore(self, contents: dict[str, torch.Tensor], seen: int) -> None:
        """Take back what `contents` returned."""


def bytes_per_sample(encoding: Encoding, decisions: int = 1) -> int:
    """Bytes of each sample of a game in a memory, where a sample is a hand with so many of its decisions."""
    node = torch.empty(0, dtype=node_type(encoding)).element_size()
    return decisions * (node + 4 * encoding.num_actions) + sum(encoding.card_groups) + 4


def node_type(encoding: Encoding) -> torch.dtype:
    """The smallest integers that number the public infoset indices of a game."""
    return torch.int16 if len(encoding.legal) <= 1 << 15 else torch.int32


class Store:
    """At most `capacity` of the rows added so far, in columns of fixed width.

    A reservoir keeps every row ever added with the same probability; a window keeps the newest rows.
    """

    def __init__(self, columns: dict[str, torch.Tensor], capacity: int, kind: MemoryKind) -> None:
        self.columns = columns  # each [capacity, ...]
        self.capacity = capacity
        self.kind: MemoryKind = kind
        self.seen = 0  # rows ever added

    def __len__(self) -> int:
        return min(self.seen, self.capacity)

    def put(self, rows: dict[str, torch.Tensor], stream: int) -> None:
        """Add `rows` in order, with an entry for each column; a reservoir draws from `stream` which rows it replaces."""
        count, device = len(rows["iteration"]), rows["iteration"].device
        arrival = torch.arange(self.seen, self.seen + count, device=device)
        slot = arrival % self.capacity if self.kind == "window" else self._reservoir_slots(arrival, stream)
        source, slot = _last_writers(slot, self.capacity)
        for name, column in self.columns.items():
            column[slot.to(column.device)] = rows[name][source].to(column)
        self.seen += count

    def clear(self) -> None:
        """Forget all rows."""
        self.seen = 0

    def _reservoir_slots(self, arrival: torch.Tensor, stream: int) -> torch.Tensor:
        """Algorithm R: the first `capacity` rows fill the memory; each later row i replaces a slot drawn from 0 .. i."""
        chance = torch.rand(
            len(arrival), generator=generator(stream, str(arrival.device)), device=arrival.device, dtype=torch.float64
        )
        drawn = (chance * (arrival + 1)).long()
        return torch.where(arrival < self.capacity, arrival, drawn)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns of `contents` and `restore`."""
        return tuple(self.columns)

    @property
    def nbytes(self) -> int:
        """Bytes of the filled rows."""
        return sum(column.nbytes for column in self.contents().values())

    def filled(self, name: str) -> torch.Tensor:
        """The filled part of a column, without a copy."""
        return self.columns[name][: len(self)]

    def rows(self, name: str, index: torch.Tensor | slice) -> torch.Tensor:
        """Filled rows of a column, by a slice or by numbers, integer [N]."""
        filled = self.filled(name)
        return (
            filled[index] if isinstance(index, slice) else filled.index_select(0, index)
        )  # 3 times as fast as [index]

    def contents(self) -> dict[str, torch.Tensor]:
        """The filled part of every column, for a checkpoint."""
        return {name: self.filled(name) for name in self.columns}

    def restore(self, contents: dict[str, torch.Tensor], seen: int) -> None:
        """Take back what `contents` returned. Raises CheckpointError for other shapes and types than its own."""
        self.seen = seen
        for name, column in self.columns.items():
            require_like(name, contents[name], self.filled(name))
            column[: len(self)] = contents[name].to(column.device)


@dataclass(frozen=True)
class InfosetSums:
    """Sums over the samples of each of G infosets."""

    code: torch.Tensor  # int64 [G], one number for each infoset, ascending
    weight: torch.Tensor  # float64 [G]
    target: torch.Tensor  # float64 [G, A], targets times weights


class Memory(Store):
    """A store of infoset samples: advantages or strategies. A sample is a hand with one or more `decisions`.

    With `files`, a prefix of paths, the columns are memory-mapped files; existing ones are overwritten.
    """

    def __init__(
        self,
        encoding: Encoding,
        capacity: int,
        kind: MemoryKind = "reservoir",
        device: str = "cpu",
        files: Path | None = None,
        decisions: int = 1,
    ) -> None:
        self.encoding = encoding
        several = () if decisions == 1 else (decisions,)
        shapes: dict[str, tuple[torch.dtype, tuple[int, ...]]] = {
            "node": (node_type(encoding), several),
            "cards": (torch.uint8, (sum(encoding.card_groups),)),
            "iteration": (torch.int32, ()),
            "target": (torch.float32, (*several, encoding.num_actions)),
        }
        columns = {
            name: _column(files and files.with_name(f"{files.name}-{name}.npy"), (capacity, *shape), dtype, device)
            for name, (dtype, shape) in shapes.items()
        }
        super().__init__(columns, capacity, kind)

    def add(self, samples: Samples, stream: int) -> None:
        """Add `samples` in order by the rule of `put`."""
        self.put(vars(samples) | vars(samples.infosets), stream)

    def __getitem__(self, index: torch.Tensor | slice) -> Samples:
        columns = {name: self.rows(name, index) for name in self.columns}
        return Samples(Infosets(columns["node"].int(), columns["cards"]), columns["target"], columns["iteration"])

    def mean_targets(self, weight: torch.Tensor) -> torch.Tensor:
        """The mean target of every infoset, weighted by `weight` [I], in the places of the samples; float32."""
        sums, place = self.target_sums(weight)
        return (sums.target / sums.weight[:, None]).float()[place].view_as(self.filled("target"))

    def target_sums(self, weight: torch.Tensor) -> tuple[InfosetSums, torch.Tensor]:
        """The sums of all infosets, weighted by `weight` [I], and the index in them of each decision, int64 [I k]."""
        node = self.filled("node").view(len(self), -1)
        code = (card_codes(self.filled("cards"), self.encoding)[:, None] * len(self.encoding.legal) + node).flatten()
        weight = weight.double().repeat_interleave(node.shape[1])
        distinct, place = torch.unique(code, return_inverse=True)
        total = torch.zeros(len(distinct), dtype=torch.float64, device=code.device)
        total.index_add_(0, place, weight)
        weighted = self.filled("target").flatten(0, -2).double() * weight[:, None]
        sums = torch.zeros(len(distinct), weighted.shape[1], dtype=torch.float64, device=code.device)
        return InfosetSums(distinct, total, sums.index_add_(0, place, weighted)), place


def _column(path: Path | None, shape: tuple[int, ...], dtype: torch.dtype, device: str) -> torch.Tensor:
    """An uninitialised array, in memory or, with `path`, in a file of the format of `numpy.save`."""
    if path is None:
        return torch.empty(shape, dtype=dtype, device=device)
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = torch.empty(0, dtype=dtype).numpy().dtype
    return torch.from_numpy(np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape))


def _last_writers(slot: torch.Tensor, capacity: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The new rows that are kept, and their slots; of several rows for one slot the last one stays."""
    source = (slot < capacity).nonzero()[:, 0]
    wanted, order = slot[source].sort(stable=True)
    last = torch.ones_like(wanted, dtype=torch.bool)
    last[:-1] = wanted[1:] != wanted[:-1]
    return source[order][last], wanted[last]


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


_PIECE = 4096  # rows at a time, so that temporaries stay in the cache


def bytes_per_hand(cards: int, edges: int, nodes: int, dtype: torch.dtype) -> int:
    """Bytes of each row of a memory."""
    return cards + 4 + dtype.itemsize * (edges + nodes)


class HandMemory(Store):
    """A store of `HandSamples` in 16 bits (relative error 2^-11, least number 6e-8), or in 32 bits if rows are averaged."""

    def __init__(
        self,
        cards: int,
        edges: int,
        nodes: int,
        capacity: int,
        kind: MemoryKind = "reservoir",
        device: str = "cpu",
        dtype: torch.dtype = torch.float16,
    ) -> None:
        columns = {
            "cards": torch.empty(capacity, cards, dtype=torch.uint8, device=device),
            "iteration": torch.empty(capacity, dtype=torch.int32, device=device),
            "values": torch.empty(capacity, edges, dtype=dtype, device=device),
            "reach": torch.empty(capacity, nodes, dtype=dtype, device=device),
        }
        super().__init__(columns, capacity, kind)

    def add(self, samples: HandSamples, stream: int) -> None:
        """Add `samples` in order by the rule of `put`."""
        self.put(vars(samples), stream)

    def average(self, samples: HandSamples, rate: float, negative: float = 1.0) -> None:
        """Move every row towards the sample of the same hand by `rate`: a running mean, for samples of a panel.

        Values below 0 are multiplied by `negative` before.
        The first samples are stored unchanged, and all must fit. Raises TrainingError if later samples are not of the same
        hands in the same order.
        """
        count = len(samples)
        if self.seen and not torch.equal(self.filled("cards").cpu(), samples.cards.cpu()):
            raise TrainingError("The hands of the panel are not those in the memory: were its settings changed?")
        if self.seen == 0:
            self.columns["cards"][:count] = samples.cards
            self.seen = count
            rate = 1.0
        for name, new in (("values", samples.values), ("reach", samples.reach)):
            column = self.filled(name)
            for start in range(0, len(self), _PIECE):
                piece = column[start : start + _PIECE]
                if negative != 1 and name == "values":
                    piece.mul_(torch.where(piece < 0, negative, 1.0))
                piece.lerp_(new[start : start + len(piece)].to(piece), rate) if rate < 1 else piece.copy_(
                    new[start : start + len(piece)]
                )
        self.columns["iteration"].fill_(int(samples.iteration[0]))

    def __getitem__(self, index: torch.Tensor | slice) -> HandSamples:
        columns = {name: self.rows(name, index) for name in self.columns}
        return HandSamples(columns["cards"], columns["values"].float(), columns["reach"].float(), columns["iteration"])
