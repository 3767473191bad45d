"""Full-width passes: reach down and values up one round on one board, and exact values of a whole game.

Every method that plays all hands on a board does the same there: the strategy carries reach from the round roots to the
leaves, folds and showdowns get their payoffs, the next round's boards are visited, and values are carried back
(`RoundPass`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from deepcfr.boards.boards import Board, Boards, Choose, Deal, OnBoard
from deepcfr.boards.kernels import ABSENT, LEAF_BLOCK, leaf_values, pull_values, push_both
from deepcfr.boards.rounds import LeafColumns, RoundTree
from deepcfr.core.parallel import Workers
from deepcfr.core.types import Doubles, Floats

BoardStrategy = Callable[[RoundTree, Board], Floats]
"""(round, board) to the probability of every edge of the round with every canonical hand of the board, [E, U]."""
Objectives = Sequence[tuple[int, bool | npt.NDArray[np.bool_]]]
"""K pairs (player, best): the player whose values to compute, and whether it plays a best response or its strategy; or
the decisions [n], or the canonical hands at them [n, U], at which it plays a best response."""
EVERYTHING: Objectives = ((0, True), (1, True), (0, False), (1, False))


class Scratch(threading.local):
    """Thread-local working arrays by name, which keep their last contents.

    A board needs a few megabytes for a short time. Allocating them again for each of thousands of boards costs more
    than the arithmetic, because the system clears every page. They have one `dtype`;
    types here name float64, which all but search have.
    """

    def __init__(self, dtype: type[np.floating] = np.float64) -> None:
        self._dtype = dtype
        self._buffers: dict[str, Doubles] = {}
        self._arrays: dict[tuple[str, tuple[int, ...]], Doubles] = {}  # parts of them, as they were asked for

    def array(self, name: str, shape: tuple[int, ...]) -> Doubles:
        """An uninitialised array; the thread's next call with the same name reuses its memory."""
        array = self._arrays.get((name, shape))
        if array is None:
            size = prod(shape)
            buffer = self._buffers.get(name)
            if buffer is None or len(buffer) < size:
                self._arrays.clear()  # arrays inside the old buffer would keep it
                buffer = self._buffers[name] = np.empty(size, self._dtype)
            array = self._arrays[name, shape] = buffer[:size].reshape(shape)
        return array


class RoundPass:
    """One betting round on one board: call `down` with the strategy, then `up` for the values.

    All arrays are working memory; the thread's next pass over the same round with the same `scratch` overwrites them.
    """

    def __init__(self, tree: RoundTree, board: Board, reach: Floats, scratch: Scratch) -> None:
        """Start with both players' `reach` at the round's roots, [P, X', U]."""
        self.tree, self.board, self._scratch = tree, board, scratch
        roots, hands = reach.shape[1:]
        first, second = (scratch.array(f"reach {p} {board.round}", (tree.num_rows[p], hands)) for p in (0, 1))
        first[:roots], second[:roots] = reach
        self.rows = first, second  # both players' reach, [rows, U]
        self.sigma: Floats  # the strategy, [E, U]

    def down(self, strategy: Floats, tremble: float = 0.0) -> None:
        """Carry both players' reach from the roots to all rows by the `strategy` [E, U], with at least `tremble`."""
        self.sigma = np.ascontiguousarray(strategy, np.float64)
        push_both(self.tree.arrays, self.sigma, *self.rows, tremble)

    def up(self, objectives: Objectives, deal: Deal) -> Doubles:
        """The values of `objectives` at all nodes of the round, [K, S, U]; `deal` gives the values at its leaves."""
        values = self.leaves([player for player, _ in objectives])
        round_leaves = self.tree.round_leaves
        if len(round_leaves):
            for value, later in zip(values, deal(self.reach_at_leaves()), strict=True):
                value[round_leaves] = later
        for value, (player, doing) in zip(values, objectives, strict=True):
            self.pull(player, doing, value)
        return values

    def reach_at_leaves(self) -> Floats:
        """Both players' reach at the round's leaves, [P, X, U]."""
        tree = self.tree
        return np.stack([self.rows[player][tree.row[player, tree.round_leaves]] for player in (0, 1)])

    def leaves(self, players: Sequence[int]) -> Doubles:
        """Values [K, S, U] of K `players`, filled in at folds and showdowns only."""
        values = self._scratch.array(f"values {self.board.round}", (len(players), self.tree.num_nodes, len(self.board)))
        for place, player in enumerate(players):
            first = players.index(player)
            if first < place:
                values[place] = values[first]
            else:
                self._fill_leaves(player, values[place])
        return values

    def _fill_leaves(self, player: int, values: Doubles) -> None:
        board = self.board
        work = self._scratch.array("leaves", (board.num_cards + 2 + 3 * len(board), LEAF_BLOCK))
        leaf_values(
            self.tree.leaves[player], self.rows[1 - player],
            board.holes, board.canonical, board.group, board.example, work, values,
        )  # fmt: skip

    def absent(self, player: int) -> npt.NDArray[np.bool_]:
        """The hands of a player that do not come to each decision by its own actions, [n, U]; call it after `down`."""
        return self.rows[player][self.tree.row[player, : len(self.tree.nodes)]] < ABSENT

    def pull(self, player: int, free: bool | npt.NDArray[np.bool_], values: Doubles) -> None:
        """Carry one player's `values` [S, U] from the leaves to all decisions.

        The player plays the best action at the nodes in `free` [n], or with the canonical hands there in `free` [n, U]
        (a bool means all or none), and its strategy elsewhere.
        """
        if isinstance(free, bool):
            free = np.full(len(self.tree.nodes), free)
        hands = free[:, None] if free.ndim == 1 else free
        pull_values(self.tree.arrays, player, hands, self.sigma, values)


def showdowns(board: Board, reach: Floats, scratch: Scratch) -> Doubles:
    """The reach of the hands that each hand beats less that of the hands that beat it, [X, U], by `reach` [X, U]."""
    every, one, won = np.arange(len(reach)), np.ones(len(reach)), np.empty(reach.shape)
    work = scratch.array("leaves", (board.num_cards + 2 + 3 * len(board), LEAF_BLOCK))
    leaf_values(
        LeafColumns(every, len(every), every, every, one > 0, one, 0 * one), np.ascontiguousarray(reach, np.float64),
        board.holes, board.canonical, board.group, board.example, work, won,
    )  # fmt: skip
    return won


@dataclass(frozen=True)
class SweepResult:
    """Values of the whole game, in its unit."""

    best_response: tuple[float, float]  # each player's gain by a best response to the other's strategy
    profile: tuple[float, float]  # each player's gain when both follow the strategy
    boards: int  # full boards enumerated


def sweep(
    boards: Boards,
    strategy: BoardStrategy,
    workers: Workers,
    on_board: OnBoard | None = None,
    choose: Choose | None = None,
) -> SweepResult:
    """A full-width pass over a poker game, for one strategy that both players follow.

    Boards merged by suit are valid only for a strategy that is symmetric in the suits. With `choose` the values are
    those of the game that has only the boards which `choose` returns, with their weights.
    """
    full_boards = [0]
    scratch = Scratch()

    def visit(board: Board, reach: Floats, deal: Deal) -> Floats:
        tree = boards.rounds[board.round]
        play = RoundPass(tree, board, reach, scratch)
        play.down(strategy(tree, board))
        if not len(tree.round_leaves):
            full_boards.append(1)
        return play.up(EVERYTHING, deal)[:, tree.roots]

    values = boards.visit_all(visit, workers, on_board, choose).tolist()
    return SweepResult((values[0], values[1]), (values[2], values[3]), sum(full_boards))
