"""Features of hands: agreement with eval7 on 52 cards, and with plain enumeration in small games."""

from itertools import combinations
from math import comb, isclose

import eval7
import numpy as np
import numpy.typing as npt
import pytest

from deepcfr.buckets.buckets import round_boards, round_classes
from deepcfr.buckets.features import (
    BINS,
    STARTING,
    Showdowns,
    blank_showdowns,
    cluster_features,
    hands_on,
    parts,
    rank_boards,
    runouts,
    showdowns,
    strength_features,
)
from deepcfr.buckets.kernels import IMPOSSIBLE
from deepcfr.core.parallel import Workers
from deepcfr.game.board_index import binomials, set_rank
from deepcfr.game.cards import all_hands
from deepcfr.game.hands import strengths
from deepcfr.game.rules import PRESETS, PokerRules

EVAL7_DECK = [eval7.Card(rank + suit) for rank in "23456789TJQKA" for suit in "cdhs"]
HOLES = all_hands(52, 2)


def every_class(rules: PokerRules, round_: int) -> npt.NDArray[np.int64]:
    return np.arange(len(round_boards(rules, round_)))


def eval7_strength(hand: tuple[int, ...], board: tuple[int, ...]) -> float:
    """Hand strength on a full board of five cards, by eval7's own enumeration of all opposing hands."""
    everyone = eval7.HandRange("AA")
    everyone.hands = [((a, b), 1.0) for a, b in combinations(EVAL7_DECK, 2)]
    return float(eval7.py_hand_vs_range_exact([EVAL7_DECK[c] for c in hand], everyone, [EVAL7_DECK[c] for c in board]))


@pytest.fixture(scope="module")
def texas() -> Showdowns:
    """Texas hold'em with no full board ranked yet; `rank_runouts` adds those that a test needs."""
    return blank_showdowns(PRESETS["hulh"])


def rank_runouts(full: Showdowns, board: tuple[int, ...]) -> None:
    rest = [card for card in range(52) if card not in board]
    table = binomials(52, 5)
    sets = np.array([(*board, *cards) for cards in combinations(rest, 5 - len(board))], np.uint8)
    for c in {int(full.index.class_of[set_rank(cards, table)]) for cards in sets}:
        rank_boards(full, slice(c, c + 1))


@pytest.mark.parametrize("round_", [1, pytest.param(2, marks=pytest.mark.long), 3])
def test_strengths_in_texas_holdem_agree_with_eval7(texas: Showdowns, round_: int) -> None:
    random = np.random.default_rng(round_)
    c = int(random.integers(len(round_boards(texas.rules, round_))))
    board = tuple(round_boards(texas.rules, round_).boards[c].tolist())
    rank_runouts(texas, board)
    hands = hands_on(texas.rules, round_, np.array([c]))
    strengths = strength_features(texas, round_, hands)
    for row in random.choice(len(hands), size={1: 1, 2: 5, 3: 30}[round_], replace=False):
        hand = tuple(HOLES[hands.hand[row]].tolist())
        rest = sorted(set(range(52)) - set(hand) - set(board))
        expected = np.array([eval7_strength(hand, (*board, *more)) for more in combinations(rest, 5 - len(board))])
        assert len(expected) == runouts(texas.rules, round_)
        assert isclose(strengths.ehs[row], expected.mean(), rel_tol=1e-6)
        # eval7's float32 can put a strength on either side of the edge of a bin
        distance = np.abs(np.cumsum(strengths.histogram[row]) - [(expected < i / BINS).mean() for i in range(1, 51)])
        assert distance.sum() <= 1 / BINS + (np.abs(expected * BINS - np.rint(expected * BINS)) < 1e-3).mean()


def wins_and_meetings(
    rules: PokerRules, hand: tuple[int, ...], board: tuple[int, ...], cluster: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Wins (ties count half) and opposing hands by cluster over all runouts, one by one."""
    clusters = int(cluster.max()) + 1
    wins, meetings = np.zeros(clusters), np.zeros(clusters)
    holes = all_hands(rules.num_cards, rules.hole_cards)
    rest = sorted(set(range(rules.num_cards)) - set(hand) - set(board))
    for more in combinations(rest, sum(rules.board_cards) - len(board)):
        full = (*board, *more)
        others = np.flatnonzero(~np.isin(holes, (*hand, *full)).any(axis=1))
        shown = np.tile(np.array(full, np.uint8), (len(others), 1))
        other = strengths(np.concatenate([holes[others], shown], axis=1), rules.num_suits)
        own = strengths(np.array([[*hand, *full]], np.uint8), rules.num_suits)
        won = (own > other) + 0.5 * (own == other)
        wins += np.bincount(cluster[others], won, clusters)
        meetings += np.bincount(cluster[others], minlength=clusters)
    return wins, meetings


@pytest.mark.parametrize(("game", "round_"), [("small", 0), ("small", 1), ("small", 2), ("leduc", 1)])
def test_features_agree_with_enumeration(small: PokerRules, game: str, round_: int) -> None:
    rules = small if game == "small" else PRESETS[game]
    holes = all_hands(rules.num_cards, rules.hole_cards)
    cluster = holes[:, 0].astype(np.int64) // rules.num_suits  # by the lower rank; the highest has few hands, or none
    full = showdowns(rules, Workers(1))
    hands = hands_on(rules, round_, every_class(rules, round_))
    strengths = strength_features(full, round_, hands)
    ochs = cluster_features(full, round_, hands, cluster)
    boards = round_boards(rules, round_).boards
    empty, rows = 0, 40 if round_ else 3
    for row in np.random.default_rng(0).permutation(len(hands))[:rows]:
        wins, meetings = wins_and_meetings(
            rules, tuple(holes[hands.hand[row]]), tuple(boards[hands.board[row]]), cluster
        )
        ehs = wins.sum() / meetings.sum()
        assert isclose(strengths.ehs[row], ehs, rel_tol=1e-6)
        assert np.allclose(ochs[row, -1], ehs)
        assert np.allclose(ochs[row, :-1], np.where(meetings > 0, wins / np.maximum(meetings, 1), ehs))
        empty += int((meetings == 0).sum())
    if (game, round_) == ("small", 2):
        assert empty > 0  # so that the rule for clusters without a hand was put to use


@pytest.mark.parametrize("round_", [STARTING, 0, 1, 2])
def test_weights_count_every_pair_once_and_features_average_to_one_half(small: PokerRules, round_: int) -> None:
    seen = sum(small.board_cards[: round_ + 1])
    hands = hands_on(small, round_, every_class(small, round_))
    assert hands.weight.sum() == comb(12, seen) * comb(12 - seen, 2)
    if round_ == STARTING:
        return
    assert len(hands) == round_classes(small, round_)
    strengths = strength_features(showdowns(small, Workers(1)), round_, hands)
    assert isclose(np.average(strengths.ehs, weights=hands.weight), 0.5, rel_tol=1e-6)
    assert np.allclose(strengths.histogram.sum(axis=1), 1, atol=1e-5)
    # a bin is 1 / BINS wide, so the histogram's own mean is at most that much too low
    low = strengths.histogram @ (np.arange(BINS) / BINS)
    assert (low <= strengths.ehs + 1e-5).all()
    assert (low >= strengths.ehs - 1 / BINS - 1e-5).all()


def test_rows_of_hands_lead_back_to_all_hands_of_a_class(small: PokerRules) -> None:
    hands = hands_on(small, 1, np.array([4, 2]))
    assert hands.bounds.tolist() == [0, int((hands.board == 4).sum()), len(hands)]
    for place, c in enumerate((4, 2)):
        live = hands.row[place] >= 0
        assert np.array_equal(np.unique(hands.row[place][live]), np.flatnonzero(hands.board == c))
        copies = round_boards(small, 1).copies[c]
        assert np.array_equal(
            np.bincount(hands.row[place][live], minlength=len(hands)) * copies, hands.weight * (hands.board == c)
        )


def test_points_of_impossible_hands_are_marked_and_others_are_zero_sum(small: PokerRules) -> None:
    with Workers(2) as workers:
        full = showdowns(small, workers)
    assert np.array_equal(full.points, showdowns(small, Workers(1)).points)
    holes = all_hands(12, 2)
    for board, points in zip(full.index.boards, full.points.astype(np.int64), strict=True):
        dead = np.isin(holes, board).any(axis=1)
        assert np.array_equal(points == IMPOSSIBLE, dead)
        assert points[~dead].sum() * 2 == full.most * (~dead).sum()


def test_parts_make_up_the_range() -> None:
    assert [list(range(10))[part] for part in parts(10, 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
