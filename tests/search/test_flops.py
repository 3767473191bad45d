"""Flops: all of them with their weights, their kinds, and subsets that keep the frequencies of all kinds."""

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

from deepcfr.core.errors import ConfigError
from deepcfr.search.flops import KINDS, all_flops, flop_subset, kinds_of

RANKS = "23456789TJQKA"
STRAIGHTS = ["A2345", *(RANKS[low : low + 5] for low in range(9))]


def kinds(ranks: list[str], suits: list[int]) -> dict[str, str]:
    """The kinds of a flop by counting, with straights as texts."""
    straight = any(len({*ranks} & {*five}) == 3 for five in STRAIGHTS)
    both_ends = any(len({*ranks} & {*RANKS[low : low + 4]}) >= 2 for low in range(9))
    high = max(ranks, key=RANKS.index)
    return {
        "suits": {1: "monotone", 2: "two-tone", 3: "rainbow"}[len(set(suits))],
        "pairs": {1: "trips", 2: "paired", 3: "unpaired"}[len(set(ranks))],
        "ranks": "connected" if straight else "near" if both_ends else "apart",
        "high card": high if high in "AKQJT9" else "8 or lower",
    }


def test_all_flops_have_the_frequencies_of_kinds_that_plain_counting_gives() -> None:
    every = all_flops()
    assert (len(every), every.weights.sum()) == (1_755, comb(52, 3))
    counts: dict[tuple[str, str], int] = {}
    for cards in combinations(range(52), 3):
        for key in kinds([RANKS[card // 4] for card in cards], [card % 4 for card in cards]).items():
            counts[key] = counts.get(key, 0) + 1
    assert (counts["suits", "monotone"], counts["pairs", "trips"], counts["pairs", "paired"]) == (1_144, 52, 3_744)
    for kind, shares in every.frequencies().items():
        for name, share in shares.items():
            assert share * comb(52, 3) == pytest.approx(counts[kind, name]), (kind, name)


@pytest.mark.parametrize("count", [25, 26, 49, 95, 184])
def test_a_subset_keeps_the_frequencies_of_all_kinds(count: int) -> None:
    """To a billionth, with weights that are not far from each other's and the same flops each time."""
    every, subset = all_flops(), flop_subset(count)
    assert len({tuple(flop) for flop in subset.cards.tolist()}) == count
    assert {*subset.texts()} < {*every.texts()}
    assert subset.weights.sum() == pytest.approx(comb(52, 3))
    for kind, shares in every.frequencies().items():
        assert subset.frequencies()[kind] == pytest.approx(shares, abs=1e-9)
    plain = kinds_of(subset.cards)["pairs"] < KINDS["pairs"].index("trips")  # trips are 52 flops only
    assert subset.weights[plain].min() > 0.5 * comb(52, 3) / count
    assert subset.weights[plain].max() < 2 * comb(52, 3) / count
    again = flop_subset(count)
    np.testing.assert_array_equal(again.cards, subset.cards)
    np.testing.assert_array_equal(again.weights, subset.weights)


def test_ranks_come_nearly_as_often_in_a_subset_as_in_all_flops() -> None:
    """A flop has each rank 3 / 13 times in the mean."""
    for count, most in ((25, 0.05), (49, 0.03), (95, 0.02)):
        subset = flop_subset(count)
        ranks = np.eye(13)[subset.cards // 4].sum(1)
        assert np.abs(subset.weights @ ranks / comb(52, 3) - 3 / 13).max() < most


def test_the_whole_subset_is_all_flops_with_the_weights_that_they_have() -> None:
    every, subset = all_flops(), flop_subset(1_755)
    np.testing.assert_array_equal(subset.cards, every.cards)
    np.testing.assert_array_equal(subset.weights, every.weights)


@pytest.mark.parametrize("count", [24, 1_756, True, "25", 25.0, None])
def test_other_numbers_are_refused(count: Any) -> None:
    with pytest.raises(ConfigError, match=r"A subset has 25 to 1,755 flops, not"):
        flop_subset(count)
