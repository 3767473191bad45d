"""Exact best-response and profile values of a poker game: boards by enumeration, hands all at once, nothing sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepcfr.parallel import Workers
from deepcfr.ranges.boards import Board, Boards, Choose, Deal, OnBoard, RoundTree
from deepcfr.ranges.kernels import leaf_values, pull_values, push_both
from deepcfr.ranges.scratch import Scratch

BoardStrategy = Callable[[RoundTree, Board], npt.NDArray[np.floating]]
"""(round, board) to the probability of every edge of the round with every view of the board, [E, U]."""


@dataclass(frozen=True)
class SweepResult:
    """Values in the game's unit, for a game played from the deal."""

    best_response: tuple[float, float]  # what each player gains by a best response to the other's strategy
    profile: tuple[float, float]  # what each player gains when both keep to the strategy
    boards: int  # full boards enumerated


def sweep(
    boards: Boards,
    strategy: BoardStrategy,
    workers: Workers,
    on_board: OnBoard | None = None,
    choose: Choose | None = None,
) -> SweepResult:
    """A full-width pass over a poker game, for one strategy that both players follow.

    Boards that are merged by suit are right only for a strategy that is symmetric in the suits. With `choose` the values
    are those of the game that has only the boards which it returns, with the weights that they have there.
    """
    rounds = boards.rounds
    full_boards = [0]
    scratch = Scratch()

    def visit(board: Board, reach: npt.NDArray[np.floating], deal: Deal) -> npt.NDArray[np.floating]:
        tree = rounds[board.round]
        sigma = np.ascontiguousarray(strategy(tree, board), np.float64)
        rows = reach_rows(tree, board.round, reach, scratch)
        push_both(tree.actor, tree.first_edge, tree.edge_row, tree.row, sigma, *rows)
        both = scratch.array(f"values {board.round}", (2, 2, tree.num_slots, len(board)))
        best, profile = both
        for player in (0, 1):
            fill_leaves(tree, board, player, rows[1 - player], best[player], scratch)
        profile[:] = best
        if len(tree.exits):
            later = deal(reach_at_exits(tree, rows))
            best[:, tree.exits], profile[:, tree.exits] = later[:2], later[2:]
        else:
            full_boards.append(1)
        for player in (0, 1):
            pull_values(tree.actor, tree.first_edge, tree.edge_slot, player, True, sigma, best[player])
            pull_values(tree.actor, tree.first_edge, tree.edge_slot, player, False, sigma, profile[player])
        return both[:, :, tree.entries].reshape(4, len(tree.entries), len(board))

    values = boards.visit_all(visit, workers, on_board, choose).tolist()
    return SweepResult((values[0], values[1]), (values[2], values[3]), sum(full_boards))


def reach_rows(
    tree: RoundTree, round_: int, reach: npt.NDArray[np.floating], scratch: Scratch
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]:
    """Both players' reach [rows, U] with the entries filled in from `reach` [P, entries, U]."""
    rows = [scratch.array(f"reach {player} {round_}", (tree.num_rows[player], reach.shape[2])) for player in (0, 1)]
    for player in (0, 1):
        rows[player][: reach.shape[1]] = reach[player]
    return rows[0], rows[1]


def reach_at_exits(
    tree: RoundTree, rows: tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]
) -> npt.NDArray[np.floating]:
    """Both players' reach where the round leads to the next, [P, X, U]."""
    return np.stack([rows[player][tree.row[player, tree.exits]] for player in (0, 1)])


def fill_leaves(
    tree: RoundTree,
    board: Board,
    player: int,
    reach: npt.NDArray[np.floating],
    values: npt.NDArray[np.floating],
    scratch: Scratch,
) -> None:
    """One player's `values` [S, U] at the round's folds and showdowns, from the opponent's `reach` [rows, U]."""
    leaves, count = tree.leaves[player], len(board)
    columns = len(leaves.rows)
    leaf_values(
        leaves.rows, leaves.slot, leaves.column, leaves.showdown, leaves.payoff,
        reach, board.holes, board.view, board.group, board.example,
        scratch.array("by card", (board.num_cards + 1, columns)),
        scratch.array("turned", (count, columns)),
        scratch.array("anyone", (count, columns)),
        scratch.array("ahead", (count, leaves.num_showdown)),
        values,
    )  # fmt: skip
