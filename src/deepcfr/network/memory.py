"""Bounded memories of samples: a uniform reservoir (Vitter 1985, Algorithm R), and a sliding window as its ablation.

Memories of hands on fixed boards have in one row the targets of one private hand at all decisions of a betting round: a
pass over a whole board computes the advantages of every hand at every node (`boards/public_chance.py`), and a fit encodes
a hand's cards once for all its decisions.
"""

from __future__ import annotations

from typing import Literal

import torch

from deepcfr.core.errors import TrainingError
from deepcfr.core.rng import generator
from deepcfr.core.types import Encoding, HandSamples, Infosets, Samples, require_like
from deepcfr.game.base import card_codes

MemoryKind = Literal["reservoir", "window"]


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
    def nbytes(self) -> int:
        """Bytes of the filled rows."""
        return sum(self.filled(name).nbytes for name in self.columns)

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


class Memory(Store):
    """A store of infoset samples: advantages or strategies. A sample is a hand with one or more `decisions`."""

    def __init__(
        self,
        encoding: Encoding,
        capacity: int,
        kind: MemoryKind = "reservoir",
        device: str = "cpu",
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
            name: torch.empty((capacity, *shape), dtype=dtype, device=device) for name, (dtype, shape) in shapes.items()
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
        node = self.filled("node").view(len(self), -1)
        code = (card_codes(self.filled("cards"), self.encoding)[:, None] * len(self.encoding.legal) + node).flatten()
        weight = weight.double().repeat_interleave(node.shape[1])
        distinct, place = torch.unique(code, return_inverse=True)
        total = torch.zeros(len(distinct), dtype=torch.float64, device=code.device).index_add_(0, place, weight)
        weighted = self.filled("target").flatten(0, -2).double() * weight[:, None]
        sums = torch.zeros(len(distinct), weighted.shape[1], dtype=torch.float64, device=code.device)
        sums.index_add_(0, place, weighted)
        return (sums / total[:, None]).float()[place].view_as(self.filled("target"))


def _last_writers(slot: torch.Tensor, capacity: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The new rows that are kept, and their slots; of several rows for one slot the last one stays."""
    source = (slot < capacity).nonzero()[:, 0]
    wanted, order = slot[source].sort(stable=True)
    last = torch.ones_like(wanted, dtype=torch.bool)
    last[:-1] = wanted[1:] != wanted[:-1]
    return source[order][last], wanted[last]


_PIECE = 4096  # rows at a time, so that temporaries stay in the cache


def bytes_per_hand(cards: int, edges: int, nodes: int) -> int:
    """Bytes of each row of a `HandMemory`."""
    return cards + 4 + 4 * (edges + nodes)


class HandMemory(Store):
    """Running means of `HandSamples` of the same hands, those of fixed boards."""

    def __init__(self, cards: int, edges: int, nodes: int, capacity: int, device: str = "cpu") -> None:
        columns = {
            "cards": torch.empty(capacity, cards, dtype=torch.uint8, device=device),
            "iteration": torch.empty(capacity, dtype=torch.int32, device=device),
            "values": torch.empty(capacity, edges, dtype=torch.float32, device=device),
            "reach": torch.empty(capacity, nodes, dtype=torch.float32, device=device),
        }
        super().__init__(columns, capacity, "window")

    def append(self, samples: HandSamples) -> None:
        """Add other hands, in order, which must all fit."""
        end = self.seen + len(samples)
        for name, column in self.columns.items():
            column[self.seen : end] = getattr(samples, name)
        self.seen = end

    def average(self, samples: HandSamples, rate: float, negative: float = 1.0) -> None:
        """Move every row towards the sample of the same hand by `rate`.

        Values below 0 are multiplied by `negative` before.
        The first samples are stored unchanged, and all must fit. Raises TrainingError if later samples are not of the same
        hands in the same order.
        """
        if self.seen == 0:
            self.append(samples)
            return
        if not torch.equal(self.filled("cards").cpu(), samples.cards.cpu()):
            raise TrainingError("The hands of the panel are not those in the memory: were its settings changed?")
        for name, new in (("values", samples.values), ("reach", samples.reach)):
            column = self.filled(name)
            for start in range(0, len(self), _PIECE):
                piece = column[start : start + _PIECE]
                if negative != 1 and name == "values":
                    piece.mul_(torch.where(piece < 0, negative, 1.0))
                piece.lerp_(new[start : start + len(piece)].to(piece), rate)
        self.columns["iteration"].fill_(int(samples.iteration[0]))

    def __getitem__(self, index: torch.Tensor | slice) -> HandSamples:
        columns = {name: self.rows(name, index) for name in self.columns}
        return HandSamples(columns["cards"], columns["values"], columns["reach"], columns["iteration"])
