"""Initial strategies: what training may start from in place of all actions alike (Lin 2024, section 7).

Lin (2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No Limit Poker") plays out
tens of millions of games, counts how often a hand of each bucket wins, and gives actions preassigned probabilities by
ranges of that win rate. One of them is described: below 20 % mostly a fold or a check, and all-in rarely. The numbers below
are ours.

So an initial strategy is a table over five buckets, the ranges of win rates (`RangeBuckets`), and the tables of a solver
start with the rows of their bucket's range. Games without hands have no such buckets: there an action's win rate is counted
at every infoset by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt

from deepcfr.abstraction.texture import Buckets
from deepcfr.games.betting import CALL, FOLD
from deepcfr.games.explicit import CHANCE, ExplicitTree
from deepcfr.games.ladder_betting import RUNG, LadderGame
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.rng import key
from deepcfr.sampling.ladder import ladder_layout
from deepcfr.sampling.walk_tree import deal_cards, situations_of, table_layout
from deepcfr.types import TERMINAL

WIN_RATE_DEALS = 400_000
EDGES = (0.2, 0.4, 0.6, 0.8)  # win rates at which a range ends and the next one begins
RANGES = len(EDGES) + 1
# by range: shares of folding, of checking or calling, of all raises; and how a raise's share compares to the next smaller's
_SHARES = ((0.70, 0.25, 0.05), (0.45, 0.45, 0.10), (0.15, 0.65, 0.20), (0.03, 0.57, 0.40), (0.01, 0.39, 0.60))
_GROWTH = (0.4, 0.6, 0.8, 1.0, 1.25)
_LEAST = 0.05  # in games without hands: added to the win rate of every action, so that none is excluded
_PIECE = 20_000  # deals that are counted together

Cards = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Table = npt.NDArray[np.floating]


def win_rates(buckets: Buckets, deals: int = WIN_RATE_DEALS) -> list[Floats]:
    """How often a hand of each bucket wins against a random one, ties as halves, one [buckets] for each round.

    All cards to come are played out, in `deals` simulated ones, which are the same at every call. One win and one loss are
    added to those counted, so buckets that never came have 1/2.
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
    """Buckets put together by their win rates: bucket k of a round is the k-th of RANGES ranges."""

    finer: Buckets
    ranges: tuple[Cards, ...]  # [buckets] of each round, the range of every finer bucket

    @property
    def rules(self) -> PokerRules:
        return self.finer.rules

    @property
    def counts(self) -> tuple[int, ...]:
        """Buckets of each round, numbered from 0."""
        return (RANGES,) * len(self.ranges)

    def buckets(self, round_: int, holes: Cards, boards: Cards) -> Ints:
        """The range of every hand on its board, int64 [M]; holes uint8 [M, hole cards], boards uint8 [M, n]."""
        return self.ranges[round_][self.finer.buckets(round_, holes, boards)].astype(np.int64)


def range_buckets(finer: Buckets, deals: int = WIN_RATE_DEALS) -> RangeBuckets:
    """The ranges of win rates of buckets, by `deals` simulated deals."""
    rates = win_rates(finer, deals)
    return RangeBuckets(finer, tuple(np.searchsorted(EDGES, rate, side="right").astype(np.uint8) for rate in rates))


def shares(can_fold: bool, raises: int) -> Floats:
    """Initial probabilities of fold, call and each of `raises` sizes, small ones first, [RANGES, 2 + raises].

    Where folding is illegal its share is checked; rows sum to 1 but for the share of raises where there are none.
    """
    rows = np.zeros((RANGES, RUNG + raises))
    for row, (fold, call, raised), growth in zip(rows, _SHARES, _GROWTH, strict=True):
        row[FOLD], row[CALL] = (fold, call) if can_fold else (0.0, fold + call)
        sizes = growth ** np.arange(raises)
        row[RUNG:] = raised * sizes / sizes.sum() if raises else 0.0
    return rows


def poker_table(game: PokerGame) -> Floats:
    """The initial strategy of a listed poker game: flat, in the `table_layout` of RANGES buckets a round."""
    tree = game.tree
    layout = table_layout(tree, (RANGES,) * game.rules.num_rounds)
    table = np.zeros(layout.size)
    for node in range(tree.num_decisions):
        legal = tree.legal[node]
        columns = np.flatnonzero(legal)
        rows = np.zeros((RANGES, len(legal)))
        can_raise = np.flatnonzero(legal[RUNG:]) + RUNG
        wanted = shares(bool(legal[FOLD]), len(can_raise))
        rows[:, :RUNG], rows[:, can_raise] = wanted[:, :RUNG], wanted[:, RUNG:]
        rows = rows[:, columns] / rows[:, columns].sum(1, keepdims=True)
        for number, row in enumerate(rows):
            at = layout.start[node] + number * layout.stride[node]
            table[at : at + len(row)] = row
    return table


def ladder_table(game: LadderGame) -> Floats:
    """The initial strategy of a raise-ladder game: flat, in the `ladder_layout` of RANGES buckets a round.

    A row has all rungs above the chosen ones; those that the stacks forbid are left out where the row is played.
    """
    ladder = game.ladder
    layout = ladder_layout(game, (RANGES,) * game.rules.num_rounds)
    table = np.zeros(layout.size)
    most = ladder.rungs.shape[1]
    for round_, block in enumerate(layout.block.tolist()):
        pattern = np.zeros((RANGES, block))
        for code in np.flatnonzero(layout.offset[round_] >= 0).tolist():
            opened, chosen = code >> most, code & ((1 << most) - 1)
            owes_blind = round_ == 0 and not opened and ladder.blinds[0] != ladder.blinds[1]
            row = shares(bool(chosen) or owes_blind, int(ladder.length[round_]) - chosen.bit_length())
            at = layout.offset[round_, code]
            pattern[:, at : at + row.shape[1]] = row
        copies = (round_ + 1) ** 2 * int(layout.pots[round_])
        start = int(layout.start[round_])
        part = table[start : start + RANGES * copies * block].reshape(RANGES, copies, block)
        part[:] = pattern[:, None]
    return table


def start_poker(table: Table, game: PokerGame, ranges: RangeBuckets, weight: float) -> None:
    """Fill the flat table of a solver, in the layout of the finer buckets, with `weight` times the initial strategy."""
    coarse, decisions = poker_table(game), game.tree.num_decisions
    fine = table_layout(game.tree, ranges.finer.counts)
    own = table_layout(game.tree, ranges.counts)
    for round_, range_of in enumerate(ranges.ranges):
        for player in range(2):
            nodes = np.flatnonzero((game.tree.round[:decisions] == round_) & (game.tree.actor[:decisions] == player))
            if len(nodes):
                width, places = int(fine.stride[nodes[0]]), (fine.start[nodes].min(), own.start[nodes].min())
                _start_round(table, coarse, (int(places[0]), int(places[1])), width, range_of, weight)


def start_ladder(table: Table, game: LadderGame, ranges: RangeBuckets, weight: float) -> None:
    """As `start_poker`, for the table of a raise-ladder game."""
    coarse = ladder_table(game)
    fine, own = ladder_layout(game, ranges.finer.counts), ladder_layout(game, ranges.counts)
    for round_, range_of in enumerate(ranges.ranges):
        width = (round_ + 1) ** 2 * int(fine.pots[round_] * fine.block[round_])
        _start_round(table, coarse, (int(fine.start[round_]), int(own.start[round_])), width, range_of, weight)


def _start_round(
    table: Table, coarse: Floats, places: tuple[int, int], width: int, range_of: Cards, weight: float
) -> None:
    """Fill the buckets of a round, `width` entries each, that begin at the first of `places`; the ranges' at the second."""
    rows = (weight * coarse[places[1] : places[1] + RANGES * width].reshape(RANGES, width)).astype(table.dtype)
    for bucket, number in enumerate(range_of.tolist()):
        begin = places[0] + bucket * width
        table[begin : begin + width] = rows[number]


def tree_table(tree: ExplicitTree) -> Floats:
    """The initial strategy of a game without hands, [K, L]: an action in proportion to how often it wins at random.

    That is how often the player at the infoset wins after it if from the root on everybody plays all actions alike, ties
    as halves, and a little more, so that no action is excluded.
    """
    reach, wins = _random_play(tree.actor, tree.parent, tree.num_children, tree.chance, tree.payoff)
    inner = np.flatnonzero((tree.parent >= 0) & (tree.infoset[tree.parent] >= 0))
    parent = tree.parent[inner]
    row, column = tree.infoset[parent], inner - tree.first_child[parent]
    own = np.where(tree.actor[parent] == 0, wins[inner], 1 - wins[inner])
    won, seen = np.zeros(tree.legal.shape), np.zeros(tree.legal.shape)
    np.add.at(won, (row, column), reach[parent] * own)
    np.add.at(seen, (row, column), reach[parent])
    table = np.where(tree.legal, won / np.where(seen > 0, seen, 1) + _LEAST, 0.0)
    strategies: Floats = table / table.sum(1, keepdims=True)
    return strategies


@nb.njit(cache=True, nogil=True)
def _random_play(
    actor: Ints, parent: Ints, num_children: Ints, chance: Floats, payoff: Floats
) -> tuple[Floats, Floats]:
    """How likely random play comes to every history, and how often player 0 then wins, both [N]."""
    share, reach, wins = np.ones(len(actor)), np.ones(len(actor)), np.zeros(len(actor))
    for node in range(1, len(actor)):
        before = parent[node]
        share[node] = chance[node] if actor[before] == CHANCE else 1.0 / num_children[before]
        reach[node] = share[node] * reach[before]
    for node in range(len(actor) - 1, -1, -1):
        if actor[node] == TERMINAL:
            wins[node] = 0.5 + 0.5 * np.sign(payoff[node])
        if node > 0:
            wins[parent[node]] += share[node] * wins[node]
    return reach, wins
