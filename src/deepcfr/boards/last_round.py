"""CFR on many boards of the last betting round in one kernel.

The arithmetic of one such board takes less than a millisecond, and there are dozens of them after each board of the
round before. To call a board's kernels from Python would take a third of the time, and threads would wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deepcfr.boards.boards import Board, Boards, OnBoard
from deepcfr.boards.kernels import LEAF_BLOCK, leaf_values, pull_values
from deepcfr.boards.regret_kernels import add_regrets, descend
from deepcfr.boards.rounds import LeafColumns, RoundArrays
from deepcfr.boards.tables import BoardTables
from deepcfr.core.compiled import nb
from deepcfr.core.parallel import Workers
from deepcfr.core.types import Cards, Doubles, Floats, Ints

_TOGETHER = 12  # boards in a call, so that sums do not depend on the number of threads


class _Flat(NamedTuple):
    """Arrays of all boards, end to end; those of board b begin at `hands[b]`, `holes_from[b]` and `group_from[b]`."""

    hands: Ints
    holes_from: Ints
    group_from: Ints
    up: Ints
    weight: Doubles
    example: Ints
    holes: Cards
    canonical: Ints
    group: Ints


class CFRStep(NamedTuple):
    """The numbers of an iteration: factors of positive and negative regrets and of averages, the least regret, and the
    least probability of actions (`push_reach`)."""

    keep_positive: float
    keep_negative: float
    keep_average: float
    least: float
    tremble: float


class LastRound:
    """The boards of the last round of `boards`, which keep all boards; of a first board in that round, this one."""

    def __init__(self, boards: Boards, workers: Workers | None = None) -> None:
        """`workers` share the boards if they all come after one board; else others share those of earlier rounds."""
        tree, root, last = boards.rounds[-1], boards.root, boards.kept[-1]
        self.alone = root.round == len(boards.rounds) - 1  # it is the first board
        if self.alone:
            last = [replace(root, up=np.arange(len(root)), weight=np.ones(len(root)))]
        parents = last if self.alone else boards.kept[-2]
        self._workers = workers if len(last) > len(parents) == 1 else None
        self._several = len(parents) > 1
        self._num_cards, self._tree = boards.root.num_cards, tree
        starts = ([len(board), len(board.holes), len(board.group)] for board in last)
        hands, holes, groups = np.cumsum([[0, 0, 0], *starts], 0).T.copy()
        rows = tree.num_edges + sum(tree.num_rows) + tree.num_nodes
        self._numbers = rows * int(np.diff(hands).max(initial=0))  # of the working memory
        kinds = ("up", "weight", "example", "holes", "canonical", "group")
        self._flat = _Flat(hands, holes, groups, *(np.concatenate([getattr(b, kind) for b in last]) for kind in kinds))
        children = [last] if self.alone else [boards.children(board) for board in parents]
        self._places = {
            board.cards: (after[0].index, after[-1].index + 1) for board, after in zip(parents, children, strict=True)
        }

    def update(
        self,
        board: Board,
        before: Floats,
        tables: tuple[BoardTables, BoardTables],
        player: int,
        step: CFRStep,
        on_board: OnBoard | None = None,
    ) -> Doubles:
        """Update a player's regrets and average strategies, the `tables`, on all boards after `board`.

        Returns its values [1, X, U] at the leaves of the round of `board`, where both players have the reach `before`
        [2, X, U]; of a first board in the last round, at its roots. `on_board(done, total)` is called after each piece of
        work if all boards come after one board.
        """
        first, last = self._places[board.cards]
        pieces = list(pairwise([*range(first, last, _TOGETHER), last]))
        before = np.ascontiguousarray(before)
        regret, average = (table.values for table in tables)

        def work(piece: tuple[int, int]) -> Doubles:
            total = np.zeros((1, before.shape[1], len(board)))
            memory = np.empty(self._numbers, before.dtype)
            update_boards(
                piece, player, step, False, before, self._num_cards, self._tree.num_rows, self._tree.arrays,
                self._tree.leaves[player], self._flat, regret, average, memory, total,
            )  # fmt: skip
            return total

        total = np.zeros((1, before.shape[1], len(board)))
        for done, values in enumerate(self._workers.map(work, pieces) if self._workers else map(work, pieces), start=1):
            total += values
            if on_board and not self._several:
                on_board(done, len(pieces))
        return total

    def iterate(self, reach: Floats, tables: tuple[BoardTables, BoardTables], steps: Sequence[CFRStep]) -> None:
        """Update both players in turn, once for each of the `steps`, on a first board with their `reach` [2, X, U]."""
        regret, average = (table.values for table in tables)
        iterate_board(
            np.array(steps), np.ascontiguousarray(reach), self._num_cards, self._tree.num_rows, self._tree.arrays,
            self._tree.leaves, self._flat, regret, average, np.empty(self._numbers, reach.dtype),
        )  # fmt: skip


@nb.njit(cache=True, nogil=True)
def update_boards(
    piece: tuple[int, int],
    player: int,
    step: CFRStep,
    known: bool,
    before: Floats,
    num_cards: int,
    num_rows: tuple[int, int],
    tree: RoundArrays,
    leaves: LeafColumns,
    flat: _Flat,
    regrets: npt.NDArray[np.floating],
    averages: npt.NDArray[np.floating],
    memory: Floats,
    total: Doubles,
) -> None:
    """Update a player on the boards `piece[0]` to `piece[1]` - 1 of a `LastRound`.

    `regrets` and `averages` are the flat tables of the round. The `memory` begins with the strategies of a board; on an
    only board those of the player are `known` from the update before. The player's values at the round roots are added to
    `total` [1, X, U], by the canonical hands of the board before.
    """
    edges, nodes, roots, most = len(tree.edge_child), tree.row.shape[1], before.shape[1], 0
    for b in range(piece[0], piece[1]):
        most = max(most, flat.hands[b + 1] - flat.hands[b])
    rows, others = num_rows[player], num_rows[1 - player]
    work = np.empty((num_cards + 2 + 3 * most) * LEAF_BLOCK, before.dtype)
    free = np.zeros((len(tree.actor), 1), np.bool_)
    for b in range(piece[0], piece[1]):
        first, last = flat.hands[b], flat.hands[b + 1]
        hands, of_board, size = last - first, slice(flat.holes_from[b], flat.holes_from[b + 1]), num_cards + 2
        strategy = memory[: edges * hands].reshape(edges, hands)
        own = memory[edges * hands : (edges + rows) * hands].reshape(rows, hands)
        other = memory[(edges + rows) * hands : (edges + rows + others) * hands].reshape(others, hands)
        values = memory[(edges + rows + others) * hands : (edges + rows + others + nodes) * hands].reshape(nodes, hands)
        regret = regrets[edges * first : edges * last].reshape(edges, hands)
        average = averages[edges * first : edges * last].reshape(edges, hands)
        up = flat.up[first:last]
        for x in range(roots):
            for u in range(hands):
                own[x, u] = before[player, x, up[u]]
                other[x, u] = before[1 - player, x, up[u]]
        descend(tree, player, regret, average, step.keep_average, strategy, own, other, step.tremble, known)
        leaf_values(
            leaves, other, flat.holes[of_board], flat.canonical[of_board],
            flat.group[flat.group_from[b] : flat.group_from[b + 1]], flat.example[first:last],
            work[: (size + 3 * hands) * LEAF_BLOCK].reshape(size + 3 * hands, LEAF_BLOCK), values,
        )  # fmt: skip
        pull_values(tree, player, free, strategy, values)
        add_regrets(tree, player, step.keep_positive, step.keep_negative, step.least, values, regret)
        for x in range(roots):
            at_root = values[tree.roots[x]]
            for u in range(hands):
                total[0, x, up[u]] += flat.weight[first + u] * at_root[u]


@nb.njit(cache=True, nogil=True)
def iterate_board(
    steps: Doubles,
    before: Floats,
    num_cards: int,
    num_rows: tuple[int, int],
    tree: RoundArrays,
    leaves: tuple[LeafColumns, LeafColumns],
    flat: _Flat,
    regrets: npt.NDArray[np.floating],
    averages: npt.NDArray[np.floating],
    memory: Floats,
) -> None:
    """`update_boards` for both players in turn on the only board, once for each row of `steps` [T, 5], a `CFRStep`."""
    total = np.zeros((1, before.shape[1], before.shape[2]))
    for t in range(len(steps)):
        step = CFRStep(steps[t, 0], steps[t, 1], steps[t, 2], steps[t, 3], steps[t, 4])
        for player in range(2):
            update_boards(
                (0, 1), player, step, t + player > 0, before, num_cards, num_rows, tree, leaves[player], flat, regrets,
                averages, memory, total,
            )  # fmt: skip
