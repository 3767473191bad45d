"""Memories of hands: one row has the targets of one private hand on one board at all decisions of a betting round.

A pass over a whole board computes the advantages of every hand at every node (`ranges/public_chance.py`). In one row a
hand takes a few bytes for each action, and a fit encodes its cards once for all its decisions.
"""

from __future__ import annotations

import torch

from deepcfr.errors import TrainingError
from deepcfr.memory.reservoir import MemoryKind, Store
from deepcfr.types import HandSamples

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
