"""Exact matches: all hands on all boards of a poker game, or realization plans over the histories of another one."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from deepcfr.errors import GameError
from deepcfr.evaluation.exploitability import refusal_of
from deepcfr.evaluation.match.profiles import ProfilePass, common_game, poker_game, strategy_on
from deepcfr.evaluation.match.record import Match, match_record, require_same_game
from deepcfr.games.openspiel import OpenSpielGame
from deepcfr.games.poker import PokerGame
from deepcfr.games.sequence_form import realization
from deepcfr.parallel import Workers
from deepcfr.policies.base import Policy
from deepcfr.policies.tree import table_of
from deepcfr.ranges.boards import Board, Boards, Deal, OnBoard


def exact_match(first: Policy, second: Policy, threads: int = 1, on_board: OnBoard | None = None) -> Match:
    """What `first` gains on average against `second`, in poker with card removal and over all boards.

    Boards that differ by a renaming of suits are merged if both policies see canonical suits, and all are enumerated
    otherwise. `on_board(done, total)` reports progress. Torch is set to one thread in this process from then on.
    Raises GameError for policies of different games, and for games out of reach of exact evaluation.
    """
    start = time.perf_counter()
    require_same_game(first.game, second.game)
    reason = refusal_of(first.game)
    if reason:
        sampled = " Boards can be sampled (--boards N), and so can hands (--hands N)."
        raise GameError(reason + (sampled if isinstance(first.game, PokerGame) else ""))
    if isinstance(first.game, PokerGame):
        gains = _gains_on_boards(first, second, threads, on_board)
    else:
        gains = _gains_on_tree(first, second)
    return match_record(first, second, gains, start)


def _gains_on_tree(first: Policy, second: Policy) -> tuple[float, float]:
    """Gains in both seats in a game of OpenSpiel, from the realization plans of both policies."""
    assert isinstance(first.game, OpenSpielGame)
    form = first.game.sequences
    mine, theirs = (realization(table_of(policy), form.parent, form.num_actions) for policy in (first, second))
    zero, one = form.sequences
    return float((form.payoff * mine[zero] * theirs[one]).sum()), -float((form.payoff * theirs[zero] * mine[one]).sum())


def _gains_on_boards(first: Policy, second: Policy, threads: int, on_board: OnBoard | None) -> tuple[float, float]:
    """Gains in both seats in a poker game, from one full-width pass over both profiles."""
    boards = _common_boards(first, second)
    mine, theirs = strategy_on(boards, first), strategy_on(boards, second)
    passes = ProfilePass()

    def visit(board: Board, reach: npt.NDArray[np.floating], deal: Deal) -> npt.NDArray[np.floating]:
        # `visit_all` carries player 1's reach in both profiles; no value of player 0 needs its own
        tree = boards.rounds[board.round]
        both = np.broadcast_to(reach[:, None], (2, 2, *reach.shape[1:]))
        strategies = mine(tree, board), theirs(tree, board)
        return passes.values(tree, board, strategies, both, lambda at_exits: deal(at_exits[:, 1]))

    workers = Workers(threads)
    try:
        values = boards.visit_all(visit, workers, on_board=on_board).tolist()
    finally:
        workers.shutdown()
    return values[0], -values[1]


def _common_boards(first: Policy, second: Policy) -> Boards:
    """Boards that are right for both policies: all of them if one sees raw suits, which merged boards would be wrong for.

    Boards that a policy keeps its tables by are used themselves.
    """
    game = common_game(first, second)
    for policy in (first, second):
        kept: Boards | None = getattr(policy, "boards", None)
        if kept is not None and poker_game(policy).suits == game.suits:
            return kept
    return Boards(game, merge=game.suits == "canonical")
