"""Exact features of hands: expected hand strength, its square, equity histograms, opponent cluster hand strength.

The *hand strength* of a hand on a full board is the share of the opposing hands (those that share no card with it or the
board) that it beats, ties counting half. Before the last board card there are *runouts*, all equally likely: expected hand
strength (EHS) is the mean over them, EHS2 the mean of the square, and the equity histogram their distribution. Nothing is
sampled. The runouts are those of the game's own remaining cards: flop hold'em has none on the flop, so there EHS2 is the
square of EHS and all of a histogram is in one bin.

Opponent cluster hand strength (OCHS) is the hand strength against the opponent's starting hands of one cluster at a time
(Johanson, Burch, Valenzano and Bowling, AAMAS 2013, "Evaluating state-space abstractions in extensive-form games", section
4). It tells hands of equal strength apart by what they beat, which is all that is left to tell once the board is full.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import comb

import numpy as np
import numpy.typing as npt

from deepcfr.abstraction.buckets import round_boards
from deepcfr.abstraction.kernels import (
    Ints,
    Numbers,
    Points,
    add_runouts,
    cluster_strengths,
    fill_showdowns,
    list_hands,
)
from deepcfr.errors import GameError
from deepcfr.games.board_index import BoardIndex, binomials, hand_images, inverse_renamings
from deepcfr.games.cards import all_hands
from deepcfr.games.isomorphism import suit_permutations
from deepcfr.games.rules import PokerRules
from deepcfr.parallel import Workers

BINS = 50  # of equity histograms
STARTING = -1  # in place of a round: hands without any board, whether or not the game has a round without one

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Hands:
    """One hand of each class on each of some boards: M rows in the order of the boards given, then of hand numbers."""

    classes: Ints  # [boards], the boards, as numbers in the round's `BoardIndex`
    board: Ints  # [M], the board of each row, as such a number
    hand: Numbers  # [M], the lowest number in the class of hands
    weight: Ints  # [M], pairs of a hand and a board, with suits as dealt, that the row stands for
    bounds: Ints  # [boards + 1], the first row of each board, and M at the end
    row: Numbers  # [boards, H], the row of every hand of the deck, -1 where it shares a card with the board

    def __len__(self) -> int:
        return len(self.hand)


@dataclass(frozen=True)
class Strengths:
    """Features of hands over all runouts; each row is a row of `Hands`."""

    ehs: Floats  # [M], E[HS]
    ehs2: Floats  # [M], E[HS^2]
    histogram: Floats  # [M, BINS], shares of the runouts with HS in [i / BINS, (i + 1) / BINS); 1 is in the last bin


@dataclass(frozen=True)
class Showdowns:
    """All hands ranked on every class of full boards: see `kernels.fill_showdowns`. 647 MB for Texas hold'em."""

    rules: PokerRules
    index: BoardIndex  # of full boards
    orders: Points  # [classes, hands that share no card with a full board]
    points: Points  # [classes, H]

    @property
    def most(self) -> int:
        """Points of a hand that beats all opposing hands; hand strength is points / most."""
        return most_points(self.rules)


def most_points(rules: PokerRules) -> int:
    """Twice the opposing hands that a hand meets at a showdown."""
    left = rules.num_cards - rules.hole_cards - sum(rules.board_cards)
    return 2 * comb(left, rules.hole_cards)


def require_features(rules: PokerRules) -> None:
    """Raise GameError for games whose hands have no features here."""
    if rules.hole_cards > 2:
        raise GameError(f"Hand features need one or two hole cards, but {rules.name} deals {rules.hole_cards}.")


def showdowns(rules: PokerRules, workers: Workers) -> Showdowns:
    """Rank every hand on every class of full boards of a game."""
    require_features(rules)
    full = blank_showdowns(rules)
    for _ in workers.map(partial(rank_boards, full), parts(len(full.index), 256)):
        pass
    return full


def blank_showdowns(rules: PokerRules) -> Showdowns:
    """Showdowns with room for all full boards, of which none is ranked yet."""
    index = round_boards(rules, rules.num_rounds - 1)
    live = comb(rules.num_cards - index.boards.shape[1], rules.hole_cards)
    orders = np.empty((len(index), live), np.uint16)
    return Showdowns(rules, index, orders, np.empty((len(index), comb(rules.num_cards, rules.hole_cards)), np.uint16))


def rank_boards(full: Showdowns, part: slice) -> None:
    """Rank all hands on some classes of full boards."""
    rules = full.rules
    holes = all_hands(rules.num_cards, rules.hole_cards)
    boards = full.index.boards[part]
    fill_showdowns(boards, holes, rules.num_suits, rules.num_cards, full.orders[part], full.points[part])


def parts(count: int, size: int) -> list[slice]:
    """Slices of at most `size` that make up the range of `count`."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def hands_on(rules: PokerRules, round_: int, classes: Ints) -> Hands:
    """One hand of each class on the boards `classes` [m], numbers in the `BoardIndex` of the round."""
    index = round_boards(rules, round_)
    hand, size, bounds, row = list_hands(
        index.boards[classes],
        all_hands(rules.num_cards, rules.hole_cards),
        suit_permutations(rules.num_ranks, rules.num_suits),
        hand_images(rules.num_ranks, rules.num_suits, rules.hole_cards),
    )
    board = np.repeat(classes, np.diff(bounds))
    return Hands(classes, board, hand, size * index.copies[board], bounds, row)


def strength_features(full: Showdowns, round_: int, hands: Hands) -> Strengths:
    """EHS, EHS2 and the equity histogram of `hands` in a round (or before any board: STARTING), over all runouts."""
    rules = full.rules
    boards = round_boards(rules, round_).boards
    most = full.most
    bin_of = np.minimum(np.arange(most + 1) * BINS // max(most, 1), BINS - 1).astype(np.uint8)
    total, squares = np.zeros(len(hands), np.int64), np.zeros(len(hands), np.int64)
    histogram = np.zeros((len(hands), BINS), np.int32)
    images = hand_images(rules.num_ranks, rules.num_suits, rules.hole_cards)
    table = binomials(rules.num_cards, sum(rules.board_cards))
    for board, (start, end) in zip(boards[hands.classes], pairwise(hands.bounds), strict=True):
        add_runouts(
            board,
            hands.hand[start:end],
            full.index.class_of,
            full.index.permutation_of,
            images,
            table,
            full.points,
            bin_of,
            total[start:end],
            squares[start:end],
            histogram[start:end],
        )
    runs = runouts(rules, round_)
    return Strengths(
        ehs=(total / (runs * most)).astype(np.float32),
        ehs2=(squares / (runs * most**2)).astype(np.float32),
        histogram=(histogram / np.float32(runs)).astype(np.float32),
    )


def runouts(rules: PokerRules, round_: int) -> int:
    """How many ways the board can be completed from a round on, for the holder of a hand."""
    seen = sum(rules.board_cards[: round_ + 1])
    return comb(rules.num_cards - rules.hole_cards - seen, sum(rules.board_cards) - seen)


def cluster_features(full: Showdowns, round_: int, hands: Hands, cluster: Ints) -> Floats:
    """OCHS and EHS: the expected strength of `hands` against each cluster, then against all, float32 [M, clusters + 1].

    `cluster` [H] is the cluster of every hand that the opponent may hold, numbered from 0, at most `kernels.CLUSTERS` of
    them. Where no hand of a cluster is possible its column holds EHS, which is neutral when hands are compared.
    """
    rules = full.rules
    result = np.empty((len(hands), int(cluster.max()) + 2), np.float32)
    images = hand_images(rules.num_ranks, rules.num_suits, rules.hole_cards)
    cluster_strengths(
        round_boards(rules, round_).boards[hands.classes],
        hands.bounds,
        hands.hand,
        full.index.class_of,
        full.index.permutation_of,
        images[inverse_renamings(rules.num_suits)],
        binomials(rules.num_cards, sum(rules.board_cards)),
        full.orders,
        all_hands(rules.num_cards, rules.hole_cards),
        cluster,
        result,
    )
    return result
