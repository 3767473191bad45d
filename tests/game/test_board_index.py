"""Boards by number: the known numbers of classes, and renamings that lead to the representatives."""

from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt
import pytest

from deepcfr.game.board_index import (
    binomials,
    board_index,
    canonical_hands,
    count_classes,
    hand_images,
    hand_number,
    set_rank,
)
from deepcfr.game.cards import all_hands, canonical_cards, pack_cards, suit_permutations

Cards = npt.NDArray[np.uint8]

DECKS = [(13, 4, 3), (4, 3, 3), (5, 2, 4), (3, 1, 1), (3, 2, 0), (6, 4, 1)]


def sets_by_rank(num_cards: int, size: int) -> Cards:
    """All sets in colexicographic order: compared from their highest card down."""
    sets = sorted(combinations(range(num_cards), size), key=lambda cards: cards[::-1])
    return np.array(sets, np.uint8).reshape(len(sets), size)


@pytest.mark.parametrize(("size", "classes"), [(0, 1), (1, 13), (3, 1_755), (4, 16_432), (5, 134_459)])
def test_the_52_card_deck_has_the_known_numbers_of_boards(size: int, classes: int) -> None:
    index = board_index(13, 4, size)
    assert len(index) == len(index.boards) == classes
    assert index.copies.sum() == comb(52, size) == len(index.class_of) == len(index.permutation_of)
    assert np.array_equal(np.bincount(index.class_of), index.copies)


@pytest.mark.parametrize(("num_ranks", "num_suits", "size"), DECKS)
def test_every_set_is_carried_onto_the_lowest_of_its_class(num_ranks: int, num_suits: int, size: int) -> None:
    index = board_index(num_ranks, num_suits, size)
    sets = sets_by_rank(num_ranks * num_suits, size)
    renamings = suit_permutations(num_ranks, num_suits)[index.permutation_of]
    images = np.sort(np.take_along_axis(renamings, sets.astype(np.int64), axis=1), axis=1)
    assert np.array_equal(images, index.boards[index.class_of])
    forms = pack_cards(canonical_cards(sets, (size,), num_suits)) if size else np.zeros(1)
    pairs = set(zip(forms.tolist(), index.class_of.tolist(), strict=True))
    assert len(pairs) == len(index) == len(set(forms.tolist()))  # classes are those of canonical cards
    table = binomials(num_ranks * num_suits, size)
    own = np.array([set_rank(board, table) for board in index.boards])
    assert np.array_equal(own, np.unique(index.class_of, return_index=True)[1])
    assert (np.diff(own) > 0).all()
    assert not index.permutation_of[own].any()


def test_ranks_number_sets_in_colexicographic_order_whatever_the_order_of_cards() -> None:
    random = np.random.default_rng(0)
    table = binomials(10, 4)
    for place, cards in enumerate(sets_by_rank(10, 4)):
        assert set_rank(random.permutation(cards), table) == place


@pytest.mark.parametrize("hole_cards", [1, 2, 3])
def test_hand_numbers_are_places_in_the_list_of_all_hands(hole_cards: int) -> None:
    random = np.random.default_rng(1)
    table = binomials(11, hole_cards)
    for place, hand in enumerate(all_hands(11, hole_cards)):
        assert hand_number(random.permutation(hand), table) == place


def test_hand_images_are_the_numbers_of_renamed_hands() -> None:
    holes = all_hands(12, 2)
    numbers = {tuple(hand): place for place, hand in enumerate(holes.tolist())}
    for renaming, images in zip(suit_permutations(4, 3), hand_images(4, 3, 2), strict=True):
        assert images.tolist() == [numbers[tuple(sorted(renaming[hand].tolist()))] for hand in holes]


@pytest.mark.parametrize(
    ("groups", "classes"),
    [
        ((2,), 169),
        ((2, 4), 13_960_050),
        ((2, 5), 123_156_254),
        ((2, 3, 1), 55_190_538),
        ((2, 3, 1, 1), 2_428_287_420),
        ((5,), 134_459),
    ],
)
def test_burnside_gives_the_known_numbers_of_situations(groups: tuple[int, ...], classes: int) -> None:
    assert count_classes(13, 4, groups) == classes


def test_a_flop_has_the_published_numbers_of_hands() -> None:
    assert (comb(52, 2) * comb(50, 3), count_classes(13, 4, (2, 3))) == (25_989_600, 1_286_792)


@pytest.mark.parametrize(("num_ranks", "num_suits"), [(4, 3), (7, 1), (2, 4)])
def test_burnside_agrees_with_listing_canonical_forms(num_ranks: int, num_suits: int) -> None:
    cards = range(num_ranks * num_suits)
    rows = [
        hand + board for hand in combinations(cards, 2) for board in combinations(sorted(set(cards) - set(hand)), 3)
    ]
    forms = canonical_cards(np.array(rows, np.uint8), (2, 3), num_suits)
    assert count_classes(num_ranks, num_suits, (2, 3)) == len(np.unique(forms, axis=0))


def test_canonical_hands_are_the_lowest_of_their_orbits() -> None:
    holes, renamings, images = all_hands(12, 2), suit_permutations(4, 3), hand_images(4, 3, 2)
    board = np.array([0, 1, 5], np.uint8)  # two suits of one rank, the third of the next: 0 and 1 can be exchanged
    fixing = [p for p in range(6) if set(renamings[p][board].tolist()) == set(board.tolist())]
    lowest = np.empty(len(holes), np.int32)
    canonical_hands(board, holes, renamings, images, lowest)
    assert len(fixing) == 2
    for h, hand in enumerate(holes):
        expected = -1 if set(hand.tolist()) & set(board.tolist()) else min(int(images[p, h]) for p in fixing)
        assert lowest[h] == expected
