"""Flops of hold'em up to a renaming of suits: their kinds, and subsets that keep the frequencies of all kinds.

A subset is a stratified sample. Strata are the patterns of suits and of pairs; each has as many flops as its share of all
22,100 asks for. The flops of a stratum are sorted by rank and cut into intervals of equal length, and of each interval the
flop that is nearest to all others stands for them. Then weights are raked (Deming and Stephan, 1940, "On a least squares
adjustment of a sampled frequency table when the expected marginal totals are known"): they are scaled, one kind after
another, until all frequencies are those of all flops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from deepcfr.core.errors import ConfigError
from deepcfr.core.types import Cards, Doubles, Ints
from deepcfr.game.board_index import board_index
from deepcfr.game.cards import cards_text
from deepcfr.search.spot_ranges import HOLDEM

FLOP_CARDS = 3
FEWEST_FLOPS = 25  # of a subset: with fewer the frequencies of kinds cannot all be kept
#: the names of each kind; "connected" has a straight, "near" two ranks of a straight with an open end, "8 or lower" is the
#: highest card
KINDS = {
    "suits": ("rainbow", "two-tone", "monotone"),
    "pairs": ("unpaired", "paired", "trips"),
    "ranks": ("connected", "near", "apart"),
    "high card": ("A", "K", "Q", "J", "T", "9", "8 or lower"),
}
_STRATUM = ("suits", "pairs")
_LOWEST_NAMED = HOLDEM.rank_symbols.index("9")
_WHEEL = -1  # the ace as the lowest rank
_PASSES = 20  # most over the intervals
_ROUNDS = 10_000  # most of raking
_EXACT = 1e-12  # change of weights, as a factor, at which raking ends


@dataclass(frozen=True)
class Flops:
    """Flops with weights that sum to the number of all flops, 22,100; the highest flops come first."""

    cards: Cards  # [F, 3], ascending, one for each class under renaming of suits
    weights: Doubles  # [F], how many flops each stands for

    def __len__(self) -> int:
        return len(self.cards)

    def texts(self) -> list[str]:
        """The flops as text, such as `Qs 7h 2c`, the highest card first."""
        return [cards_text(HOLDEM, flop[::-1]) for flop in self.cards]

    def frequencies(self) -> dict[str, dict[str, float]]:
        """The share of the weights of each name of each of KINDS."""
        kinds, shares = kinds_of(self.cards), self.weights / self.weights.sum()
        return {
            kind: dict(zip(names, np.bincount(kinds[kind], shares, len(names)).tolist(), strict=True))
            for kind, names in KINDS.items()
        }


def kinds_of(flops: Cards) -> dict[str, Ints]:
    """The place of each flop's name among those of each of KINDS, [F], for `flops` [F, 3] with ascending cards."""
    ranks, suits = flops.astype(np.int64) // HOLDEM.num_suits, flops % HOLDEM.num_suits
    different = [np.array([len(set(row)) for row in part.tolist()]) for part in (suits, ranks)]
    near = [_straight_of(sorted(set(row))) for row in ranks.tolist()]
    high = len(HOLDEM.rank_symbols) - 1 - np.maximum(ranks[:, 2], _LOWEST_NAMED - 1)
    return {
        "suits": FLOP_CARDS - different[0],
        "pairs": FLOP_CARDS - different[1],
        "ranks": np.array(near),
        "high card": high,
    }


def _straight_of(ranks: list[int]) -> int:
    """The place among the names of "ranks" for different ascending ranks."""
    most = len(HOLDEM.rank_symbols) - 1
    for low in range(_WHEEL, most - 3):
        if len(ranks) == FLOP_CARDS and all(
            low <= rank <= low + 4 or (low == _WHEEL and rank == most) for rank in ranks
        ):
            return 0
    # four ranks in a row whose straights end on both sides: from 2345 to TJQK
    return 1 if any(high - low <= 3 and low >= 0 and high < most for low, high in pairwise(ranks)) else 2


@cache
def all_flops() -> Flops:
    """The 1,755 flops that differ by more than a renaming of suits, with the number of flops that each stands for."""
    index = board_index(HOLDEM.num_ranks, HOLDEM.num_suits, FLOP_CARDS)
    order = np.lexsort(index.boards.T)[::-1]
    return Flops(index.boards[order], index.copies[order].astype(np.float64))


def flop_subset(count: int) -> Flops:
    """So many flops whose weights keep the frequencies of every name of KINDS; all 1,755 with the weights that they have.

    The same number gives the same flops. Raises ConfigError for less than FEWEST_FLOPS and more than 1,755.
    """
    every = all_flops()
    if not isinstance(count, int) or isinstance(count, bool) or not FEWEST_FLOPS <= count <= len(every):
        raise ConfigError(f"A subset has {FEWEST_FLOPS} to {len(every):,} flops, not {count!r}.")
    kinds = kinds_of(every.cards)
    stratum = np.ravel_multi_index([kinds[kind] for kind in _STRATUM], [len(KINDS[kind]) for kind in _STRATUM])
    members = [np.flatnonzero(stratum == number) for number in np.unique(stratum)]
    counts = _shares(count, [len(flops) for flops in members], [every.weights[flops].sum() for flops in members])
    intervals = [part for flops, parts in zip(members, counts, strict=True) for part in np.array_split(flops, parts)]
    weights = np.array([every.weights[interval].sum() for interval in intervals])
    chosen = _balanced(intervals, weights)
    order = np.argsort(chosen)
    cards = every.cards[chosen[order]]
    return Flops(cards, _raked(cards, weights[order]))


def _shares(count: int, most: Sequence[int], weights: Sequence[float]) -> list[int]:
    """Divide `count` in proportion to weights, each share at least 1 and at most its `most` (Webster's method)."""
    shares = [1] * len(most)
    for _ in range(count - len(most)):
        open_ = [place for place, share in enumerate(shares) if share < most[place]]
        shares[max(open_, key=lambda place: weights[place] / (2 * shares[place] + 1))] += 1
    return shares


def _balanced(intervals: Sequence[Ints], weights: Doubles) -> Ints:
    """One flop of each interval, so that with `weights` the frequencies of kinds and of ranks are near those of all flops.

    It begins with the middle ones and changes one after another as long as that brings the frequencies nearer.
    """
    every = all_flops()
    features = _features(every.cards)
    goal = every.weights @ features
    chosen = np.array([interval[len(interval) // 2] for interval in intervals])
    for _ in range(_PASSES):
        before = chosen.copy()
        for place, interval in enumerate(intervals):
            others = np.delete(np.arange(len(chosen)), place)
            missing = goal - weights[others] @ features[chosen[others]]
            distances = np.square(missing - weights[place] * features[interval]).sum(1)
            chosen[place] = interval[distances.argmin()]
        if (chosen == before).all():
            break
    return chosen


def _features(flops: Cards) -> Doubles:
    """For each flop of `flops` [F, 3] the names of its kinds as zeros and ones, and how often it has each rank."""
    kinds = [np.eye(len(names))[kinds_of(flops)[kind]] for kind, names in KINDS.items()]
    ranks = np.eye(HOLDEM.num_ranks)[flops // HOLDEM.num_suits].sum(1)
    return np.concatenate([*kinds, ranks], 1)


def _raked(flops: Cards, weights: Doubles) -> Doubles:
    """Weights [F] that give each name of each of KINDS its frequency among all flops, if some flop has it."""
    every, kinds, goals = all_flops(), kinds_of(flops), kinds_of(all_flops().cards)
    for _ in range(_ROUNDS):
        change = 0.0
        for kind, names in KINDS.items():
            now = np.bincount(kinds[kind], weights, len(names))
            goal = np.bincount(goals[kind], every.weights, len(names))
            factor = (goal / np.where(now > 0, now, 1))[kinds[kind]]
            weights, change = weights * factor, max(change, np.abs(factor - 1).max())
        if change < _EXACT:
            break
    return weights * (every.weights.sum() / weights.sum())
