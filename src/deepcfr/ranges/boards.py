"""What a sweep works on: a betting round in sequence form, and the boards with their live hands in order of strength."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import comb

import numpy as np
import numpy.typing as npt

from deepcfr.errors import GameError
from deepcfr.games.betting import FOLDED, SHOWDOWN, PublicTree
from deepcfr.games.board_index import count_classes
from deepcfr.games.cards import all_hands
from deepcfr.games.hands import board_strengths
from deepcfr.games.isomorphism import extend_board, pack_cards
from deepcfr.games.poker import PokerGame, payoff_table
from deepcfr.games.rules import PokerRules
from deepcfr.parallel import Workers
from deepcfr.ranges.kernels import add_up

VECTOR_STEP = 32  # numbers at most; loops over other counts spend most of their time on the rest
NEXT_ROUND = 3  # leaf kind beside FOLDED and SHOWDOWN
_BYTES_OF_HAND = 80  # what a `Board` keeps for each of its hands, at most
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RoundTree:
    """One round of a public tree: slots are its decision nodes (parents first), then its leaves; edges are legal actions.

    A player's reach changes only with its own actions, so it is kept in rows: one for each entry of the round, then one
    for each of the player's edges. `row[p, slot]` is the row that holds player p's reach at a slot.
    """

    nodes: Ints  # [n] decision nodes of the public tree
    actor: Ints  # [n]
    first_edge: Ints  # [n + 1]; the edges of node i are first_edge[i] .. first_edge[i + 1] - 1
    edge_action: Ints  # [E]
    edge_slot: Ints  # [E] where the edge leads
    edge_row: Ints  # [E] the acting player's row after it
    row: Ints  # [P, S]
    num_rows: tuple[int, int]
    entries: Ints  # [X'] slots where the round begins, in the order of the previous round's exits
    exits: Ints  # [X] slots of the leaves that lead to the next round
    # [L] FOLDED, SHOWDOWN or NEXT_ROUND. After players are all-in, leaves are entries too: they lead through each round.
    leaf_kind: Ints
    leaf_payoff: npt.NDArray[np.float64]  # [P, L] gain after a fold, or of a showdown's winner; in units

    @property
    def num_edges(self) -> int:
        return len(self.edge_slot)

    @property
    def num_slots(self) -> int:
        return len(self.nodes) + len(self.leaf_kind)

    @cached_property
    def edge_node(self) -> Ints:
        """The node of each edge, as a position in `nodes`, [E]."""
        return np.repeat(np.arange(len(self.nodes)), np.diff(self.first_edge))

    @cached_property
    def leaves(self) -> tuple[LeafColumns, LeafColumns]:
        """The folds and showdowns as each player's values at them need the opponent's reach."""
        return self._leaf_columns(0), self._leaf_columns(1)

    def _leaf_columns(self, player: int) -> LeafColumns:
        ended = np.flatnonzero(self.leaf_kind != NEXT_ROUND)
        rows = self.row[1 - player, len(self.nodes) + ended]
        shown = self.leaf_kind[ended] == SHOWDOWN
        showdown_rows = np.unique(rows[shown])
        first, second = _padded(showdown_rows), _padded(np.setdiff1d(rows, showdown_rows))
        columns = np.concatenate([first, second])
        position = {int(row): column for column, row in reversed(list(enumerate(columns)))}
        return LeafColumns(
            rows=columns,
            num_showdown=len(first),
            slot=len(self.nodes) + ended,
            column=np.array([position[int(row)] for row in rows], np.int64),
            showdown=shown,
            payoff=self.leaf_payoff[player, ended],
        )


def _padded(rows: Ints) -> Ints:
    """`rows` with the last one repeated up to a multiple of what vector instructions take in one step."""
    return np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % VECTOR_STEP)])


@dataclass(frozen=True)
class LeafColumns:
    """The distinct reach rows of the opponent at a round's folds and showdowns, and which of them each leaf needs."""

    rows: Ints  # [K] reach rows, those that a showdown needs first; both parts padded with repetitions
    num_showdown: int
    slot: Ints  # [L'] of each fold and showdown
    column: Ints  # [L'] position in `rows`
    showdown: npt.NDArray[np.bool_]  # [L']
    payoff: npt.NDArray[np.float64]  # [L'] to the player


def round_trees(game: PokerGame) -> list[RoundTree]:
    """The rounds of a game's public tree; exit x of a round is entry x of the next."""
    payoffs = payoff_table(game.rules, game.tree)
    trees: list[RoundTree] = []
    entry_nodes = np.array([0])
    for round_ in range(game.rules.num_rounds):
        tree, entry_nodes = _round_tree(game.tree, payoffs, round_, entry_nodes)
        trees.append(tree)
    return trees


def _round_tree(
    tree: PublicTree, payoffs: npt.NDArray[np.float64], round_: int, entry_nodes: Ints
) -> tuple[RoundTree, Ints]:
    nodes = np.flatnonzero((tree.round == round_) & (tree.ended == 0))
    edge_node, edge_action = np.nonzero(tree.legal[nodes])
    targets = tree.child[nodes[edge_node], edge_action]
    slot_of = np.full(tree.num_nodes, -1)
    slot_of[nodes] = np.arange(len(nodes))
    leaves = np.concatenate([targets[slot_of[targets] < 0], entry_nodes[slot_of[entry_nodes] < 0]])
    slot_of[leaves] = len(nodes) + np.arange(len(leaves))
    here = (tree.ended[leaves] == FOLDED) | ((tree.ended[leaves] == SHOWDOWN) & (tree.round[leaves] == round_))
    kind = np.where(here, tree.ended[leaves], NEXT_ROUND)
    exits = leaves[kind == NEXT_ROUND]
    actor, edge_slot = tree.actor[nodes], slot_of[targets]
    edge_row, row, num_rows = _sequences(actor[edge_node], edge_node, edge_slot, slot_of[entry_nodes], len(slot_of))
    return (
        RoundTree(
            nodes=nodes,
            actor=actor,
            first_edge=np.searchsorted(edge_node, np.arange(len(nodes) + 1)),
            edge_action=edge_action,
            edge_slot=edge_slot,
            edge_row=edge_row,
            row=row[:, : len(nodes) + len(leaves)],
            num_rows=num_rows,
            entries=slot_of[entry_nodes],
            exits=slot_of[exits],
            leaf_kind=kind,
            # A fold pays player 0 the same in all columns; at a showdown column 2 is its win and 0 its loss.
            leaf_payoff=np.stack([payoffs[leaves, 2], -payoffs[leaves, 0]]),
        ),
        exits,
    )


def _sequences(
    edge_actor: Ints, edge_node: Ints, edge_slot: Ints, entries: Ints, num_slots: int
) -> tuple[Ints, Ints, tuple[int, int]]:
    """The acting player's row after each edge, both players' row at each slot, and how many rows each player has."""
    row = np.full((2, num_slots), -1)
    row[:, entries] = np.arange(len(entries))
    edge_row = np.empty(len(edge_slot), np.int64)
    num_rows = [len(entries), len(entries)]
    for edge, (actor, node, slot) in enumerate(zip(edge_actor, edge_node, edge_slot, strict=True)):
        edge_row[edge] = num_rows[actor]
        num_rows[actor] += 1
        row[1 - actor, slot] = row[1 - actor, node]
        row[actor, slot] = edge_row[edge]
    return edge_row, row, (num_rows[0], num_rows[1])


@dataclass(frozen=True)
class Board:
    """The public cards of one round and the private hands that they leave possible.

    A *view* is a set of hands that look the same once suits are canonical (or one hand, in raw suits): whatever is
    symmetric in the suits is kept once for each of the U views. H live hands stand in ascending order of strength.
    """

    round: int  # -1 before the first round
    cards: tuple[int, ...]  # dealt so far, in order
    groups: tuple[int, ...]  # how many of them came in each round that dealt any
    index: int  # among all boards of its round, where they are kept
    view_cards: npt.NDArray[np.uint8]  # [U, C] in the game's encoding
    size: Ints  # [U] hands in the view
    up: Ints  # [U] the view of the same hands on the previous round's board
    weight: npt.NDArray[np.float64]  # [U] how a value here counts in the value of view `up`
    holes: npt.NDArray[np.uint8]  # [H, hole cards]
    view: Ints  # [H]
    group: Ints  # [G + 1] where hands of equal strength begin
    example: Ints  # [U] a hand of the view, as a position in `holes`
    view_of: Ints  # [all hands] the view, -1 if the hand is dead
    num_cards: int  # of the deck
    copies: int  # boards of the same suit class, of which this one stands for all
    # [2, U] how often a view counts as the traverser's and as the opponent's hand, where only some are played out
    counts: npt.NDArray[np.float64] | None = None
    emphasis: float = 1.0  # hands of it to record, in proportion to a board that was drawn as often as it has copies

    def __len__(self) -> int:
        return len(self.size)


Deal = Callable[[npt.NDArray[np.floating]], npt.NDArray[np.float64]]
"""Reach at a round's exits, [P, X, U], to the values there, [M, X, U]: the mean over the next round's boards."""
Visit = Callable[[Board, npt.NDArray[np.floating], Deal], npt.NDArray[np.floating]]
"""(board, reach [P, entries, U], deal) to values [M, entries, U]."""
OnBoard = Callable[[int, int], None]
Choose = Callable[[Board, list[Board]], list[Board]]
"""(board, all boards of the next round) to those of them that are visited, with their weights as they then count."""


def count_boards(rules: PokerRules, *, merge: bool) -> list[int]:
    """How many boards each round has, counted without making them; with `merge`, up to a renaming of suits."""
    counts, cards = [], 0
    one_by_one = 1
    for round_, new_cards in enumerate(rules.board_cards):
        groups = tuple(n for n in rules.board_cards[: round_ + 1] if n)
        one_by_one *= comb(rules.num_cards - cards, new_cards)
        cards += new_cards
        counts.append(count_classes(rules.num_ranks, rules.num_suits, groups) if merge else one_by_one)
    return counts


def kept_bytes(rules: PokerRules, *, merge: bool) -> int:
    """What `Boards` takes that keeps all boards of a game, at most."""
    return sum(count_boards(rules, merge=merge)) * comb(rules.num_cards, rules.hole_cards) * _BYTES_OF_HAND


@dataclass
class Boards:
    """The boards of a game, and the recursion over them that every full-width method is.

    With `merge`, boards that differ by a renaming of suits are visited once and count as often as there are copies. With
    `keep`, all boards are made at once and stay in memory.
    """

    game: PokerGame
    merge: bool
    keep: bool = False
    rounds: list[RoundTree] = field(init=False)
    holes: npt.NDArray[np.uint8] = field(init=False)
    root: Board = field(init=False)
    kept: list[list[Board]] = field(init=False, default_factory=list)  # of each round, if kept
    _children: dict[tuple[int, tuple[int, ...]], list[Board]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        rules = self.game.rules
        if rules.hole_cards > 2:
            raise GameError(f"Exact evaluation needs one or two hole cards, but {rules.name} deals {rules.hole_cards}.")
        self.rounds = round_trees(self.game)
        self.holes = all_hands(rules.num_cards, rules.hole_cards)
        self.root = self._board(-1, (), (), 0, None, 1, 1.0)
        if self.keep:
            self._keep_all()

    def _keep_all(self) -> None:
        parents = [self.root]
        for round_ in range(len(self.rounds)):
            boards: list[Board] = []
            for parent in parents:
                later = list(self._make_children(parent, len(boards)))
                self._children[round_, parent.cards] = later
                boards += later
            self.kept.append(boards)
            parents = boards

    def children(self, board: Board) -> list[Board]:
        """The boards of the next round, one of each suit class with `merge`."""
        if self.keep:
            return self._children[board.round + 1, board.cards]
        return list(self._make_children(board, 0))

    def visit_all(
        self, visit: Visit, workers: Workers, on_board: OnBoard | None = None, choose: Choose | None = None
    ) -> npt.NDArray[np.float64]:
        """The visit's M values for a game played from the deal, float64 [M]; boards go to `workers`.

        `on_board(done, total)` is told of the boards of the first round that has several. With `choose` the values are
        those of the boards that it returns.
        """
        reach = np.ones((2, 1, len(self.root)))
        rules = self.game.rules
        deals = comb(rules.num_cards, rules.hole_cards) * comb(rules.num_cards - rules.hole_cards, rules.hole_cards)
        return self._deal(visit, self.root, reach, workers, on_board, choose)[:, 0] @ self.root.size / deals

    def _deal(
        self,
        visit: Visit,
        board: Board,
        reach: npt.NDArray[np.floating],
        workers: Workers | None,
        on_board: OnBoard | None,
        choose: Choose | None,
    ) -> npt.NDArray[np.float64]:
        """The mean over all deals of the next round's cards of the values at its entries, [M, X, U]."""
        later = self.children(board)
        if choose:
            later = choose(board, later)
        several = len(later) > 1

        def play(child: Board) -> npt.NDArray[np.floating]:
            def deal(at_exits: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
                return self._deal(visit, child, at_exits, None if several else workers, on_board, choose)

            return visit(child, np.ascontiguousarray(reach[:, :, child.up]), deal)

        results = workers.map(play, later) if workers and several else map(play, later)
        total = np.empty(0)
        for done, (child, values) in enumerate(zip(later, results, strict=True)):
            if done == 0:
                total = np.zeros((*values.shape[:2], len(board)))
            add_up(values, child.up, child.weight, total)
            if on_board and workers and several:
                on_board(done + 1, len(later))
        return total

    def _make_children(self, board: Board, first_index: int) -> Iterator[Board]:
        rules = self.game.rules
        new_cards = rules.board_cards[board.round + 1]
        groups = board.groups
        found = extend_board(board.cards, groups, new_cards, rules.num_ranks, rules.num_suits, merge=self.merge)
        chance = 1.0 / comb(rules.num_cards - 2 * rules.hole_cards - len(board.cards), new_cards)
        for index, (cards, copies) in enumerate(zip(found.cards, found.multiplicity, strict=True), first_index):
            grown = (*groups, new_cards) if new_cards else groups
            whole = (*board.cards, *(int(c) for c in cards))
            yield self._board(board.round + 1, whole, grown, index, board, int(copies), chance)

    def _board(
        self,
        round_: int,
        cards: tuple[int, ...],
        groups: tuple[int, ...],
        index: int,
        before: Board | None,
        copies: int,
        chance: float,
    ) -> Board:
        strength = board_strengths(self.holes, np.array(cards, np.uint8), self.game.rules.num_suits)
        order = np.argsort(strength, kind="stable")
        order = order[strength[order] >= 0]
        holes = self.holes[order]
        rows = self.game.views_of(holes, cards)
        _, example, view = np.unique(pack_cards(rows), return_index=True, return_inverse=True)
        size = np.bincount(view)
        view_of = np.full(len(self.holes), -1)
        view_of[order] = view
        up = view_of[order[example]] if before is None else before.view_of[order[example]]
        share = size / (size[up] if before is None else before.size[up])
        return Board(
            round=round_,
            cards=cards,
            groups=groups,
            index=index,
            view_cards=rows[example],
            size=size,
            up=up,
            weight=copies * chance * share,
            holes=holes,
            view=view,
            group=np.flatnonzero(np.diff(strength[order], prepend=-2, append=-2)),
            example=example,
            view_of=view_of,
            num_cards=self.game.rules.num_cards,
            copies=copies,
        )
