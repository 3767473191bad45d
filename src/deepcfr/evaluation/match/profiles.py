"""One round on one board for both seats of a match: two profiles, and what player 0 gains in each of them.

In profile 0 the first policy is player 0, in profile 1 the second one is. What the first policy gains in both seats is the
first value minus the second. Both come from the same operations in the same order, so of policies that are equal the
difference is exactly 0, and exchanging two policies exactly changes its sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from deepcfr.games.isomorphism import canonical_cards, pack_cards
from deepcfr.games.poker import PokerGame
from deepcfr.policies.base import Policy, board_strategy
from deepcfr.ranges.boards import Board, Boards, RoundTree
from deepcfr.ranges.kernels import pull_values, push_both
from deepcfr.ranges.scratch import Scratch
from deepcfr.ranges.sweep import BoardStrategy, fill_leaves, reach_rows

Floats = npt.NDArray[np.floating]
Later = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
"""Both players' reach at a round's exits in both profiles, [2, P, X, U], to player 0's values there, [2, X, U]."""


class ProfilePass:
    """Passes over single rounds; working memory belongs to the calling thread."""

    def __init__(self) -> None:
        self._scratch = (Scratch(), Scratch())  # of each profile

    def values(
        self, tree: RoundTree, board: Board, strategies: tuple[Floats, Floats], reach: Floats, later: Later
    ) -> npt.NDArray[np.float64]:
        """Player 0's values at the round's entries, [2, X', U], from each policy's strategy [E, U] for both players.

        `reach` [2, P, X', U] is that of both players in both profiles. The result is a new array.
        """
        profiles = [self._profile(seat, tree, board, strategies) for seat in (0, 1)]
        rows = [reach_rows(tree, board.round, reach[i], scratch) for i, scratch in enumerate(self._scratch)]
        values = []
        for profile, row, scratch in zip(profiles, rows, self._scratch, strict=True):
            push_both(tree.actor, tree.first_edge, tree.edge_row, tree.row, profile, *row)
            value = scratch.array(f"values {board.round}", (tree.num_slots, len(board)))
            fill_leaves(tree, board, 0, row[1], value, scratch)
            values.append(value)
        if len(tree.exits):
            at_exits = np.stack([[row[p][tree.row[p, tree.exits]] for p in (0, 1)] for row in rows])
            for value, continued in zip(values, later(at_exits), strict=True):
                value[tree.exits] = continued
        for profile, value in zip(profiles, values, strict=True):
            pull_values(tree.actor, tree.first_edge, tree.edge_slot, 0, False, profile, value)
        return np.stack([value[tree.entries] for value in values])

    def _profile(
        self, number: int, tree: RoundTree, board: Board, strategies: tuple[Floats, Floats]
    ) -> npt.NDArray[np.float64]:
        """The strategy of the policy that is player 0 at its edges, and of the other one at player 1's, [E, U]."""
        profile = self._scratch[number].array(f"profile {board.round}", (tree.num_edges, len(board)))
        np.copyto(profile, strategies[1 - number])
        np.copyto(profile, strategies[number], where=(tree.actor[tree.edge_node] == 0)[:, None])
        return profile


# Boards for two policies ------------------------------------------------------------------------------------------------


def poker_game(policy: Policy) -> PokerGame:
    """The policy's game, which must be a poker game."""
    assert isinstance(policy.game, PokerGame)
    return policy.game


def common_game(first: Policy, second: Policy) -> PokerGame:
    """The game as boards for both policies must show it: in raw suits if one of them sees those."""
    return next((game for game in map(poker_game, (first, second)) if game.suits == "raw"), poker_game(first))


def strategy_on(boards: Boards, policy: Policy) -> BoardStrategy:
    """The policy as a pass over `boards` asks for it, which may show other suits than the policy sees.

    A policy that keeps its tables by boards of its own is asked on those of the same class.
    """
    game, ask = poker_game(policy), board_strategy(policy)
    kept: Boards | None = getattr(policy, "boards", None)
    if kept is not None and kept is not boards:
        ask = _on_kept(kept, ask)
    if game.suits == boards.game.suits:
        return ask

    def on_board(tree: RoundTree, board: Board) -> Floats:
        cards = game.views_of(board.holes[board.example], board.cards)
        _, example, view = np.unique(pack_cards(cards), return_index=True, return_inverse=True)
        return ask(tree, replace(board, view_cards=cards[example]))[:, view]

    return on_board


def _on_kept(kept: Boards, ask: BoardStrategy) -> BoardStrategy:
    """A policy with tables by the boards `kept`, asked on those of the same class: equal views in the same order."""
    own = {_class_of(board, kept): board for round_ in kept.kept for board in round_}
    return lambda tree, board: ask(tree, own[_class_of(board, kept)])


def _class_of(board: Board, kept: Boards) -> tuple[int, bytes]:
    """Which of the kept boards stands for a board, under all renamings of suits if those are merged."""
    cards = np.array([board.cards], np.uint8)
    if kept.merge:
        cards = canonical_cards(cards, board.groups, kept.game.rules.num_suits)
    else:
        start = 0
        for size in board.groups:
            cards[:, start : start + size].sort(axis=1)
            start += size
    return board.round, cards.tobytes()
