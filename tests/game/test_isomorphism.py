"""Suit isomorphism: the known numbers of classes, and one canonical form for all renamings of suits."""

from itertools import combinations

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings, strategies as st

from deepcfr.core.types import NO_CARD
from deepcfr.game.cards import BoardClasses, canonical_cards, extend_board, suit_permutations

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


def test_renamings_of_suits_are_all_distinct_and_keep_ranks() -> None:
    assert len(np.unique(RENAMINGS, axis=0)) == 24
    assert np.array_equal(RENAMINGS[0], np.arange(52))
    assert np.array_equal(RENAMINGS // 4, np.tile(np.arange(52) // 4, (24, 1)))
    assert np.array_equal(np.sort(RENAMINGS, axis=1), np.tile(np.arange(52), (24, 1)))


def test_every_flop_is_a_renaming_of_exactly_one_class() -> None:
    covered = [tuple(sorted(renaming[flop].tolist())) for flop in flops().cards for renaming in RENAMINGS]
    orbits = [set(covered[start : start + 24]) for start in range(0, len(covered), 24)]
    assert [len(orbit) for orbit in orbits] == flops().multiplicity.tolist()
    assert set().union(*orbits) == set(combinations(range(52), 3))
    assert len(orbits) == 1755


@st.composite
def situations(draw: st.DrawFn) -> Cards:
    """Cards that a player may see: hole cards, then no, three, four or five board cards, in any order; uint8 [1, 7]."""
    seen = draw(st.sampled_from([2, 5, 6, 7]))
    # few ranks make pairs, flushes and suits with the same cards likely
    ranks = draw(st.sampled_from([2, 3, 13]))
    dealt = draw(st.lists(st.integers(0, 4 * ranks - 1), min_size=seen, max_size=seen, unique=True))
    return np.array([dealt + [NO_CARD] * (7 - seen)], np.uint8)


@settings(max_examples=60)
@given(situations(), st.permutations([0, 1]), st.permutations([2, 3, 4]))
def test_all_renamings_and_orders_within_groups_have_one_canonical_form(
    cards: Cards, hole: list[int], flop: list[int]
) -> None:
    shuffled = cards[:, [*hole, *flop, 5, 6]]
    renamed = np.concatenate([cards, *(rename(shuffled, renaming) for renaming in RENAMINGS)])
    assert len(np.unique(canonical_cards(renamed, GROUPS, 4), axis=0)) == 1


@settings(max_examples=60)
@given(situations())
def test_the_canonical_form_is_a_renaming_and_its_own_canonical_form(cards: Cards) -> None:
    before = cards.copy()
    canonical = canonical_cards(cards, GROUPS, 4)
    assert np.array_equal(cards, before)
    # Being an image of the situation also keeps different situations apart: equal forms have a common image.
    images = {sorted_groups(rename(cards, renaming)[0]) for renaming in RENAMINGS}
    assert tuple(canonical[0].tolist()) in images
    assert np.array_equal(canonical_cards(canonical, GROUPS, 4), canonical)


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
