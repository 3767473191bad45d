"""The policy of a raise-ladder game's tables, and their compact form."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.abstraction.texture import Buckets
from deepcfr.compiled import nb
from deepcfr.errors import CheckpointError, GameError
from deepcfr.games.ladder_betting import ROUND, LadderGame
from deepcfr.ladder.traversals import LadderLayout, Table, ladder_layout, table_strategies
from deepcfr.policies.base import Policy
from deepcfr.policies.styles import without_rare
from deepcfr.sampling.traversal_tree import seen_buckets
from deepcfr.types import Cards, Infosets, Ints

FULL = 255  # the largest probability of a row in the compact form
_PIECE = 1 << 22  # entries per step of the conversion: a few megabytes


class LadderTable(Policy):
    """Probabilities in proportion to the positive entries of a table, uniform over legal actions where there are none.

    `table` is flat, in the `ladder_layout` of the game and the counts of the buckets, and is not copied. It may also be
    the expanded compact form, uint8. Actions below `threshold` are not played, unless none is as probable (Ganzfried,
    Sandholm and Waugh 2012, "Strategy purification and thresholding", section 3).
    """

    game: LadderGame
    threshold = 0.0

    def __init__(self, game: LadderGame, buckets: Buckets, table: Table, kind: str = "average") -> None:
        self.game, self.buckets, self.table, self.kind = game, buckets, table, kind
        self.layout = ladder_layout(game, buckets.counts)
        if table.shape != (self.layout.size,):
            raise GameError(
                f"The tables of {game.name} with {list(buckets.counts)} buckets have {self.layout.size:,} entries, but "
                f"the given table has shape {list(table.shape)}."
            )

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        positions, cards = self.game.positions(infosets.node.numpy()), infosets.cards.numpy()
        buckets = np.empty(len(positions), np.int64)
        for round_ in np.unique(positions[:, ROUND]).tolist():
            here = positions[:, ROUND] == round_
            buckets[here] = seen_buckets(self.buckets, round_, cards[here])
        return self._rows(positions, buckets)

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        positions = self.game.positions(nodes)
        own = seen_buckets(self.buckets, int(positions[0, ROUND]), cards)
        buckets, bucket = np.unique(own, return_inverse=True)  # a bucket's row is the same for all of its hands
        rows = self._rows(np.repeat(positions, len(buckets), axis=0), np.tile(buckets, len(positions)))
        return rows.numpy().reshape(len(positions), len(buckets), -1)[:, bucket]

    def _rows(self, positions: Ints, buckets: Ints) -> torch.Tensor:
        rows = table_strategies(self.game.ladder, self.layout, self.table, positions, buckets)
        strategies = torch.from_numpy(rows)
        return without_rare(strategies, self.threshold) if self.threshold else strategies


# The compact form stores each row as whole numbers, scaled so that the largest is FULL, and compresses the whole table.


def compact(policy: LadderTable) -> Cards:
    """The policy's table in compact form, uint8 [bytes]; the error is at most 1/510 of a row's largest probability.

    Rows that were never visited remain zeros: they play uniformly and compress to almost nothing.
    """
    layout = policy.layout
    squeezed = zlib.compressobj(6)
    parts = []
    for round_ in range(len(layout.block)):
        widths = _row_widths(layout, round_)
        end = layout.size if round_ + 1 == len(layout.block) else int(layout.start[round_ + 1])
        piece = max(1, _PIECE // int(layout.block[round_])) * int(layout.block[round_])
        for begin in range(int(layout.start[round_]), end, piece):
            parts.append(squeezed.compress(_quantise(policy.table[begin : min(begin + piece, end)], widths).tobytes()))
    parts.append(squeezed.flush())
    return np.frombuffer(b"".join(parts), np.uint8)


def expand(data: Cards, size: int) -> Cards:
    """The table, uint8 [size], from its compact form. Raises CheckpointError if the data is damaged."""
    table = np.empty(size, np.uint8)
    inflate, filled = zlib.decompressobj(), 0
    try:
        for begin in range(0, len(data), _PIECE):
            rest = data[begin : begin + _PIECE].tobytes()
            while rest:
                part = inflate.decompress(rest, _PIECE)
                table[filled : filled + len(part)] = np.frombuffer(part, np.uint8)
                filled += len(part)
                rest = inflate.unconsumed_tail
    except (zlib.error, ValueError) as error:
        raise CheckpointError(f"The compact strategy is damaged: {error}.") from error
    if filled != size or not inflate.eof:
        raise CheckpointError(f"The compact strategy is damaged: it has {filled:,} entries instead of {size:,}.")
    return table


def _row_widths(layout: LadderLayout, round_: int) -> Ints:
    """The entries of each row of a block, in order."""
    starts = np.sort(layout.offset[round_][layout.offset[round_] >= 0])
    return np.diff(np.append(starts, layout.block[round_]))


@nb.njit(cache=True, nogil=True)
def _quantise(table: Table, widths: Ints) -> Cards:
    """Scale the rows of whole blocks so that the largest entry of each row is FULL."""
    result = np.zeros(len(table), np.uint8)
    at, row = 0, 0
    while at < len(table):
        width = widths[row % len(widths)]
        largest = 0.0
        for i in range(width):
            largest = max(largest, float(table[at + i]))
        if largest > 0.0:
            for i in range(width):
                result[at + i] = np.uint8(FULL * max(float(table[at + i]), 0.0) / largest + 0.5)
        at += width
        row += 1
    return result
