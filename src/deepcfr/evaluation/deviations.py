"""What a player gains by deviating from its strategy at some of its decisions only, exactly.

A full best response says how much a strategy gives away, not where. Here the best-responding player is free at a chosen set
of public nodes and keeps to its own strategy at all others. The gains of several sets come from one pass over the boards:
strategies, reach and the values at the ends of the game are shared between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepcfr.errors import GameError
from deepcfr.evaluation.exploitability import refusal_of
from deepcfr.games.betting import CALL, RAISE, PublicTree
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.parallel import Workers
from deepcfr.policies.base import Policy, board_strategy
from deepcfr.ranges.boards import Board, Boards, Deal, OnBoard, RoundTree
from deepcfr.ranges.kernels import pull_restricted, push_both
from deepcfr.ranges.scratch import Scratch
from deepcfr.ranges.sweep import BoardStrategy, fill_leaves, reach_at_exits, reach_rows

PLAYERS = (0, 1)
ALL = "everywhere"
KINDS = ("first to act", "after a check or call", "facing one bet", "facing two or more bets")
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class DecisionSet:
    """Decision nodes of a public tree at which a player may deviate, of both players."""

    name: str
    round: int | None  # the betting round, from 0; None for all of them
    kind: int | None  # a position in KINDS; None for all of them
    free: Mask  # [decisions]


@dataclass(frozen=True)
class Deviation:
    """What each player gains over its strategy by the best deviation at a set of nodes, in thousandths of the unit."""

    name: str
    round: int | None
    kind: int | None
    decisions: int  # nodes in the set
    gains: tuple[float, float]

    @property
    def nash_conv(self) -> float:
        """The set's contribution: the sum of both players' gains, NashConv itself for the set of all decisions."""
        return sum(self.gains)


def decision_sets(rules: PokerRules, tree: PublicTree) -> list[DecisionSet]:
    """All decisions; then for every round all of its decisions, and these parted by what the player faces (`KINDS`).

    Bets and raises are counted in the round, blinds are not. In a game of one round the round is not repeated, and kinds
    that do not occur are left out.
    """
    rounds, kinds = tree.round[: tree.num_decisions], decision_kinds(tree)
    sets = [DecisionSet(ALL, None, None, np.ones(tree.num_decisions, bool))]
    for round_ in range(rules.num_rounds):
        here = rounds == round_
        name = round_name(rules, round_)
        if rules.num_rounds > 1:
            sets.append(DecisionSet(name, round_, None, here))
        for kind, words in enumerate(KINDS):
            part = here & (kinds == kind)
            if part.any():
                sets.append(DecisionSet(f"{name}, {words}", round_, kind, part))
    return sets


def round_name(rules: PokerRules, round_: int) -> str:
    """Such as `round 2 (3 board cards)`."""
    cards = sum(rules.board_cards[: round_ + 1])
    return f"round {round_ + 1} ({cards or 'no'} board card{'' if cards == 1 else 's'})"


def decision_kinds(tree: PublicTree) -> npt.NDArray[np.int64]:
    """What each decision faces, as a position in `KINDS`, int64 [decisions]."""
    calls, raises = np.zeros(tree.num_nodes, np.int64), np.zeros(tree.num_nodes, np.int64)
    for node in range(1, tree.num_nodes):
        parent = tree.parent[node]
        if tree.round[node] == tree.round[parent]:
            calls[node] = calls[parent] + (tree.child[parent, CALL] == node)
            raises[node] = raises[parent] + (tree.child[parent, RAISE] == node)
    quiet = np.where(calls > 0, 1, 0)
    return np.where(raises == 0, quiet, np.minimum(raises + 1, 3))[: tree.num_decisions]


def deviations(
    policy: Policy, sets: Sequence[DecisionSet], *, threads: int = 1, on_board: OnBoard | None = None
) -> list[Deviation]:
    """The exact gain of deviating at each of `sets`, for each player against the policy of the other.

    The gain at a set is the value of the best response among the strategies that equal the player's own outside it, less
    the value of its own: at least 0, at most the gain of any larger set, and for all decisions the player's part of
    NashConv. Gains of sets that share no node do not add up to that of their union: a deviation at one changes what the
    others are worth. Boards are merged as in `exploitability`, and torch is set to one thread in this process.
    Raises GameError for games that are not poker and for games out of reach.
    """
    game = policy.game
    if not isinstance(game, PokerGame):
        raise GameError(f"Deviations are measured round by round in poker games, and '{game.name}' is not one.")
    reason = refusal_of(game)
    if reason:
        raise GameError(reason)
    boards = getattr(policy, "boards", None) or Boards(game, merge=game.suits == "canonical")
    workers = Workers(threads)
    try:
        masks = np.array([one.free for one in sets], bool).reshape(len(sets), game.tree.num_decisions)
        gains = restricted_gains(boards, board_strategy(policy), masks, workers, on_board)
    finally:
        workers.shutdown()
    return [
        Deviation(one.name, one.round, one.kind, int(one.free.sum()), (1000 * float(first), 1000 * float(second)))
        for one, (first, second) in zip(sets, gains.T, strict=True)
    ]


def restricted_gains(
    boards: Boards, strategy: BoardStrategy, masks: Mask, workers: Workers, on_board: OnBoard | None = None
) -> npt.NDArray[np.float64]:
    """What each player gains by deviating at each of the sets `masks` [M, decisions], float64 [P, M] in the unit.

    The values of the profile itself are those of one more set, the empty one.
    """
    masks = np.concatenate([masks, np.zeros((1, masks.shape[1]), bool)])
    rounds, scratch, count = boards.rounds, Scratch(), len(masks)
    patterns = [[_patterns(tree, player, masks) for player in PLAYERS] for tree in rounds]

    def visit(board: Board, reach: npt.NDArray[np.floating], deal: Deal) -> npt.NDArray[np.floating]:
        tree = rounds[board.round]
        sigma = np.ascontiguousarray(strategy(tree, board), np.float64)
        rows = reach_rows(tree, board.round, reach, scratch)
        push_both(tree.actor, tree.first_edge, tree.edge_row, tree.row, sigma, *rows)
        later = deal(reach_at_exits(tree, rows)) if len(tree.exits) else None
        values = scratch.array(f"values {board.round}", (tree.num_slots, len(board)))
        result = np.empty((len(PLAYERS), count, len(tree.entries), len(board)))
        for player in PLAYERS:
            fill_leaves(tree, board, player, rows[1 - player], values, scratch)
            after = None if later is None else later[player * count : (player + 1) * count]
            _pull_all(tree, player, patterns[board.round][player], sigma, after, values, result[player])
        return result.reshape(-1, len(tree.entries), len(board))

    values = boards.visit_all(visit, workers, on_board=on_board).reshape(len(PLAYERS), count)
    return values[:, :-1] - values[:, -1:]


def _patterns(tree: RoundTree, player: int, masks: Mask) -> tuple[Mask, npt.NDArray[np.int64]]:
    """The distinct sets of the player's nodes of a round, bool [G, n], and which of them each of `masks` has there, [M]."""
    here = masks[:, tree.nodes] & (tree.actor == player)
    patterns, pattern_of = np.unique(here, axis=0, return_inverse=True)
    return np.ascontiguousarray(patterns), pattern_of.reshape(-1)


def _pull_all(
    tree: RoundTree,
    player: int,
    patterns: tuple[Mask, npt.NDArray[np.int64]],
    sigma: npt.NDArray[np.float64],
    after: npt.NDArray[np.float64] | None,
    values: npt.NDArray[np.float64],
    result: npt.NDArray[np.float64],
) -> None:
    """Fill `result` [M, X', U], the player's values at the round's entries for every set.

    `values` [S, U] holds those at folds and showdowns, and is overwritten elsewhere; `after` [M, X, U] is what the next
    round is worth. In the last round sets that agree on the round's nodes are worth the same, and are computed once.
    """
    distinct, pattern_of = patterns
    if after is None:
        for index, free in enumerate(distinct):
            pull_restricted(tree.actor, tree.first_edge, tree.edge_slot, player, free, sigma, values)
            result[pattern_of == index] = values[tree.entries]
        return
    for number, index in enumerate(pattern_of):
        values[tree.exits] = after[number]
        pull_restricted(tree.actor, tree.first_edge, tree.edge_slot, player, distinct[index], sigma, values)
        result[number] = values[tree.entries]
