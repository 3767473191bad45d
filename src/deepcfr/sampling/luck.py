"""The luck of the board in a game that was played, to be taken off what was gained: a control variate of mean zero.

When a board is dealt, each player has put in some chips, the stake, and two hands have an equity: their mean showdown, 1
for a win and -1 for a loss, over every board that may still come. The deal moves the equity, and its mean over the cards
that might have come is the equity before. So stake times the change of equity has mean zero whatever was played until then
and whatever is played after, and the sum over a game's deals is luck. Players need not be all-in for it. In a duplicate
match a deal's two games share their cards, and what is left of this luck is that of the rounds to which they came with
different stakes. In a traversal the actions at a decision share the luck until then and differ in that of later rounds, so
without it their values are as large in the mean and less noisy.

Where more than `MOST_BOARDS` boards may follow, an equity is the mean over so many that are drawn for this alone. Whatever
they are, the mean of a change stays zero. Source: Burch, Schmid, Moravčík, Morrill and Bowling (2018), AIVAT, of which this
is the part for chance, with equities for its estimates of values.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numba as nb
import numpy as np
import numpy.typing as npt
import torch

from deepcfr.games.betting import PublicTree
from deepcfr.games.hands import strength_of_masks
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.rng import key
from deepcfr.sampling.walk_tree import address_of, uniform_at

MOST_BOARDS = 32  # that an equity is a mean over: with more, the time is not worth the shorter interval

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Cards = npt.NDArray[np.uint8]
Luck = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(node [M], row [M]) to player 0's luck in these histories, float64 [M] in units."""


class BoardLuck:
    """The luck of boards in games of one `PokerGame`; equities that are sampled come from `stream`."""

    def __init__(self, game: PokerGame, stream: int) -> None:
        self._rules, self._stream = game.rules, stream
        self._stakes = stakes(game.rules, game.tree) / game.rules.unit_chips

    def __call__(self, cards: Cards, numbers: Ints, ends: Ints) -> Floats:
        """Player 0's luck in two games of each deal, float64 [2, B] in units.

        `cards` is uint8 [B, 2 * hole + board] as `PokerGame.deal_cards` gives them, `numbers` [B] are the deals' own, and
        `ends` [2, B] the nodes at which their games ended. Where both games have the same stake in a round, they are said
        to have no luck there: their difference is the same, and it costs nothing.
        """
        rounds = self._rules.num_rounds
        stake = np.zeros((2, rounds + 1, len(cards)))
        stake[:, :rounds] = self._stakes[ends].transpose(0, 2, 1)
        differs = stake[0] != stake[1]
        luck = np.zeros(ends.shape)
        before = np.zeros(len(cards))
        for round_ in range(rounds):
            equity = np.zeros(len(cards))
            asked = np.flatnonzero(differs[round_] | differs[round_ + 1])
            equity[asked] = self._equity(cards[asked], numbers[asked], round_)
            luck += np.where(differs[round_], stake[:, round_] * (equity - before), 0)
            before = equity
        return luck

    def of_histories(self, cards: Cards, numbers: Ints, device: str = "cpu") -> Luck:
        """Player 0's luck on the way to any node with any of the deals, whose `cards` and `numbers` are as above."""
        rounds = range(self._rules.num_rounds)
        # no board is dealt before round 0 of most games, and where one is, nothing was staked on it
        equity = np.stack([self._equity(cards, numbers, round_) for round_ in rounds], 1)
        change = torch.from_numpy(np.diff(equity, axis=1, prepend=equity[:, :1])).to(device)
        stake = torch.from_numpy(self._stakes).to(device)
        return lambda node, row: (stake[node] * change[row]).sum(1)

    def _equity(self, cards: Cards, numbers: Ints, round_: int) -> Floats:
        rules = self._rules
        known = sum(rules.board_cards[: round_ + 1])
        left = rules.num_cards - 2 * rules.hole_cards - known
        boards = comb(left, sum(rules.board_cards) - known)
        sample = MOST_BOARDS if boards > MOST_BOARDS else 0
        stream = np.uint64(key(self._stream, "equity", round_))
        return mean_results(cards, numbers, rules.hole_cards, known, rules.num_cards, rules.num_suits, sample, stream)


def stakes(rules: PokerRules, tree: PublicTree) -> Ints:
    """Chips that each player had put in when a round's cards were dealt, on the way to every node: int64 [N, R].

    0 for the first round, and for those that do not come. Players who are all-in go to the showdown through every round.
    """
    found = np.zeros((tree.num_nodes, rules.num_rounds), np.int64)
    for node in range(1, tree.num_nodes):  # a child stands after its parent
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
) -> Floats:
    """The mean showdown of two hands over the ways to complete the board: 1 for a win of the first, -1 for a loss.

    `cards` is uint8 [B, 2 * hole + board], the two hands and the board in order, of which the first `known` cards stand;
    float64 [B]. All completions are enumerated, or `sample` of them drawn, for each row by its number in `stream`.
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
                for i in range(missing):  # a shuffle goes on from where the last one left the deck
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
                more = _next_combination(pick, free)
        result[row] = total / boards
    return result


@nb.njit(cache=True, nogil=True)
def _split(cards: Cards, hole: int, known: int, num_cards: int, num_suits: int, masks: Ints, left: Ints) -> int:
    """Put both hands with the known board into `masks` [2, 4] and all other cards into `left`; returns how many."""
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


@nb.njit(cache=True, nogil=True)
def _next_combination(pick: Ints, count: int) -> bool:
    """Move `pick`, ascending positions below `count`, on to the next combination; False after the last one."""
    place = len(pick) - 1
    while place >= 0 and pick[place] == count - len(pick) + place:
        place -= 1
    if place < 0:
        return False
    pick[place] += 1
    for i in range(place + 1, len(pick)):
        pick[i] = pick[i - 1] + 1
    return True
