"""Games for traversals of Monte Carlo CFR: one tree form for poker and for explicit trees, and the chance of deals.

A game is a `TraversalTree`: positions whose children are contiguous and follow them, with or without chance nodes. A
decision position and the bucket of the acting player's cards select a row of the tables; regrets and average strategies
are one flat array each. Poker positions are those of the public tree, and chance is in the deals; explicit trees have
chance nodes and a single bucket.

A player's rows of one betting round and one bucket are adjacent, so a traversal reads them with few cache misses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deepcfr.buckets.texture import Buckets
from deepcfr.core.compiled import nb
from deepcfr.core.types import TERMINAL, Doubles, Ints
from deepcfr.game.betting import PublicTree
from deepcfr.game.cards import deal_cards
from deepcfr.game.explicit import ExplicitTree
from deepcfr.game.hands import strength
from deepcfr.game.poker import PokerGame, payoff_table

Small = npt.NDArray[np.int32]


class TraversalTree(NamedTuple):
    """A game as arrays for traversals; position 0 is the root."""

    actor: Small  # [N] 0, 1, TERMINAL or CHANCE
    first_child: Small  # [N]; the a-th legal action or chance outcome leads to first_child + a
    num_children: Small  # [N]
    start: Ints  # [N] first entry of the position and bucket 0 in the tables
    stride: Ints  # [N] number of entries from one bucket to the next
    column: Small  # [N] index of the acting player's bucket in a deal's buckets
    payoff: Doubles  # [N, results] to player 0 at terminal positions, by the deal's result
    chance: Doubles  # [N] probability of the chance outcome that leads here
    histories: Small  # [N] nodes touched by a visit: the position and the deals between its parent and it


class TableLayout(NamedTuple):
    """The table entries of a poker game's public nodes: the i-th legal action is at start + bucket * stride + i."""

    start: Ints  # [decision nodes]
    stride: Ints  # [decision nodes]
    size: int  # total number of entries
    blocks: list[list[tuple[int, int]]]  # by round, of each part with one block a bucket: its start, a block's entries


class Situations(NamedTuple):
    """The chance outcomes of B traversals that are drawn before the first action."""

    buckets: Ints  # [B, columns]
    results: Ints  # [B], columns of `TraversalTree.payoff`


def table_layout(tree: PublicTree, counts: tuple[int, ...]) -> TableLayout:
    """The layout of tables with `counts` buckets in each round: blocks by round and player, and by bucket within them."""
    decisions = tree.num_decisions
    start, stride = np.zeros(decisions, np.int64), np.zeros(decisions, np.int64)
    widths = tree.legal[:decisions].sum(1)
    size = 0
    blocks: list[list[tuple[int, int]]] = [[] for _ in counts]
    for round_, count in enumerate(counts):
        for player in range(2):
            nodes = np.flatnonzero((tree.round[:decisions] == round_) & (tree.actor[:decisions] == player))
            ends = np.cumsum(widths[nodes])
            width = int(ends[-1]) if len(nodes) else 0
            start[nodes] = size + ends - widths[nodes]
            stride[nodes] = width
            blocks[round_].append((size, width))
            size += int(count) * width
    return TableLayout(start, stride, size, blocks)


def poker_traversal_tree(game: PokerGame, layout: TableLayout) -> TraversalTree:
    """The public tree of a poker game; column 2r + p of a deal's buckets is the bucket of player p in round r."""
    tree = game.tree
    public, first_child = _depth_first(tree)
    decisions = np.flatnonzero(tree.actor[public] != TERMINAL)
    start, stride = np.zeros(len(public), np.int64), np.zeros(len(public), np.int64)
    start[decisions] = layout.start[public[decisions]]
    stride[decisions] = layout.stride[public[decisions]]
    actor = tree.actor[public]
    return TraversalTree(
        actor=actor.astype(np.int32),
        first_child=first_child,
        num_children=tree.legal[public].sum(1).astype(np.int32),
        start=start,
        stride=stride,
        column=np.where(actor == TERMINAL, 0, 2 * tree.round[public] + actor).astype(np.int32),
        payoff=payoff_table(game.rules, tree)[public],
        chance=np.ones(len(public)),
        histories=(1 + game.deals_before.cpu().numpy()[public]).astype(np.int32),
    )


def _depth_first(tree: PublicTree) -> tuple[Ints, Small]:
    """An order of public nodes with contiguous siblings and close subtrees, and the position of every first child."""
    public, stack = [0], [0]
    first_child = np.zeros(tree.num_nodes, np.int32)
    while stack:
        position = stack.pop()
        first_child[position] = len(public)
        for child in tree.child[public[position]]:
            if child >= 0:
                stack.append(len(public))
                public.append(int(child))
    return np.array(public), first_child


def explicit_traversal_tree(tree: ExplicitTree) -> TraversalTree:
    """A tree of all histories; the actions of infoset k follow those of infosets 0 .. k - 1 in the tables."""
    ends = np.cumsum(tree.infoset_actions)
    starts = np.append(ends - tree.infoset_actions, 0)  # infoset -1 of nodes without an actor gets the appended 0
    nodes = len(tree.actor)
    return TraversalTree(
        actor=tree.actor.astype(np.int32),
        first_child=tree.first_child.astype(np.int32),
        num_children=tree.num_children.astype(np.int32),
        start=starts[tree.infoset].astype(np.int64),
        stride=np.zeros(nodes, np.int64),
        column=np.zeros(nodes, np.int32),
        payoff=tree.payoff[:, None].astype(np.float64),
        chance=tree.chance.astype(np.float64),
        histories=np.ones(nodes, np.int32),
    )


# Chance


def poker_situations(abstraction: Buckets, count: int, stream: int, first: int) -> Situations:
    """Buckets of both players in every round, and the showdown, of the deals `first` .. of `PokerGame.deal_cards`."""
    rules = abstraction.rules
    slots = 2 * rules.hole_cards + sum(rules.board_cards)
    return situations_of(abstraction, deal_cards(count, np.uint64(stream), first, rules.num_cards, slots))


def situations_of(abstraction: Buckets, cards: npt.NDArray[np.uint8]) -> Situations:
    """The situations of given cards, uint8 [B, 2 * hole + board]: player 0's hand, player 1's hand, the board in order."""
    rules = abstraction.rules
    places = [(round_, player) for round_ in range(rules.num_rounds) for player in range(2)]
    buckets = np.stack([buckets_of(abstraction, cards, player, round_) for round_, player in places], axis=1)
    return Situations(buckets, showdowns(cards, rules.hole_cards, rules.num_suits))


def buckets_of(abstraction: Buckets, cards: npt.NDArray[np.uint8], player: int, round_: int) -> Ints:
    """The buckets [B] of a player's hands in a round, in deals as in `situations_of`."""
    hole = abstraction.rules.hole_cards
    seen = 2 * hole + sum(abstraction.rules.board_cards[: round_ + 1])
    own, board = cards[:, player * hole : (player + 1) * hole], cards[:, 2 * hole : seen]
    return abstraction.buckets(round_, np.ascontiguousarray(own), np.ascontiguousarray(board))


def seen_buckets(abstraction: Buckets, round_: int, cards: npt.NDArray[np.uint8]) -> Ints:
    """The buckets [U] of cards as players see them in a round, uint8 [U, C]: hole cards first, then the board."""
    hole = abstraction.rules.hole_cards
    seen = hole + sum(abstraction.rules.board_cards[: round_ + 1])
    return abstraction.buckets(round_, np.ascontiguousarray(cards[:, :hole]), np.ascontiguousarray(cards[:, hole:seen]))


def explicit_situations(count: int) -> Situations:
    """The situations of `count` traversals of a tree with chance nodes."""
    return Situations(np.zeros((count, 1), np.int64), np.zeros(count, np.int64))


@nb.njit(cache=True, nogil=True)
def showdowns(cards: npt.NDArray[np.uint8], hole: int, num_suits: int) -> Ints:
    """0, 1 or 2 for a lost, tied or won showdown of player 0, int64 [B]."""
    results = np.empty(len(cards), np.int64)
    hand = np.empty(cards.shape[1] - hole, np.uint8)
    for row in range(len(cards)):
        hand[hole:] = cards[row, 2 * hole :]
        hand[:hole] = cards[row, :hole]
        own = strength(hand, num_suits)
        hand[:hole] = cards[row, hole : 2 * hole]
        other = strength(hand, num_suits)
        results[row] = 1 + (own > other) - (own < other)
    return results
