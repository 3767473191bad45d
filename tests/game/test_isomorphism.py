"""Suit isomorphism: the known numbers of classes, and one canonical form for all renamings of suits."""

from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepcfr.core.types import NO_CARD
from deepcfr.game.cards import BoardClasses, all_hands, canonical_cards, extend_board, suit_permutations

GROUPS = (2, 3, 1, 1)  # hole, flop, turn, river
RENAMINGS = suit_permutations(13, 4)

Cards = npt.NDArray[np.uint8]


def rename(cards: Cards, renaming: Cards) -> Cards:
    """`cards` with `renaming` (a map of cards) applied, NO_CARD left alone."""
    return np.append(renaming, np.full(256 - len(renaming), NO_CARD, np.uint8))[cards]


def sorted_groups(cards: Cards, groups: tuple[int, ...] = GROUPS) -> tuple[int, ...]:
    ends = np.cumsum(groups)
    return tuple(int(c) for end, size in zip(ends, groups, strict=True) for c in sorted(cards[end - size : end]))


def flops() -> BoardClasses:
    return extend_board((), (), 3, 13, 4, merge=True)


@pytest.fixture(scope="module")
def flop_situations() -> Cards:
    """The distinct canonical (hole, flop) over the 1,755 canonical flops, uint8 [M, 5]."""
    holes = all_hands(52, 2)
    rows = [
        np.concatenate([live, np.tile(flop, (len(live), 1))], axis=1)
        for flop in flops().cards
        for live in [holes[~np.isin(holes, flop).any(axis=1)]]
    ]
    canonical = canonical_cards(np.concatenate(rows), (2, 3), 4)
    _, first = np.unique(canonical.astype(np.int64) @ 52 ** np.arange(5), return_index=True)
    return canonical[first]


def test_renamings_of_suits_are_all_distinct_and_keep_ranks() -> None:
    assert len(np.unique(RENAMINGS, axis=0)) == 24
    assert np.array_equal(RENAMINGS[0], np.arange(52))
    assert np.array_equal(RENAMINGS // 4, np.tile(np.arange(52) // 4, (24, 1)))
    assert np.array_equal(np.sort(RENAMINGS, axis=1), np.tile(np.arange(52), (24, 1)))


def test_there_are_169_starting_hands() -> None:
    canonical = canonical_cards(all_hands(52, 2), (2,), 4)
    sizes = np.unique(canonical, axis=0, return_counts=True)[1]
    assert {int(size): int((sizes == size).sum()) for size in set(sizes)} == {6: 13, 4: 78, 12: 78}


def test_there_are_1755_flops_that_stand_for_22100() -> None:
    assert len(flops().cards) == 1755
    assert flops().multiplicity.sum() == comb(52, 3) == 22_100


def test_every_flop_is_a_renaming_of_exactly_one_class() -> None:
    covered = [tuple(sorted(renaming[flop].tolist())) for flop in flops().cards for renaming in RENAMINGS]
    orbits = [set(covered[start : start + 24]) for start in range(0, len(covered), 24)]
    assert [len(orbit) for orbit in orbits] == flops().multiplicity.tolist()
    assert set().union(*orbits) == set(combinations(range(52), 3))


def test_there_are_1286792_situations_on_the_flop(flop_situations: Cards) -> None:
    assert len(flop_situations) == 1_286_792


def test_classes_on_the_flop_contain_every_situation(flop_situations: Cards) -> None:
    # A class has 24 / (renamings that leave it as it is) members, and all of them together are all hands and flops.
    cards = flop_situations.astype(np.int64)
    suits, bits = cards % 4, np.int64(1) << (cards // 4 + np.array([13, 13, 0, 0, 0]))
    held = np.stack([np.where(suits == suit, bits, 0).sum(axis=1) for suit in range(4)], axis=1)
    alike = np.sort((held[:, :, None] == held[:, None, :]).sum(axis=2), axis=1)  # e.g. 1, 1, 2, 2
    fixing = {(1, 1, 1, 1): 1, (1, 1, 2, 2): 2, (1, 3, 3, 3): 6}
    kinds, counts = np.unique(alike, axis=0, return_counts=True)
    members = sum(int(count) * 24 // fixing[tuple(kind)] for kind, count in zip(kinds.tolist(), counts, strict=True))
    assert members == comb(52, 2) * comb(50, 3)


@st.composite
def situations(draw: st.DrawFn) -> Cards:
    """Cards that a player may see: hole cards, then no, three, four or five board cards, in any order; uint8 [1, 7]."""
    seen = draw(st.sampled_from([2, 5, 6, 7]))
    # few ranks make pairs, flushes and suits with the same cards likely
    ranks = draw(st.sampled_from([2, 3, 13]))
    dealt = draw(st.lists(st.integers(0, 4 * ranks - 1), min_size=seen, max_size=seen, unique=True))
    return np.array([dealt + [NO_CARD] * (7 - seen)], np.uint8)


@settings(max_examples=300)
@given(situations(), st.permutations([0, 1]), st.permutations([2, 3, 4]))
def test_all_renamings_and_orders_within_groups_have_one_canonical_form(
    cards: Cards, hole: list[int], flop: list[int]
) -> None:
    shuffled = cards[:, [*hole, *flop, 5, 6]]
    renamed = np.concatenate([cards, *(rename(shuffled, renaming) for renaming in RENAMINGS)])
    assert len(np.unique(canonical_cards(renamed, GROUPS, 4), axis=0)) == 1


@settings(max_examples=500)
@given(situations())
def test_the_canonical_form_is_a_renaming_and_its_own_canonical_form(cards: Cards) -> None:
    before = cards.copy()
    canonical = canonical_cards(cards, GROUPS, 4)
    assert np.array_equal(cards, before)
    # Being an image of the situation also keeps different situations apart: equal forms have a common image.
    images = {sorted_groups(rename(cards, renaming)[0]) for renaming in RENAMINGS}
    assert tuple(canonical[0].tolist()) in images
    assert np.array_equal(canonical_cards(canonical, GROUPS, 4), canonical)


@pytest.mark.parametrize(("num_ranks", "num_suits", "groups"), [(3, 2, (1, 1)), (2, 4, (2, 1, 1)), (4, 3, (2, 2))])
def test_classes_of_small_decks_are_those_of_burnsides_lemma(
    num_ranks: int, num_suits: int, groups: tuple[int, ...]
) -> None:
    rows: list[tuple[int, ...]] = [()]
    for size in groups:
        rows = [(*row, *new) for row in rows for new in combinations(set(range(num_ranks * num_suits)) - {*row}, size)]
    cards = np.array([sorted_groups(np.array(row), groups) for row in rows], np.uint8)
    renamings = suit_permutations(num_ranks, num_suits)
    fixed = 0
    for renaming in renamings:
        images = np.array([sorted_groups(image, groups) for image in renaming[cards]])
        fixed += int((images == cards).all(axis=1).sum())
    assert len(np.unique(canonical_cards(cards, groups, num_suits), axis=0)) == fixed / len(renamings)


def test_the_turn_adds_49_cards_to_every_flop() -> None:
    totals = {int(extend_board(tuple(flop), (3,), 1, 13, 4, merge=True).multiplicity.sum()) for flop in flops().cards}
    assert totals == {49}


@pytest.mark.parametrize(
    ("flop", "classes"),
    [
        ((0, 4, 8), 23),  # 2c 3c 4c: ten clubs, and thirteen ranks of any other suit
        ((0, 5, 10), 49),  # 2c 3d 4h: no renaming fixes it
        ((0, 1, 4), 36),  # 2c 2d 3c: spades and hearts alike, 11 clubs, 12 diamonds, 13 others
        ((0, 1, 2), 25),  # three twos: three suits alike with 12 ranks left, and 13 spades
        ((0, 1, 6), 37),  # 2c 2d 3h: clubs and diamonds alike (12), 12 hearts, 13 spades
    ],
)
def test_turn_classes_by_hand(flop: tuple[int, ...], classes: int) -> None:
    merged = extend_board(flop, (3,), 1, 13, 4, merge=True)
    assert (len(merged.cards), merged.multiplicity.sum()) == (classes, 49)


def test_the_order_in_which_rounds_deal_keeps_situations_apart() -> None:
    # 2c on the flop and 2d on the turn is another situation than the reverse once the flop tells the suits apart.
    one = canonical_cards(np.array([[4, 8, 0, 1]], np.uint8), (2, 1, 1), 4)
    other = canonical_cards(np.array([[4, 8, 1, 0]], np.uint8), (2, 1, 1), 4)
    assert not np.array_equal(one, other)


def test_river_classes_remember_what_came_on_the_turn() -> None:
    # Flop 2c 2d 3d, turn 3c: clubs and diamonds hold the same ranks, but dealt in another order, so only hearts and
    # spades are alike: 11 clubs, 11 diamonds and 13 ranks of the others.
    river = extend_board((0, 1, 5, 4), (3, 1), 1, 13, 4, merge=True)
    assert (len(river.cards), river.multiplicity.sum()) == (35, 48)


def test_turn_classes_are_orbits_of_the_renamings_that_fix_the_flop() -> None:
    for flop in flops().cards[::50]:
        fixing = [r for r in RENAMINGS if set(r[flop].tolist()) == set(flop.tolist())]
        orbits = {frozenset(int(r[card]) for r in fixing) for card in range(52) if card not in flop}
        merged = extend_board(tuple(flop.tolist()), (3,), 1, 13, 4, merge=True)
        found = dict(zip(merged.cards[:, 0].tolist(), merged.multiplicity.tolist(), strict=True))
        assert {min(orbit): len(orbit) for orbit in orbits} == found


def test_without_merging_every_board_stands_for_itself() -> None:
    boards = extend_board((3, 17), (2,), 2, 5, 4, merge=False)
    expected = list(combinations([card for card in range(20) if card not in (3, 17)], 2))
    assert [tuple(row) for row in boards.cards.tolist()] == expected
    assert boards.multiplicity.tolist() == [1] * len(expected)
