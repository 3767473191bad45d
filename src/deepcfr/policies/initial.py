"""Initial strategies, from which training may start instead of the uniform strategy (Lin 2024, section 7).

Lin (2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No Limit Poker")
simulates tens of millions of games, counts how often a hand of each bucket wins, and assigns fixed probabilities to
actions by ranges of that win rate. The paper describes only one range: below 20 % mostly a fold or a check, and rarely
all-in. We chose the numbers below.

An initial strategy is a table over five buckets, the ranges of win rates (`RangeBuckets`). A solver's tables start with
the rows of their bucket's range. Games without hands have no such buckets: there the win rate of every action is
computed at every infoset.

`AbstractPolicy` plays an abstract game's tables in the full game, where its exploitability can be computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.abstraction.texture import Buckets
from deepcfr.compiled import nb
from deepcfr.errors import GameError
from deepcfr.games.betting import CALL, FOLD, RAISE
from deepcfr.games.cards import deal_cards
from deepcfr.games.explicit import CHANCE, ExplicitTree
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.policies.base import Policy
from deepcfr.rng import key
from deepcfr.sampling.traversal_tree import seen_buckets, situations_of, table_layout
from deepcfr.types import TERMINAL, Cards, Doubles, Infosets, Ints

WIN_RATE_DEALS = 400_000
EDGES = (0.2, 0.4, 0.6, 0.8)  # win rates that separate the ranges
RANGES = len(EDGES) + 1
# by range: shares of fold, of check or call, and of all raises; and the ratio of a raise's share to the next smaller one's
_SHARES = ((0.70, 0.25, 0.05), (0.45, 0.45, 0.10), (0.15, 0.65, 0.20), (0.03, 0.57, 0.40), (0.01, 0.39, 0.60))
_GROWTH = (0.4, 0.6, 0.8, 1.0, 1.25)
_LEAST = 0.05  # in games without hands: added to the win rate of every action, so that all have positive probability
_PIECE = 20_000  # deals in one batch

Table = npt.NDArray[np.floating]


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


def poker_table(game: PokerGame) -> Doubles:
    """The initial strategy of a listed poker game: flat, in the `table_layout` with RANGES buckets in each round."""
    tree = game.tree
    layout = table_layout(tree, (RANGES,) * game.rules.num_rounds)
    table = np.zeros(layout.size)
    for node in range(tree.num_decisions):
        legal = tree.legal[node]
        raises = int(legal[RAISE:].sum())
        rows = shares(bool(legal[FOLD]), raises)[:, np.append(legal[:RAISE], np.ones(raises, bool))]
        starts = layout.start[node] + layout.stride[node] * np.arange(RANGES)
        table[starts[:, None] + np.arange(rows.shape[1])] = rows / rows.sum(1, keepdims=True)
    return table


def start_poker(table: Table, game: PokerGame, ranges: RangeBuckets) -> None:
    """Fill a solver's flat table, in the layout of the finer buckets, with the initial strategy."""
    coarse, decisions = poker_table(game), game.tree.num_decisions
    fine = table_layout(game.tree, ranges.finer.counts)
    own = table_layout(game.tree, ranges.counts)
    for round_, range_of in enumerate(ranges.ranges):
        for player in range(2):
            nodes = np.flatnonzero((game.tree.round[:decisions] == round_) & (game.tree.actor[:decisions] == player))
            if len(nodes):
                width, places = int(fine.stride[nodes[0]]), (fine.start[nodes].min(), own.start[nodes].min())
                start_round(table, coarse, (int(places[0]), int(places[1])), width, range_of)


def start_round(table: Table, coarse: Doubles, places: tuple[int, int], width: int, range_of: Cards) -> None:
    """Fill a round's buckets in `table` from those in `coarse`; `places` are their starts, `width` their entries each."""
    rows = coarse[places[1] : places[1] + RANGES * width].reshape(RANGES, width).astype(table.dtype)
    for bucket, number in enumerate(range_of.tolist()):
        begin = places[0] + bucket * width
        table[begin : begin + width] = rows[number]


def tree_table(tree: ExplicitTree) -> Doubles:
    """The initial strategy of a game without hands, [K, L]: actions in proportion to their win rate in uniform play.

    The win rate of an action is how often the player at the infoset wins after it if both players play uniformly from
    the root, ties as halves. A constant is added, so that every action has positive probability.
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
    strategies: Doubles = table / table.sum(1, keepdims=True)
    return strategies


@nb.njit(cache=True, nogil=True)
def _random_play(
    actor: Ints, parent: Ints, num_children: Ints, chance: Doubles, payoff: Doubles
) -> tuple[Doubles, Doubles]:
    """For every history the probability that uniform play reaches it, and player 0's win rate from there, both [N]."""
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


class AbstractPolicy(Policy):
    """Probabilities proportional to the positive entries of a table over buckets, uniform where no entry is positive.

    `table` is flat, in the `table_layout` of the game's tree and the abstraction's bucket counts. It holds an average
    strategy, or regrets for regret matching. It is not copied, so the policy changes when a solver updates the table.
    Raises GameError for an abstraction of another game and for a table of the wrong size.
    """

    game: PokerGame

    def __init__(
        self, game: PokerGame, abstraction: Buckets, table: npt.NDArray[np.floating], kind: str = "abstract average"
    ) -> None:
        if abstraction.rules != game.rules:
            raise GameError(f"An abstraction of {abstraction.rules.name} cannot be played in {game.name}.")
        self.game, self.abstraction, self.table, self.kind = game, abstraction, table, kind
        self._layout = table_layout(game.tree, abstraction.counts)
        if table.shape != (self._layout.size,):
            raise GameError(
                f"The tables of {game.name} with {list(abstraction.counts)} buckets have {self._layout.size:,} entries, "
                f"but the given table has shape {list(table.shape)}."
            )

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        nodes = infosets.node.cpu().numpy().astype(np.int64)
        cards = infosets.cards.cpu().numpy()
        result = np.empty((len(nodes), self.game.encoding.num_actions))
        rounds = self.game.tree.round[nodes]
        for round_ in np.unique(rounds):
            here = np.flatnonzero(rounds == round_)
            buckets = seen_buckets(self.abstraction, int(round_), cards[here])
            result[here] = self._rows(nodes[here], np.arange(len(here)), buckets[:, None])[:, 0]
        return torch.from_numpy(result).to(self.game.device)

    def on_hands(self, nodes: npt.NDArray[np.int64], cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        round_ = int(self.game.tree.round[nodes[0]])
        buckets = seen_buckets(self.abstraction, round_, cards)
        return self._rows(nodes, np.zeros(len(nodes), np.int64), buckets[None])

    def _rows(
        self, nodes: npt.NDArray[np.int64], group: npt.NDArray[np.int64], buckets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """Probabilities [n, U, A] at `nodes` [n] with each of the `buckets` [G, U] of the node's `group` [n]."""
        result = np.zeros((len(nodes), buckets.shape[1], self.game.encoding.num_actions))
        _normalise(
            self.table, self._layout.start[nodes], self._layout.stride[nodes], self.game.tree.legal[nodes],
            group, buckets, result,
        )  # fmt: skip
        return result


@nb.njit(cache=True, nogil=True)
def _normalise(
    table: npt.NDArray[np.floating],
    start: npt.NDArray[np.int64],
    stride: npt.NDArray[np.int64],
    legal: npt.NDArray[np.bool_],
    group: npt.NDArray[np.int64],
    buckets: npt.NDArray[np.int64],
    result: npt.NDArray[np.float64],
) -> None:
    """Fill `result` [n, U, A], initially zero, with strategies from the rows of `table`."""
    for hand in range(buckets.shape[1]):
        for node in range(len(start)):  # the rows of a bucket lie together
            at = start[node] + stride[node] * buckets[group[node], hand]
            total, actions = 0.0, 0
            for action in range(legal.shape[1]):
                if legal[node, action]:
                    entry = max(float(table[at + actions]), 0.0)
                    result[node, hand, action] = entry
                    total += entry
                    actions += 1
            for action in range(legal.shape[1]):
                if total > 0.0:
                    result[node, hand, action] /= total
                elif legal[node, action]:
                    result[node, hand, action] = 1.0 / actions
