"""Hand ranking: exact agreement with two other evaluators on 52 cards, and the documented order on small decks."""

from collections import Counter
from itertools import chain, combinations

import eval7
import numpy as np
import numpy.typing as npt
import phevaluator
import pytest

from deepcfr.game.cards import all_hands
from deepcfr.game.hands import board_strengths, strengths

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


@pytest.fixture(scope="module")
def five_card_strengths() -> npt.NDArray[np.int32]:
    return strengths(every_hand(52, 5), 4)


def test_all_five_card_hands_have_the_known_counts(five_card_strengths: npt.NDArray[np.int32]) -> None:
    counts = np.bincount(five_card_strengths >> 20)  # by category
    assert counts.tolist() == [1302540, 1098240, 123552, 54912, 10200, 5108, 3744, 624, 40]
    distinct = np.bincount(np.unique(five_card_strengths) >> 20)
    assert distinct.tolist() == [1277, 2860, 858, 858, 10, 1277, 156, 156, 10]
    assert distinct.sum() == 7462


@pytest.mark.parametrize("size", [5, 6, 7])
def test_strengths_are_phevaluators_ranks(size: int, five_card_strengths: npt.NDArray[np.int32]) -> None:
    # The best five of seven cards are a five-card hand, so its place among all five-card hands is phevaluator's rank.
    hands = random_hands(40_000, 52, size, seed=size)
    place = np.searchsorted(np.unique(five_card_strengths), strengths(hands, 4))
    assert np.array_equal(7462 - place, phevaluator_ranks(hands))


def test_strengths_order_hands_as_eval7_does() -> None:
    hands = random_hands(40_000, 52, 7, seed=17)
    assert np.array_equal(classes(strengths(hands, 4)), classes(eval7_values(hands)))


@pytest.mark.parametrize(
    ("num_cards", "suits", "hole", "board_size"),
    [
        (52, 4, 1, 0),
        (52, 4, 2, 3),
        (52, 4, 2, 5),
        (20, 4, 3, 4),
        (15, 3, 4, 3),
        (12, 2, 2, 3),
        (39, 3, 1, 5),
    ],
)
def test_board_strengths_are_the_strengths_of_hole_and_board(
    num_cards: int, suits: int, hole: int, board_size: int
) -> None:
    holes = all_hands(num_cards, hole)
    for board in random_hands(5, num_cards, board_size, seed=suits):
        found, dead = board_strengths(holes, board, suits), np.isin(holes, board).any(axis=1)
        whole = np.concatenate([holes, np.tile(board, (len(holes), 1))], axis=1)
        assert np.array_equal(found, np.where(dead, -1, strengths(whole, suits)))
        assert (found[~dead] >= 0).all()
        assert np.array_equal(board_strengths(holes[::97], board, suits), found[::97])


# Decks other than 52 cards. ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_suits", [2, 4])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_fewer_than_five_cards_compare_by_multiplicities_and_kickers(size: int, num_suits: int) -> None:
    # Four cards of one suit or in sequence count for nothing, so multiplicities, then ranks, are all there is.
    hands = every_hand(13 * num_suits, size)
    if len(hands) > 5_000:
        hands = random_hands(5_000, 13 * num_suits, size, seed=size)

    def by_multiplicity(hand: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        counts = Counter(card // num_suits for card in hand)
        groups = sorted(((count, rank) for rank, count in counts.items()), reverse=True)
        return tuple(count for count, _ in groups), tuple(rank for _, rank in groups)

    keys = [by_multiplicity(hand) for hand in hands.tolist()]
    place = {key: index for index, key in enumerate(sorted(set(keys)))}
    assert np.array_equal(classes(strengths(hands, num_suits)), np.array([place[key] for key in keys]))


@pytest.mark.parametrize(("num_ranks", "num_suits"), [(5, 3), (6, 4), (9, 2), (12, 3)])
@pytest.mark.parametrize("size", [5, 7])
def test_decks_without_an_ace_rank_hands_as_the_same_cards_of_the_full_deck(
    num_ranks: int, num_suits: int, size: int
) -> None:
    # Without the thirteenth rank there is no wheel, so that the low cards of the full deck are the same game.
    hands = random_hands(5_000, num_ranks * num_suits, size, seed=num_ranks)
    full_deck = (hands // num_suits * 4 + hands % num_suits).astype(np.uint8)
    assert np.array_equal(classes(strengths(hands, num_suits)), classes(-phevaluator_ranks(full_deck)))
