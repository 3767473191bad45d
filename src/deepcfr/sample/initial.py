"""Initial strategies, from which training may start instead of the uniform strategy (Lin 2024, section 7).

Lin (2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No Limit Poker")
simulates tens of millions of games, counts how often a hand of each bucket wins, and assigns fixed probabilities to
actions by ranges of that win rate. The paper describes only one range: below 20 % mostly a fold or a check, and rarely
all-in. We chose the numbers below.

An initial strategy is a table over five buckets, the ranges of win rates (`RangeBuckets`). A solver's tables start with
the rows of their bucket's range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepcfr.buckets.texture import Buckets
from deepcfr.core.rng import key
from deepcfr.core.types import Cards, Doubles, Floats, Ints
from deepcfr.game.bet_size_game import BetSizePoker
from deepcfr.game.betting import CALL, FOLD, RAISE
from deepcfr.game.cards import deal_cards
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PokerRules
from deepcfr.sample.bet_size_tables import BetSizeLayout, hand_layout
from deepcfr.sample.traversal_tree import TableLayout, situations_of

WIN_RATE_DEALS = 400_000
EDGES = (0.2, 0.4, 0.6, 0.8)  # win rates that separate the ranges
RANGES = len(EDGES) + 1
# by range: shares of fold, of check or call, and of all raises; and the ratio of a raise's share to the next smaller one's
_SHARES = ((0.70, 0.25, 0.05), (0.45, 0.45, 0.10), (0.15, 0.65, 0.20), (0.03, 0.57, 0.40), (0.01, 0.39, 0.60))
_GROWTH = (0.4, 0.6, 0.8, 1.0, 1.25)
_PIECE = 20_000  # deals in one batch


def win_rates(buckets: Buckets, deals: int = WIN_RATE_DEALS) -> list[Doubles]:
    """Win rates of each bucket's hands against a random hand, ties as halves: one [buckets] for each round.

    They come from `deals` simulated deals to the showdown, which are the same at every call. One win and one loss are
    added to each bucket, so a bucket that never occurred has 1/2.
    """
    rules = buckets.rules
    wins = [np.ones(count) for count in buckets.counts]
    seen = [np.full(count, 2.0) for count in buckets.counts]
    stream = np.uint64(key(0, "win rates"))
    slots = 2 * rules.hole_cards + sum(rules.board_cards)
    for first in range(0, deals, _PIECE):
        cards = deal_cards(min(_PIECE, deals - first), stream, first, rules.num_cards, slots)
        dealt = situations_of(buckets, cards)
        for column in range(dealt.buckets.shape[1]):
            won = dealt.results / 2 if column % 2 == 0 else 1 - dealt.results / 2
            count = buckets.counts[column // 2]
            wins[column // 2] += np.bincount(dealt.buckets[:, column], won, count)
            seen[column // 2] += np.bincount(dealt.buckets[:, column], minlength=count)
    return [won / count for won, count in zip(wins, seen, strict=True)]


@dataclass(frozen=True)
class RangeBuckets:
    """Buckets grouped by win rate: bucket k of a round is the k-th of RANGES ranges."""

    finer: Buckets
    ranges: tuple[Cards, ...]  # for each round [finer buckets], the range of every finer bucket

    @property
    def rules(self) -> PokerRules:
        return self.finer.rules

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of buckets in each round, from round 0."""
        return (RANGES,) * len(self.ranges)

    def buckets(self, round_: int, holes: Cards, boards: Cards) -> Ints:
        """The range of every hand on its board, int64 [M]; holes uint8 [M, hole cards], boards uint8 [M, n]."""
        return self.ranges[round_][self.finer.buckets(round_, holes, boards)].astype(np.int64)


def range_buckets(finer: Buckets, deals: int = WIN_RATE_DEALS) -> RangeBuckets:
    """Group buckets by their win rates in `deals` simulated deals."""
    rates = win_rates(finer, deals)
    return RangeBuckets(finer, tuple(np.searchsorted(EDGES, rate, side="right").astype(np.uint8) for rate in rates))


def shares(can_fold: bool, raises: int) -> Doubles:
    """Initial probabilities of fold, call and each of `raises` sizes, smallest first, [RANGES, 2 + raises].

    Where a fold is illegal, its share goes to the check. Rows sum to 1, or to less without raises.
    """
    rows = np.zeros((RANGES, RAISE + raises))
    for row, (fold, call, raised), growth in zip(rows, _SHARES, _GROWTH, strict=True):
        row[FOLD], row[CALL] = (fold, call) if can_fold else (0.0, fold + call)
        sizes = growth ** np.arange(raises)
        row[RAISE:] = raised * sizes / sizes.sum() if raises else 0.0
    return rows


def hand_table(game: PokerGame | BetSizePoker) -> Doubles:
    """The initial strategy of a poker game: flat, in the `hand_layout` with RANGES buckets in each round."""
    layout = hand_layout(game, (RANGES,) * game.rules.num_rounds)
    if isinstance(game, BetSizePoker):
        assert isinstance(layout, BetSizeLayout)
        return _bet_size_table(game, layout)
    assert isinstance(layout, TableLayout)
    tree, table = game.tree, np.zeros(layout.size)
    for node in range(tree.num_decisions):
        legal = tree.legal[node]
        raises = int(legal[RAISE:].sum())
        rows = shares(bool(legal[FOLD]), raises)[:, np.append(legal[:RAISE], np.ones(raises, bool))]
        starts = layout.start[node] + layout.stride[node] * np.arange(RANGES)
        table[starts[:, None] + np.arange(rows.shape[1])] = rows / rows.sum(1, keepdims=True)
    return table


def _bet_size_table(game: BetSizePoker, layout: BetSizeLayout) -> Doubles:
    """As `hand_table`: a row has all sizes above the chosen ones, and play ignores sizes that the stacks forbid."""
    bets = game.bets
    table = np.zeros(layout.size)
    most = bets.sizes.shape[1]
    for round_, block in enumerate(layout.block.tolist()):
        pattern = np.zeros((RANGES, block))
        for code in np.flatnonzero(layout.offset[round_] >= 0).tolist():
            opened, chosen = code >> most, code & ((1 << most) - 1)
            owes_blind = round_ == 0 and not opened and bets.blinds[0] != bets.blinds[1]
            row = shares(bool(chosen) or owes_blind, int(bets.length[round_]) - chosen.bit_length())
            at = layout.offset[round_, code]
            pattern[:, at : at + row.shape[1]] = row
        for start, width in layout.blocks[round_]:
            part = table[start : start + RANGES * width].reshape(RANGES, -1, block)
            part[:] = pattern[:, None]
    return table


def start_hands(table: Floats, game: PokerGame | BetSizePoker, ranges: RangeBuckets) -> None:
    """Fill a solver's flat table, in the layout of the finer buckets, with the initial strategy."""
    coarse = hand_table(game)
    fine, own = hand_layout(game, ranges.finer.counts), hand_layout(game, ranges.counts)
    for round_, range_of in enumerate(ranges.ranges):
        for (start, width), (place, _) in zip(fine.blocks[round_], own.blocks[round_], strict=True):
            rows = coarse[place : place + RANGES * width].reshape(RANGES, width).astype(table.dtype)
            for bucket, number in enumerate(range_of.tolist()):
                table[start + bucket * width : start + (bucket + 1) * width] = rows[number]
