"""Exact matches: all hands on all boards of a poker game, or realization plans over the tree of another game.

One pass over a round on one board computes player 0's gain in two profiles (`ProfilePass`), one for each seat of the
match. In profile 0 the first policy is player 0, in profile 1 the second policy is. The first policy's gain in both
seats is the first value minus the second. Both come from the same operations in the same order, so the difference is
exactly 0 for equal policies, and exchanging the policies exactly changes its sign.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from deepcfr.boards.boards import Board, Boards, Deal, OnBoard
from deepcfr.boards.rounds import RoundTree
from deepcfr.boards.sweep import BoardStrategy, RoundPass, Scratch
from deepcfr.core.errors import GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.types import Floats
from deepcfr.game.cards import canonical_cards, pack_cards, sort_groups
from deepcfr.game.explicit import realization
from deepcfr.game.poker import PokerGame, poker_game
from deepcfr.game.tree_game import tree_game
from deepcfr.measure.exploitability import why_not_exact
from deepcfr.measure.match.record import Match, match_record, require_same_game
from deepcfr.policy.base import Policy, measures_itself
from deepcfr.policy.tables import table_of


def exact_match(first: Policy, second: Policy, threads: int = 1, on_board: OnBoard | None = None) -> Match:
    """The exact mean gain of `first` against `second`, in poker with card removal and over all boards.

    Boards that differ by a renaming of suits are merged if both policies see canonical suits; otherwise all boards are
    enumerated. `on_board(done, total)` reports progress. Sets torch to one thread in this process.
    Raises GameError for policies of different games, and for games too large for exact evaluation.
    """
    start = time.perf_counter()
    require_same_game(first.game, second.game)
    reason = why_not_exact(first.game)
    if reason:
        sampled = " Boards can be sampled (--boards N), and so can hands (--hands N)."
        raise GameError(reason + (sampled if isinstance(first.game, PokerGame) else ""))
    if isinstance(first.game, PokerGame):
        gains = _gains_on_boards(first, second, threads, on_board)
    else:
        gains = _gains_on_tree(first, second, threads, on_board)
    return match_record(first, second, gains, start)


def _gains_on_tree(first: Policy, second: Policy, threads: int, on_part: OnBoard | None) -> tuple[float, float]:
    """Gains in both seats from all histories of a game that is no poker."""
    game = first.game
    if measures_itself(game):
        (_, as_first), (_, as_second) = game.exact_payoffs(first, second, threads, on_part)
        return as_first, as_second
    form = tree_game(game).sequences
    mine, theirs = (realization(table_of(policy), form.parent, form.num_actions) for policy in (first, second))
    zero, one = form.sequences
    return float((form.payoff * mine[zero] * theirs[one]).sum()), -float((form.payoff * theirs[zero] * mine[one]).sum())


def _gains_on_boards(first: Policy, second: Policy, threads: int, on_board: OnBoard | None) -> tuple[float, float]:
    """Gains in both seats in a poker game, from one full-width pass over both profiles."""
    boards = _common_boards(first, second)
    mine, theirs = strategy_on(boards, first), strategy_on(boards, second)
    passes = ProfilePass()

    def visit(board: Board, reach: Floats, deal: Deal) -> Floats:
        # `visit_all` carries player 1's reach in both profiles; no value of player 0 needs its own
        tree = boards.rounds[board.round]
        both = np.broadcast_to(reach[:, None], (2, 2, *reach.shape[1:]))
        strategies = mine(tree, board), theirs(tree, board)
        return passes.values(tree, board, strategies, both, lambda at_leaves: deal(at_leaves[:, 1]))

    with Workers(threads) as workers:
        values = boards.visit_all(visit, workers, on_board=on_board).tolist()
    return values[0], -values[1]


def _common_boards(first: Policy, second: Policy) -> Boards:
    """Boards that are valid for both policies: all boards if one sees raw suits, for which merged boards are not valid.

    If a policy has its own boards, those are used.
    """
    game = common_game(first, second)
    for policy in (first, second):
        if policy.boards and poker_game(policy.game).suits == game.suits:
            return policy.boards
    return Boards(game, merge=game.suits == "canonical")


Later = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
"""Both players' reach at a round's leaves in both profiles, [2, P, X, U], to player 0's values there, [2, X, U]."""


class ProfilePass:
    """Passes over single rounds; each thread has its own working memory."""

    def __init__(self) -> None:
        self._scratch = (Scratch(), Scratch())  # one for each profile

    def values(
        self, tree: RoundTree, board: Board, strategies: tuple[Floats, Floats], reach: Floats, later: Later
    ) -> npt.NDArray[np.float64]:
        """Player 0's values at the round's roots, [2, X', U], from each policy's strategy [E, U] for both players.

        `reach` [2, P, X', U] is the reach of both players in both profiles. The result is a new array.
        """
        plays = [RoundPass(tree, board, reach[i], scratch) for i, scratch in enumerate(self._scratch)]
        for number, play in enumerate(plays):
            play.down(self._profile(number, tree, board, strategies))
        values = [play.leaves([0])[0] for play in plays]
        if len(tree.round_leaves):
            for value, continued in zip(
                values, later(np.stack([play.reach_at_leaves() for play in plays])), strict=True
            ):
                value[tree.round_leaves] = continued
        for play, value in zip(plays, values, strict=True):
            play.pull(0, False, value)
        return np.stack([value[tree.roots] for value in values])

    def _profile(
        self, number: int, tree: RoundTree, board: Board, strategies: tuple[Floats, Floats]
    ) -> npt.NDArray[np.float64]:
        """The strategies of both players in a profile, each at its own edges, [E, U]."""
        profile = self._scratch[number].array(f"profile {board.round}", (tree.num_edges, len(board)))
        np.copyto(profile, strategies[1 - number])
        np.copyto(profile, strategies[number], where=(tree.actor[tree.edge_node] == 0)[:, None])
        return profile


# Boards for two policies
# ------------------------------------------------------------------------------------------------


def common_game(first: Policy, second: Policy) -> PokerGame:
    """The game whose boards suit both policies: with raw suits if one of them sees raw suits."""
    games = poker_game(first.game), poker_game(second.game)
    return next((game for game in games if game.suits == "raw"), games[0])


def strategy_on(boards: Boards, policy: Policy) -> BoardStrategy:
    """The policy's strategy on any of `boards`, whose suits may differ from those that the policy sees.

    A policy with its own boards is evaluated on its board of the same class.
    """
    game = poker_game(policy.game)
    ask: BoardStrategy = policy.on_board
    if policy.boards and policy.boards is not boards:
        ask = _on_kept(policy.boards, ask)
    if game.suits == boards.game.suits:
        return ask

    def on_board(tree: RoundTree, board: Board) -> Floats:
        cards = game.visible_cards(board.holes[board.example], board.cards)
        _, example, canonical = np.unique(pack_cards(cards), return_index=True, return_inverse=True)
        return ask(tree, replace(board, visible_cards=cards[example]))[:, canonical]

    return on_board


def _on_kept(kept: Boards, ask: BoardStrategy) -> BoardStrategy:
    """The strategy of a policy with its own boards `kept`, on boards of the same class: equal canonical hands in the
    same order.
    """
    own = {_class_of(board, kept): board for round_ in kept.kept for board in round_}
    return lambda tree, board: ask(tree, own[_class_of(board, kept)])


def _class_of(board: Board, kept: Boards) -> tuple[int, bytes]:
    """The class of a board, under all renamings of suits if `kept` is merged."""
    cards = np.array([board.cards], np.uint8)
    if kept.merge:
        cards = canonical_cards(cards, board.groups, kept.game.rules.num_suits)
    else:
        sort_groups(cards[0], np.array(board.groups, np.int64))
    return board.round, cards.tobytes()
