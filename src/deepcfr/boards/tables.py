"""Tables of a full-width solver: one number for every legal action of every round with every canonical hand of every
board.

A round's table is one flat array, board after board, each board [E, U]. In 16 bits a number is the signed square of an
integer times the scale of its node and board. Squares give more precision to small regrets, which belong to the nearly
indifferent hands that mix actions. Averages are rounded up or down at random, without bias, because rounding to the
nearest would lose small additions to large sums. The random bits are a hash of position and iteration, so they do not
depend on threads. Regrets are rounded to the nearest, so equal regrets stay equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from deepcfr.boards.boards import Board
from deepcfr.boards.regret_kernels import match_regrets
from deepcfr.boards.rounds import RoundTree
from deepcfr.core.compiled import nb
from deepcfr.core.types import Ints


class BoardTables:
    """The numbers of one round, uncompressed."""

    rounded = False  # if `store` rounds, which it does at random with a stream

    def __init__(self, tree: RoundTree, boards: list[Board], dtype: npt.DTypeLike) -> None:
        self._tree = tree
        self._offset = np.cumsum([0, *(tree.num_edges * len(board) for board in boards)])
        self.values = np.zeros(self._offset[-1], dtype)

    def load(self, board: Board) -> npt.NDArray[Any]:
        """The board's numbers, [E, U], to read, or to change and pass to `store`; here a hand of the table."""
        return self.values[self._offset[board.index] : self._offset[board.index + 1]].reshape(self._tree.num_edges, -1)

    def store(self, board: Board, values: npt.NDArray[np.floating], player: int, stream: int | None = None) -> None:
        """Store the player's rows of `values`, an array from `load`; `stream` is a new number for random rounding."""

    def strategy(self, board: Board) -> npt.NDArray[np.floating]:
        """Return probabilities on a board, [E, U], in proportion to its positive numbers; uniform where there is none."""
        weight = self.load(board)
        strategy = np.empty_like(weight)
        for node in range(len(self._tree.nodes)):
            match_regrets(self._tree.first_edge, node, weight, strategy)
        return strategy

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The state itself, by short names."""
        return {"values": self.values}


class Int16Table(BoardTables):
    """16-bit numbers with one float32 scale for every node and board."""

    rounded = True

    def __init__(self, tree: RoundTree, boards: list[Board]) -> None:
        super().__init__(tree, boards, np.int16)
        self.scales = np.zeros((len(boards), len(tree.nodes)), np.float32)

    def load(self, board: Board) -> npt.NDArray[Any]:
        block = super().load(board)
        values = np.empty(block.shape, np.float32)
        _expand(self._tree.first_edge, block, self.scales[board.index], values)
        return values

    def store(self, board: Board, values: npt.NDArray[np.floating], player: int, stream: int | None = None) -> None:
        tree, at_random = self._tree, stream is not None
        _shrink(
            tree.actor, tree.first_edge, player, values, at_random, stream or 0,
            super().load(board), self.scales[board.index],
        )  # fmt: skip

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        return super().arrays() | {"scales": self.scales}


@nb.njit(cache=True, nogil=True)
def _expand(
    first_edge: Ints, block: npt.NDArray[np.int16], scale: npt.NDArray[np.float32], values: npt.NDArray[np.float32]
) -> None:
    for node in range(len(scale)):
        for edge in range(first_edge[node], first_edge[node + 1]):
            for u in range(block.shape[1]):
                root = np.float32(block[edge, u])
                values[edge, u] = root * abs(root) * scale[node]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _shrink(
    actor: Ints,
    first_edge: Ints,
    player: int,
    values: npt.NDArray[np.float32],
    at_random: bool,
    stream: int,
    block: npt.NDArray[np.int16],
    scale: npt.NDArray[np.float32],
) -> None:
    for node in range(len(actor)):
        if actor[node] != player:
            continue
        largest = np.float32(0)
        for edge in range(first_edge[node], first_edge[node + 1]):
            for u in range(block.shape[1]):
                largest = max(largest, abs(values[edge, u]))
        # one step below the largest integer, so that rounding up cannot leave the range
        scale[node] = largest / np.float32(32766**2)
        inverse = np.float32(1) / scale[node] if scale[node] > 0 else np.float32(0)  # 0 also if the largest is tiny
        for edge in range(first_edge[node], first_edge[node + 1]):
            seed = np.uint32(stream + edge * 0x9E3779B1)
            for u in range(block.shape[1]):
                # the finalizer of MurmurHash3 (Appleby 2011)
                bits = np.uint32(seed + np.uint32(u) * np.uint32(0x85EBCA6B))
                bits = np.uint32((bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B))
                bits = np.uint32((bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35))
                chance = np.float32(bits >> np.uint32(8)) * np.float32(2.0**-24) if at_random else np.float32(0.5)
                square = abs(values[edge, u]) * inverse
                root = np.floor(np.sqrt(square))
                # the squares of root and root + 1 are 2 root + 1 apart
                root += np.float32(chance * (root + root + np.float32(1)) < square - root * root)
                block[edge, u] = np.int16(root if values[edge, u] > 0 else -root)
