"""Exact gains of deviating from a strategy at only some of its decisions.

A full best response shows how much a strategy loses, but not where. Here the best-responding player is free at a chosen
set of public nodes and plays its own strategy at all others. One pass over the boards gives the gains of several sets:
they share strategies, reach and terminal values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepcfr.boards.boards import Board, Boards, Deal, OnBoard
from deepcfr.boards.rounds import RoundTree
from deepcfr.boards.sweep import BoardStrategy, RoundPass, Scratch
from deepcfr.core.errors import GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.types import Bools
from deepcfr.game.betting import CALL, RAISE, PublicTree
from deepcfr.game.poker import poker_game
from deepcfr.game.rules import PokerRules
from deepcfr.measure.exploitability import why_not_exact
from deepcfr.policy.base import Policy, boards_for

PLAYERS = (0, 1)
ALL = "everywhere"
KINDS = ("first to act", "after a check or call", "facing one bet", "facing two or more bets")


@dataclass(frozen=True)
class DecisionSet:
    """A set of decision nodes of a public tree, of both players, at which a player may deviate."""

    name: str
    round: int | None  # the betting round, from 0; None for all of them
    kind: int | None  # an index into KINDS; None for all of them
    free: Bools  # [decisions]


@dataclass(frozen=True)
class Deviation:
    """Each player's gain over its strategy by the best deviation at a set of nodes, in thousandths of the unit."""

    name: str
    round: int | None
    kind: int | None
    decisions: int  # nodes in the set
    gains: tuple[float, float]

    @property
    def nash_conv(self) -> float:
        """The sum of both players' gains; for the set of all decisions this is NashConv."""
        return sum(self.gains)


def decision_sets(rules: PokerRules, tree: PublicTree) -> list[DecisionSet]:
    """The set of all decisions, and for every round the set of its decisions and its subsets by `KINDS`.

    Kinds count the bets and raises of the round, not blinds. In a game with one round, that round has no set of its
    own. Kinds that do not occur are left out.
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
    """The name of a round, such as `round 2 (3 board cards)`."""
    cards = sum(rules.board_cards[: round_ + 1])
    return f"round {round_ + 1} ({cards or 'no'} board card{'' if cards == 1 else 's'})"


def decision_kinds(tree: PublicTree) -> npt.NDArray[np.int64]:
    """The kind of each decision, as an index into `KINDS`, int64 [decisions]."""
    calls, raises = np.zeros(tree.num_nodes, np.int64), np.zeros(tree.num_nodes, np.int64)
    for node in range(1, tree.num_nodes):
        parent = tree.parent[node]
        if tree.round[node] == tree.round[parent]:
            calls[node] = calls[parent] + (tree.child[parent, CALL] == node)
            raises[node] = raises[parent] + bool((tree.child[parent, RAISE:] == node).any())
    quiet = np.where(calls > 0, 1, 0)
    return np.where(raises == 0, quiet, np.minimum(raises + 1, 3))[: tree.num_decisions]


def deviations(
    policy: Policy, sets: Sequence[DecisionSet], *, threads: int = 1, on_board: OnBoard | None = None
) -> list[Deviation]:
    """The exact gain of deviating at each of `sets`, for each player against the policy of the other.

    The gain at a set is the value of the best response among the strategies that equal the player's own outside the
    set, minus the value of its own strategy. It is at least 0, at most the gain of any larger set, and for all
    decisions the player's part of NashConv. Gains of disjoint sets do not add up to the gain of their union, because a
    deviation at one set changes the values at the others. Boards are merged as in `exploitability`. Sets torch to one
    thread in this process. Raises GameError for games that are not poker and for games too large for exact evaluation.
    """
    game = poker_game(policy.game, "Deviations are measured round by round in poker games")
    reason = why_not_exact(game)
    if reason:
        raise GameError(reason)
    masks = np.array([one.free for one in sets], bool).reshape(len(sets), game.tree.num_decisions)
    with Workers(threads) as workers:
        gains = restricted_gains(boards_for(policy), policy.on_board, masks, workers, on_board)
    return [
        Deviation(one.name, one.round, one.kind, int(one.free.sum()), (1000 * float(first), 1000 * float(second)))
        for one, (first, second) in zip(sets, gains.T, strict=True)
    ]


def restricted_gains(
    boards: Boards, strategy: BoardStrategy, masks: Bools, workers: Workers, on_board: OnBoard | None = None
) -> npt.NDArray[np.float64]:
    """Each player's gain by deviating at each of the sets `masks` [M, decisions], float64 [P, M] in the unit.

    One more set, the empty one, gives the values of the profile itself.
    """
    masks = np.concatenate([masks, np.zeros((1, masks.shape[1]), bool)])
    rounds, scratch, count = boards.rounds, Scratch(), len(masks)
    patterns = [[_patterns(tree, player, masks) for player in PLAYERS] for tree in rounds]

    def visit(board: Board, reach: npt.NDArray[np.floating], deal: Deal) -> npt.NDArray[np.floating]:
        tree = rounds[board.round]
        play = RoundPass(tree, board, reach, scratch)
        play.down(strategy(tree, board))
        later = deal(play.reach_at_leaves()) if len(tree.round_leaves) else None
        result = np.empty((len(PLAYERS), count, len(tree.roots), len(board)))
        for player in PLAYERS:
            after = None if later is None else later[player * count : (player + 1) * count]
            _pull_all(play, player, patterns[board.round][player], after, result[player])
        return result.reshape(-1, len(tree.roots), len(board))

    values = boards.visit_all(visit, workers, on_board=on_board).reshape(len(PLAYERS), count)
    return values[:, :-1] - values[:, -1:]


def _patterns(tree: RoundTree, player: int, masks: Bools) -> tuple[Bools, npt.NDArray[np.int64]]:
    """The distinct sets of the player's nodes of a round, bool [G, n], and the index of each mask's set, [M]."""
    here = masks[:, tree.nodes] & (tree.actor == player)
    patterns, pattern_of = np.unique(here, axis=0, return_inverse=True)
    return np.ascontiguousarray(patterns), pattern_of.reshape(-1)


def _pull_all(
    play: RoundPass,
    player: int,
    patterns: tuple[Bools, npt.NDArray[np.int64]],
    after: npt.NDArray[np.float64] | None,
    result: npt.NDArray[np.float64],
) -> None:
    """Fill `result` [M, X', U], the player's values at the round's roots for every set.

    `after` [M, X, U] holds the values of the next round. In the last round sets that agree on the round's nodes have
    equal values, which are computed once.
    """
    tree, (distinct, pattern_of) = play.tree, patterns
    values = play.leaves([player])[0]
    if after is None:
        for index, free in enumerate(distinct):
            play.pull(player, free, values)
            result[pattern_of == index] = values[tree.roots]
        return
    for number, index in enumerate(pattern_of):
        values[tree.round_leaves] = after[number]
        play.pull(player, distinct[index], values)
        result[number] = values[tree.roots]
