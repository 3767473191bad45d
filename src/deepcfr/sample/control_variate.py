"""A control variate for the cards of the board: subtracting it from payoffs keeps their mean and reduces their variance.

When a board is dealt, each player has put in some chips, the stake, and two hands have an equity: the mean result of their
showdown, 1 for a win and -1 for a loss, over all boards that may follow. The deal changes the equity; over the cards that
could be dealt, the mean change is zero. So stake times change of equity has mean zero for any earlier and later play. The
control variate is the sum over a game's deals; players need not be all-in. In a duplicate match both games of a deal share
their cards, and the terms differ only in rounds with different stakes.

If more than `MOST_BOARDS` boards may follow, an equity is the mean over that many boards, sampled for this purpose only;
the mean change stays zero. Source: Burch, Schmid, Moravčík, Morrill and Bowling (2018), AIVAT: its part for chance, with
equities as estimates of values.
"""

from __future__ import annotations

from math import comb

import numpy as np

from deepcfr.buckets.kernels import next_runout
from deepcfr.core.compiled import nb
from deepcfr.core.rng import key
from deepcfr.core.types import Cards, Doubles, Ints
from deepcfr.game.betting import PublicTree
from deepcfr.game.cards import address_of, uniform_at
from deepcfr.game.hands import strength_of_masks
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PokerRules

MOST_BOARDS = 32  # sampled boards of an equity; more would take more time than the shorter interval is worth


class BoardControlVariate:
    """The control variate of boards in games of one `PokerGame`; sampled equities draw from `stream`."""

    def __init__(self, game: PokerGame, stream: int) -> None:
        self._rules, self._stream = game.rules, stream
        self._stakes = stakes(game.rules, game.tree) / game.rules.unit_chips

    def __call__(self, cards: Cards, numbers: Ints, ends: Ints) -> Doubles:
        """The control variate of player 0 in two games of each deal, float64 [2, B] in units.

        `cards` is uint8 [B, 2 * hole + board] as from `PokerGame.deal_cards`, `numbers` [B] are the numbers of the
        deals, and `ends` [2, B] are the terminal nodes of their games. Rounds with equal stakes in both games are skipped:
        they do not change the difference of the games.
        """
        rounds = self._rules.num_rounds
        stake = np.zeros((2, rounds + 1, len(cards)))
        stake[:, :rounds] = self._stakes[ends].transpose(0, 2, 1)
        differs = stake[0] != stake[1]
        found = np.zeros(ends.shape)
        before = np.zeros(len(cards))
        for round_ in range(rounds):
            equity = np.zeros(len(cards))
            asked = np.flatnonzero(differs[round_] | differs[round_ + 1])
            rules = self._rules
            known = sum(rules.board_cards[: round_ + 1])
            left = rules.num_cards - 2 * rules.hole_cards - known
            boards = comb(left, sum(rules.board_cards) - known)
            sample = MOST_BOARDS if boards > MOST_BOARDS else 0
            stream = np.uint64(key(self._stream, "equity", round_))
            equity[asked] = mean_results(
                cards[asked], numbers[asked], rules.hole_cards, known, rules.num_cards, rules.num_suits, sample, stream
            )
            found += np.where(differs[round_], stake[:, round_] * (equity - before), 0)
            before = equity
        return found


def stakes(rules: PokerRules, tree: PublicTree) -> Ints:
    """Chips that each player had put in when a round's cards were dealt, on the path to every node: int64 [N, R].

    0 for the first round, and for rounds that are not reached. After an all-in all rounds are dealt.
    """
    found = np.zeros((tree.num_nodes, rules.num_rounds), np.int64)
    for node in range(1, tree.num_nodes):  # children follow their parents
        parent = tree.parent[node]
        found[node] = found[parent]
        found[node, tree.round[parent] + 1 : tree.round[node] + 1] = tree.chips[node].min()
    return found


@nb.njit(cache=True, nogil=True)
def mean_results(
    cards: Cards,
    numbers: Ints,
    hole: int,
    known: int,
    num_cards: int,
    num_suits: int,
    sample: int,
    stream: np.uint64,
) -> Doubles:
    """The mean showdown result over completions of the board, float64 [B]: 1 if the first hand wins, -1 if it loses.

    `cards` is uint8 [B, 2 * hole + board]: the two hands and the board in order, of which the first `known` cards are
    fixed. All completions are enumerated, or `sample` of them are drawn from `stream`, by the number of each row.
    """
    slots = cards.shape[1]
    missing = slots - 2 * hole - known
    result = np.empty(len(cards), np.float64)
    left = np.empty(num_cards, np.int64)
    pick = np.empty(missing, np.int64)
    start, full = np.empty((2, 4), np.int64), np.empty((2, 4), np.int64)
    for row in range(len(cards)):
        free = _split(cards[row], hole, known, num_cards, num_suits, start, left)
        total = boards = 0
        if sample:
            address = address_of(stream, numbers[row])
            for boards in range(1, sample + 1):
                full[:] = start
                for i in range(missing):  # each shuffle continues from the deck of the last one
                    j = i + int(uniform_at(address, boards * missing + i) * (free - i))
                    left[i], left[j] = left[j], left[i]
                    _add(full, left[i], num_suits)
                total += _showdown(full)
        else:
            for i in range(missing):
                pick[i] = i
            more = True
            while more:
                full[:] = start
                for i in range(missing):
                    _add(full, left[pick[i]], num_suits)
                total += _showdown(full)
                boards += 1
                more = next_runout(pick, free)
        result[row] = total / boards
    return result


@nb.njit(cache=True, nogil=True)
def _split(cards: Cards, hole: int, known: int, num_cards: int, num_suits: int, masks: Ints, left: Ints) -> int:
    """Write both hands with the known board to `masks` [2, 4] and all other cards to `left`; returns their number."""
    masks[:] = 0
    used = 0
    for slot in range(2 * hole + known):
        card = int(cards[slot])
        used |= 1 << card
        for player in range(2):
            if slot >= 2 * hole or slot // hole == player:
                masks[player, card % num_suits] |= 1 << (card // num_suits)
    free = 0
    for card in range(num_cards):
        if not used >> card & 1:
            left[free] = card
            free += 1
    return free


@nb.njit(cache=True, nogil=True)
def _add(masks: Ints, card: int, num_suits: int) -> None:
    for player in range(2):
        masks[player, card % num_suits] |= 1 << (card // num_suits)


@nb.njit(cache=True, nogil=True)
def _showdown(masks: Ints) -> int:
    mine = strength_of_masks(masks[0, 0], masks[0, 1], masks[0, 2], masks[0, 3])
    theirs = strength_of_masks(masks[1, 0], masks[1, 1], masks[1, 2], masks[1, 3])
    return int(mine > theirs) - int(mine < theirs)
