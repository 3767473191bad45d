"""The luck of the board in a game that was played, to be taken off what was gained: a control variate of mean zero.

When a board is dealt, each player has put in some chips, the stake, and two hands have an equity: their mean showdown,
1 for a win and -1 for a loss, over every board that may still come. The deal moves the equity, and its mean over the
cards that might have come is the equity before. So stake times the change of equity has mean zero whatever was played
until then and whatever is played after, and the sum over a game's deals is luck. Players need not be all-in for it. In
a duplicate match a deal's two games share their cards, and what is left of this luck is that of the rounds to which
they came with different stakes.

A deal from which so many boards may follow that they are not enumerated (`MOST_BOARDS`) counts as no luck: that of the
flop in hold'em. Source: Burch, Schmid, Moravčík, Morrill and Bowling (2018), AIVAT, of which this is the part for
chance, with equities for its estimates.
"""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.games.betting import PublicTree
from deepcfr.games.hands import mean_results
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules

MOST_BOARDS = 1_000  # that are enumerated for the equity of a pair of hands: C(45, 2) = 990 after hold'em's flop

Floats = npt.NDArray[np.float64]


class BoardLuck:
    """The luck of boards in games of one `PokerGame`."""

    def __init__(self, game: PokerGame) -> None:
        self._rules = game.rules
        self._unit = game.rules.unit_chips
        self._stakes = stakes(game.rules, game.tree)
        self._rounds = [r for r in range(1, game.rules.num_rounds) if _boards_before(game.rules, r) <= MOST_BOARDS]

    def __call__(self, cards: npt.NDArray[np.uint8], first: torch.Tensor, second: torch.Tensor) -> Floats:
        """Player 0's luck in two games of each deal, which end at the nodes `first` and `second`; float64 [2, B] in units.

        `cards` is uint8 [B, 2 * hole + board], as `PokerGame.deal_cards` gives them. Where both games have the same
        stake in a round, they are said to have no luck there: their difference is the same, and it costs nothing.
        """
        ends = np.stack([first.cpu().numpy(), second.cpu().numpy()])
        luck = np.zeros(ends.shape)
        for round_ in self._rounds:
            stake = self._stakes[ends, round_]
            rows = np.flatnonzero(stake[0] != stake[1])
            moved = self._equity(cards[rows], round_) - self._equity(cards[rows], round_ - 1)
            luck[:, rows] += stake[:, rows] / self._unit * moved
        return luck

    def _equity(self, cards: npt.NDArray[np.uint8], round_: int) -> Floats:
        rules = self._rules
        known = sum(rules.board_cards[: round_ + 1])
        return mean_results(cards, rules.hole_cards, known, rules.num_cards, rules.num_suits)


def stakes(rules: PokerRules, tree: PublicTree) -> npt.NDArray[np.int64]:
    """Chips that each player had put in when a round's cards were dealt, on the way to every node: int64 [N, R].

    0 for a round that the node is not after. Players who are all-in go to the showdown through every round's cards.
    """
    found = np.zeros((tree.num_nodes, rules.num_rounds), np.int64)
    for node in range(1, tree.num_nodes):  # a child stands after its parent
        parent = tree.parent[node]
        found[node] = found[parent]
        found[node, tree.round[parent] + 1 : tree.round[node] + 1] = tree.chips[node].min()
    return found


def _boards_before(rules: PokerRules, round_: int) -> int:
    """How many boards may still come before a round's cards are dealt, to two hands that are known."""
    seen = 2 * rules.hole_cards + sum(rules.board_cards[:round_])
    return comb(rules.num_cards - seen, sum(rules.board_cards[round_:]))
