"""Sampled runouts: the public cards of a whole game, and the boards of one runout without those of all others.

The boards of a runout carry weights that make a pass over them unbiased for one over all boards. What two hands gain is the
mean over the boards that share no card with either, each with chance 1 / C(cards left to the dealer, new cards). A
runout is drawn from the deck without regard to hands, so a board comes with chance 1 / C(cards not on the board, new
cards), and its values count (first chance) / (second chance) times: that makes up for the runouts on which one of the two
hands is dead and the pair is missing. `SampledBoards.after` applies it round by round.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.ranges.boards import Board, Boards
from deepcfr.rng import key

_MOST_ORDERED = 100_000  # boards of the first dealt round that are put in order; more are drawn as they come
_LEAST_BOARDS, _LEAST_RUNOUTS = 32, 4  # in a stratum
Cards = npt.NDArray[np.uint8]


class SampledBoards(Boards):
    """The boards of a game, one at a time; never merged, since a single board needs no others."""

    def __init__(self, game: PokerGame) -> None:
        super().__init__(game, merge=False)

    def after(self, board: Board, cards: tuple[int, ...]) -> Board:
        """The board of the next round with the new `cards` on it, drawn uniformly from those not on `board`."""
        rules = self.game.rules
        left, new = rules.num_cards - len(board.cards), len(cards)
        chance = 1.0 / comb(left - 2 * rules.hole_cards, new)
        groups = (*board.groups, new) if new else board.groups
        return self._board(board.round + 1, (*board.cards, *cards), groups, 0, board, comb(left, new), chance)

    def runout(self, cards: tuple[int, ...]) -> list[Board]:
        """The board of every round when the dealt cards are `cards`, in order."""
        boards, before, start = [], self.root, 0
        for new in self.game.rules.board_cards:
            before = self.after(before, cards[start : start + new])
            boards.append(before)
            start += new
        return boards


class RunoutSampler:
    """`count` runouts in strata of four or more if there are as many, each runout uniform over all of them.

    The first public cards of a stratum's runouts come from the same stretch of all boards in order of likeness, as long as
    its share of the runouts, independently of each other: the mean over runouts is unbiased, and so is its variance from
    the spread within strata. All later cards are drawn from the rest of the deck. A stratum is a stretch of many boards,
    and has several runouts: the spread within few that are nearly equal is found by chance only, and intervals from it are
    too short too often.
    """

    def __init__(self, rules: PokerRules, count: int, stream: int) -> None:
        self._rules, self._stream = rules, stream
        first = next((n for n in rules.board_cards if n), 0)
        several = first and comb(rules.num_cards, first) <= _MOST_ORDERED
        self._ordered = _by_likeness(rules.num_cards, rules.num_suits, first) if several else np.zeros((1, 0), np.uint8)
        strata = max(1, min(count // _LEAST_RUNOUTS, len(self._ordered) // _LEAST_BOARDS))
        self._start = np.arange(strata + 1) * count // strata  # the first runout of each stratum
        self.stratum = np.repeat(np.arange(strata), np.diff(self._start))  # [count], of each runout

    def cards(self, number: int) -> tuple[int, ...]:
        """The public cards of runout `number`, in the order of rounds."""
        rules = self._rules
        draw = np.random.default_rng(key(self._stream, "runout", number))
        start, end = self._start[self.stratum[number] :][:2]
        place = int((start + (end - start) * draw.random()) / self._start[-1] * len(self._ordered))
        first = self._ordered[min(place, len(self._ordered) - 1)].tolist()
        rest = np.setdiff1d(np.arange(rules.num_cards), first)
        later = draw.choice(rest, sum(rules.board_cards) - len(first), replace=False)
        return (*first, *(int(card) for card in later))


@cache
def _by_likeness(num_cards: int, num_suits: int, size: int) -> Cards:
    """All sets of `size` cards, [n, size], so that neighbours are alike: by pairs, by ranks from the top, by suits."""
    boards = np.array(list(combinations(range(num_cards)[::-1], size)), np.uint8)
    ranks, suits = boards // num_suits, boards % num_suits
    alike = [np.count_nonzero(kind[:, :, None] == kind[:, None, :], axis=(1, 2)) for kind in (suits, ranks)]
    ordered = boards[np.lexsort((alike[0], *ranks.T[::-1], alike[1]))]
    ordered.flags.writeable = False  # shared by all samplers
    return ordered
