"""Hand ranking: exact agreement with two other evaluators on 52 cards, and the documented order on small decks."""

from collections import Counter
from itertools import chain, combinations, permutations

import eval7
import numpy as np
import numpy.typing as npt
import phevaluator
import pytest

from deepcfr.game.cards import all_hands
from deepcfr.game.hands import board_strengths, strengths

HIGH_CARD, PAIR, TWO_PAIR, TRIPS, STRAIGHT, FLUSH, FULL_HOUSE, QUADS, STRAIGHT_FLUSH = range(9)
RANKS, SUITS = "23456789TJQKA", "cdhs"
EVAL7_DECK = [eval7.Card(rank + suit) for rank in RANKS for suit in SUITS]

Cards = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


def every_hand(num_cards: int, size: int) -> Cards:
    """All hands of `size` cards, uint8 [M, size]."""
    flat = np.fromiter(chain.from_iterable(combinations(range(num_cards), size)), np.uint8)
    return flat.reshape(-1, size)


def random_hands(count: int, num_cards: int, size: int, seed: int) -> Cards:
    order = np.random.default_rng(seed).random((count, num_cards)).argsort(axis=1)
    return order[:, :size].astype(np.uint8)


def classes(values: npt.ArrayLike) -> Ints:
    """The place of every value among the distinct ones, lowest first: equal for evaluators that agree on order and ties."""
    return np.unique(np.asarray(values), return_inverse=True)[1]


def phevaluator_ranks(hands: Cards) -> Ints:
    """phevaluator's ranks, 1 for a royal flush to 7,462; its cards are numbered like ours."""
    return np.array([phevaluator.evaluate_cards(*hand) for hand in hands.tolist()])


def eval7_values(hands: Cards) -> Ints:
    return np.array([eval7.evaluate([EVAL7_DECK[card] for card in hand]) for hand in hands.tolist()])


def cards(text: str) -> Cards:
    """One hand such as `As Kd`, uint8 [1, n]."""
    return np.array([[4 * RANKS.index(name[0]) + SUITS.index(name[1]) for name in text.split()]], np.uint8)


def strength_of(text: str) -> int:
    return int(strengths(cards(text), 4)[0])


@pytest.fixture(scope="module")
def five_card_strengths() -> npt.NDArray[np.int32]:
    return strengths(every_hand(52, 5), 4)


def test_all_five_card_hands_have_the_known_category_counts(five_card_strengths: npt.NDArray[np.int32]) -> None:
    counts = np.bincount(five_card_strengths >> 20)
    assert counts.tolist() == [1302540, 1098240, 123552, 54912, 10200, 5108, 3744, 624, 40]


def test_five_card_hands_have_7462_strengths(five_card_strengths: npt.NDArray[np.int32]) -> None:
    per_category = np.bincount(np.unique(five_card_strengths) >> 20)
    assert per_category.tolist() == [1277, 2860, 858, 858, 10, 1277, 156, 156, 10]
    assert per_category.sum() == 7462


@pytest.mark.parametrize("size", [5, 6, 7])
def test_strengths_are_phevaluators_ranks(size: int, five_card_strengths: npt.NDArray[np.int32]) -> None:
    # The best five of seven cards are a five-card hand, so its place among all five-card hands is phevaluator's rank.
    hands = random_hands(100_000, 52, size, seed=size)
    place = np.searchsorted(np.unique(five_card_strengths), strengths(hands, 4))
    assert np.array_equal(7462 - place, phevaluator_ranks(hands))


@pytest.mark.parametrize("size", [5, 7])
def test_strengths_order_hands_as_eval7_does(size: int) -> None:
    hands = random_hands(100_000, 52, size, seed=10 + size)
    assert np.array_equal(classes(strengths(hands, 4)), classes(eval7_values(hands)))


def test_best_and_worst_kinds_of_hand_stand_in_the_usual_order() -> None:
    order = [
        "7c 5d 4h 3s 2c",
        "As Kd Qh Js 9c",
        "2s 2d 5h 4s 3c",
        "As Ad Kh Qs Jc",
        "3s 3d 2h 2s 4c",
        "2s 2d 2h 4s 3c",
        "Ad 2s 3s 4s 5s",  # the wheel is the lowest straight
        "6d 2s 3s 4s 5s",
        "As Kd Qh Js Tc",
        "7c 5c 4c 3c 2c",
        "2s 2d 2h 3s 3c",
        "2s 2d 2h 2c 3c",
        "As 2s 3s 4s 5s",
        "6s 2s 3s 4s 5s",
        "As Ks Qs Js Ts",
    ]
    values = [strength_of(hand) for hand in order]
    assert values == sorted(set(values))


@pytest.mark.parametrize(
    ("seven", "five"),
    [
        ("As Ad Ks Kd Qs Qd 2c", "As Ad Ks Kd Qs"),  # the third pair is the kicker
        ("As Ad Ah Ks Kd Kh 2c", "As Ad Ah Ks Kd"),  # of two trips the lower is the pair
        ("As Ad Ah Ks Kd Qs Qd", "As Ad Ah Ks Kd"),
        ("As Ad Ah Ac Ks Kd Kh", "As Ad Ah Ac Ks"),
        ("As 9s 7s 5s 3s 2s Kd", "As 9s 7s 5s 3s"),
        ("9s 8s 7s 6s 5s As Ks", "9s 8s 7s 6s 5s"),  # a straight flush below the best flush
        ("9s 8s 7s 6s 5d Td Jd", "Jd Td 9s 8s 7s"),
        ("2s 3s 4s 5d 6d As Ks", "As Ks 4s 3s 2s"),  # a flush and a straight, but not of the same cards
    ],
)
def test_the_best_five_of_seven_cards_count(seven: str, five: str) -> None:
    assert strength_of(seven) == strength_of(five)


def test_order_and_suits_of_the_cards_do_not_matter() -> None:
    hands = random_hands(2_000, 52, 7, seed=3)
    for suits in permutations(range(4)):
        renamed = (hands // 4 * 4 + np.array(suits, np.uint8)[hands % 4])[:, ::-1].astype(np.uint8)
        assert np.array_equal(strengths(np.ascontiguousarray(renamed), 4), strengths(hands, 4))


@pytest.mark.parametrize("hole", [1, 2])
@pytest.mark.parametrize("board_size", [0, 1, 3, 4, 5])
def test_board_strengths_are_the_strengths_of_hole_and_board(hole: int, board_size: int) -> None:
    holes = all_hands(52, hole)
    for board in random_hands(20, 52, board_size, seed=board_size):
        found = board_strengths(holes, board, 4)
        dead = np.isin(holes, board).any(axis=1)
        assert dead.sum() == len(holes) - len(all_hands(52 - board_size, hole))
        whole = np.concatenate([holes, np.tile(board, (len(holes), 1))], axis=1)
        assert np.array_equal(found, np.where(dead, -1, strengths(whole, 4)))
        assert (found[~dead] >= 0).all()


@pytest.mark.parametrize(
    ("num_cards", "suits", "hole", "board_size"), [(20, 4, 3, 4), (15, 3, 4, 3), (12, 2, 2, 3), (39, 3, 1, 5)]
)
def test_board_strengths_of_other_decks_and_of_few_hands(
    num_cards: int, suits: int, hole: int, board_size: int
) -> None:
    holes = all_hands(num_cards, hole)
    for board in random_hands(10, num_cards, board_size, seed=suits):
        whole = np.concatenate([holes, np.tile(board, (len(holes), 1))], axis=1)
        wanted = np.where(np.isin(holes, board).any(axis=1), -1, strengths(whole, suits))
        assert np.array_equal(board_strengths(holes, board, suits), wanted)
        assert np.array_equal(board_strengths(holes[::97], board, suits), wanted[::97])


# Decks other than 52 cards. ---------------------------------------------------------------------------------------------


def test_in_leduc_a_pair_beats_every_high_card() -> None:
    pairs = strengths(np.array([[0, 1], [2, 3], [4, 5]], np.uint8), 2)
    highs = strengths(np.array([[0, 2], [0, 4], [2, 4]], np.uint8), 2)
    assert np.all(np.diff(pairs) > 0)
    assert np.all(np.diff(highs) > 0)
    assert pairs.min() > highs.max()


def test_one_card_hands_compare_by_rank() -> None:
    assert classes(strengths(every_hand(52, 1), 4)).tolist() == [card // 4 for card in range(52)]


@pytest.mark.parametrize("num_suits", [2, 3, 4])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_fewer_than_five_cards_compare_by_multiplicities_and_kickers(size: int, num_suits: int) -> None:
    # Four cards of one suit or in sequence count for nothing, so multiplicities, then ranks, are all there is.
    hands = every_hand(13 * num_suits, size)
    if len(hands) > 20_000:
        hands = random_hands(20_000, 13 * num_suits, size, seed=size)

    def by_multiplicity(hand: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        counts = Counter(card // num_suits for card in hand)
        groups = sorted(((count, rank) for rank, count in counts.items()), reverse=True)
        return tuple(count for count, _ in groups), tuple(rank for _, rank in groups)

    keys = [by_multiplicity(hand) for hand in hands.tolist()]
    place = {key: index for index, key in enumerate(sorted(set(keys)))}
    assert np.array_equal(classes(strengths(hands, num_suits)), np.array([place[key] for key in keys]))


@pytest.mark.parametrize(("num_ranks", "num_suits"), [(5, 3), (6, 4), (9, 2), (12, 4), (12, 3), (12, 1)])
@pytest.mark.parametrize("size", [5, 7])
def test_decks_without_an_ace_rank_hands_as_the_same_cards_of_the_full_deck(
    num_ranks: int, num_suits: int, size: int
) -> None:
    # Without the thirteenth rank there is no wheel, so that the low cards of the full deck are the same game.
    hands = random_hands(5_000, num_ranks * num_suits, size, seed=num_ranks)
    full_deck = (hands // num_suits * 4 + hands % num_suits).astype(np.uint8)
    assert np.array_equal(classes(strengths(hands, num_suits)), classes(-phevaluator_ranks(full_deck)))


@pytest.mark.parametrize("num_ranks", range(5, 13))
def test_there_is_no_wheel_below_thirteen_ranks(num_ranks: int) -> None:
    ranks = np.array([[0, 1, 2, 3, num_ranks - 1]])
    hand = (ranks * 4 + np.array([[0, 1, 2, 3, 0]])).astype(np.uint8)
    expected = STRAIGHT if num_ranks == 5 else HIGH_CARD  # with five ranks it is the deck's only straight
    assert strengths(hand, 4)[0] >> 20 == expected


def test_a_deck_of_six_ranks_has_two_straights() -> None:
    hands = every_hand(24, 5)
    values = strengths(hands, 4)
    for category, count in ((STRAIGHT, 2 * (4**5 - 4)), (STRAIGHT_FLUSH, 2 * 4), (FLUSH, 4 * (6 - 2)), (QUADS, 6 * 20)):
        assert (values >> 20 == category).sum() == count
    straights = np.unique(hands[values >> 20 == STRAIGHT] // 4, axis=0)
    assert straights.tolist() == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]
