"""A betting round in sequence form, complete or restricted to some of its betting lines.

A round of a large game begins at hundreds of round roots, one for each public action sequence that leads to it. A pass
over some round roots at a time saves memory, and a pass over a sample of round roots saves time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deepcfr.core.types import Ints
from deepcfr.game.betting import FOLDED, SHOWDOWN, PublicTree
from deepcfr.game.poker import PokerGame, payoff_table

VECTOR_STEP = 32  # numbers in one vector step, at most; loops over other counts spend most time on the remainder
NEXT_ROUND = 3  # leaf kind beside FOLDED and SHOWDOWN


@dataclass(frozen=True)
class RoundTree:
    """One round of a public tree: nodes are its decision nodes (parents first), then its leaves; edges are legal
    actions.

    A player's reach changes only with its own actions, so it is stored in rows: one for each round root of the round,
    then one for each of the player's edges. `row[p, node]` is the row of player p's reach at a node.
    """

    nodes: Ints  # [n] decision nodes of the public tree
    actor: Ints  # [n]
    first_edge: Ints  # [n + 1]; the edges of node i are first_edge[i] .. first_edge[i + 1] - 1
    edge_action: Ints  # [E]
    edge_child: Ints  # [E] the node after the edge
    edge_row: Ints  # [E] the acting player's row after it
    row: Ints  # [P, S]
    num_rows: tuple[int, int]
    roots: Ints  # [X'] first nodes of the round, in the order of the previous round's leaves
    root_nodes: Ints  # [X'] their nodes in the public tree
    round_leaves: Ints  # [X] nodes of the leaves that lead to the next round
    # [L] FOLDED, SHOWDOWN or NEXT_ROUND. After players are all-in, leaves are round roots too: they lead through each
    # round.
    leaf_kind: Ints
    leaf_payoff: npt.NDArray[np.float64]  # [P, L] gain after a fold, or of a showdown's winner; in units
    leaf_fee: npt.NDArray[np.float64]  # [L] what each player pays besides at a showdown, whoever wins; in units

    @cached_property
    def arrays(self) -> RoundArrays:
        """The arrays that kernels read."""
        return RoundArrays(self.actor, self.first_edge, self.edge_child, self.edge_row, self.row, self.roots)

    @property
    def num_edges(self) -> int:
        return len(self.edge_child)

    @cached_property
    def num_nodes(self) -> int:
        return len(self.nodes) + len(self.leaf_kind)

    @cached_property
    def edge_node(self) -> Ints:
        """The node of each edge, as a position in `nodes`, [E]."""
        return np.repeat(np.arange(len(self.nodes)), np.diff(self.first_edge))

    @cached_property
    def edge_of(self) -> Ints:
        """The edge of every action at each node, -1 where it is illegal, [n, A]; A counts the round's actions only."""
        edges = np.full((len(self.nodes), self.edge_action.max(initial=0) + 1), -1)
        edges[self.edge_node, self.edge_action] = np.arange(self.num_edges)
        return edges

    @cached_property
    def leaves(self) -> tuple[LeafColumns, LeafColumns]:
        """For each player the folds and showdowns, with the rows of the opponent's reach that their values need."""
        return self._leaf_columns(0), self._leaf_columns(1)

    def _leaf_columns(self, player: int) -> LeafColumns:
        ended = np.flatnonzero(self.leaf_kind != NEXT_ROUND)
        rows = self.row[1 - player, len(self.nodes) + ended]
        shown = self.leaf_kind[ended] == SHOWDOWN
        showdown_rows = np.unique(rows[shown])
        others = np.setdiff1d(rows, showdown_rows)
        space = -len(showdown_rows) % VECTOR_STEP  # folds fill the last vector of showdowns
        first = _padded(np.concatenate([showdown_rows, others[:space]]))
        columns = np.concatenate([first, _padded(others[space:])])
        position = {int(row): column for column, row in reversed(list(enumerate(columns)))}
        column = np.array([position[int(row)] for row in rows], np.int64)
        order = np.argsort(column, kind="stable")
        return LeafColumns(
            rows=columns,
            num_showdown=len(first),
            node=(len(self.nodes) + ended)[order],
            column=column[order],
            showdown=shown[order],
            payoff=self.leaf_payoff[player, ended[order]],
            fee=self.leaf_fee[ended[order]],
        )

    @cached_property
    def root_of(self) -> Ints:
        """The round root before every decision and leaf, as a position in `roots`, [S]."""
        root = np.full(self.num_nodes, -1)
        root[self.roots] = np.arange(len(self.roots))
        for node, child in zip(self.edge_node, self.edge_child, strict=True):  # parents come first
            root[child] = root[node]
        return root

    def only(self, roots: Ints) -> PartialRound:
        """The part of the round after `roots` [X'], ascending positions, which become its round roots 0 .. X' - 1."""
        decisions = len(self.nodes)
        chosen = np.zeros(len(self.roots), np.bool_)
        chosen[roots] = True
        kept = chosen[self.root_of]
        nodes, all_nodes = np.flatnonzero(kept[:decisions]), np.flatnonzero(kept)
        edges = np.flatnonzero(kept[self.edge_node])
        round_leaves = np.flatnonzero(kept[self.round_leaves])
        number = np.cumsum(kept) - 1
        edge_node = number[self.edge_node[edges]]
        actor = self.actor[self.edge_node[edges]]
        rows = [np.concatenate([roots, self.edge_row[edges[actor == player]]]) for player in (0, 1)]
        # rows of a player keep their order, so both parts of `rows` are ascending
        row = [np.searchsorted(rows[player], self.row[player, all_nodes]) for player in (0, 1)]
        edge_row = np.where(actor == 0, *(np.searchsorted(part, self.edge_row[edges]) for part in rows))
        part = RoundTree(
            nodes=self.nodes[nodes],
            actor=self.actor[nodes],
            first_edge=np.searchsorted(edge_node, np.arange(len(nodes) + 1)),
            edge_action=self.edge_action[edges],
            edge_child=number[self.edge_child[edges]],
            edge_row=edge_row,
            row=np.stack(row),
            num_rows=(len(rows[0]), len(rows[1])),
            roots=number[self.roots[roots]],
            root_nodes=self.root_nodes[roots],
            round_leaves=number[self.round_leaves[round_leaves]],
            leaf_kind=self.leaf_kind[kept[decisions:]],
            leaf_payoff=self.leaf_payoff[:, kept[decisions:]],
            leaf_fee=self.leaf_fee[kept[decisions:]],
        )
        return PartialRound(part, edges, round_leaves)

    def raked(self, share: float, cap: float) -> RoundTree:
        """The round if the house takes `share` of the final pot from its winner, at most `cap` units.

        A showdown's winner gains (payoff - rake) and the loser (-payoff), and a tie costs each half of the rake: that
        is a payoff less by half of the rake, and a fee of the other half for both.
        """
        rake = np.minimum(share * 2 * np.abs(self.leaf_payoff[0]), cap)
        fee = np.where(self.leaf_kind == SHOWDOWN, rake / 2, 0)
        paid = np.where(self.leaf_payoff > 0, rake - fee, 0)
        return replace(self, leaf_payoff=self.leaf_payoff - paid, leaf_fee=fee)


def _padded(rows: Ints) -> Ints:
    """`rows` with the last one repeated, up to a multiple of the vector step."""
    return np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % VECTOR_STEP)])


class RoundArrays(NamedTuple):
    """The arrays of a `RoundTree` that carry reach down and values up."""

    actor: Ints
    first_edge: Ints
    edge_child: Ints
    edge_row: Ints
    row: Ints
    roots: Ints


class LeafColumns(NamedTuple):
    """The distinct reach rows of the opponent at a round's folds and showdowns, and the row of each leaf."""

    rows: Ints  # [K] reach rows, first those of showdowns; both parts are padded
    num_showdown: int
    node: Ints  # [L'] of each fold and showdown
    column: Ints  # [L'] position in `rows`, ascending
    showdown: npt.NDArray[np.bool_]  # [L']
    payoff: npt.NDArray[np.float64]  # [L'] to the player
    fee: npt.NDArray[np.float64]  # [L']


def round_trees(game: PokerGame) -> list[RoundTree]:
    """The rounds of a game's public tree; round leaf x of a round is round root x of the next."""
    payoffs = payoff_table(game.rules, game.tree)
    trees: list[RoundTree] = []
    root_nodes = np.array([0])
    for round_ in range(game.rules.num_rounds):
        tree, root_nodes = _round_tree(game.tree, payoffs, round_, root_nodes)
        trees.append(tree)
    return trees


def _round_tree(
    tree: PublicTree, payoffs: npt.NDArray[np.float64], round_: int, root_nodes: Ints
) -> tuple[RoundTree, Ints]:
    nodes = np.flatnonzero((tree.round == round_) & (tree.ended == 0))
    edge_node, edge_action = np.nonzero(tree.legal[nodes])
    targets = tree.child[nodes[edge_node], edge_action]
    node_of = np.full(tree.num_nodes, -1)
    node_of[nodes] = np.arange(len(nodes))
    leaves = np.concatenate([targets[node_of[targets] < 0], root_nodes[node_of[root_nodes] < 0]])
    node_of[leaves] = len(nodes) + np.arange(len(leaves))
    here = (tree.ended[leaves] == FOLDED) | ((tree.ended[leaves] == SHOWDOWN) & (tree.round[leaves] == round_))
    kind = np.where(here, tree.ended[leaves], NEXT_ROUND)
    round_leaves = leaves[kind == NEXT_ROUND]
    actor, edge_child = tree.actor[nodes], node_of[targets]
    edge_row, row, num_rows = _sequences(actor[edge_node], edge_node, edge_child, node_of[root_nodes], len(node_of))
    return (
        RoundTree(
            nodes=nodes,
            actor=actor,
            first_edge=np.searchsorted(edge_node, np.arange(len(nodes) + 1)),
            edge_action=edge_action,
            edge_child=edge_child,
            edge_row=edge_row,
            row=np.ascontiguousarray(row[:, : len(nodes) + len(leaves)]),
            num_rows=num_rows,
            roots=node_of[root_nodes],
            root_nodes=root_nodes,
            round_leaves=node_of[round_leaves],
            leaf_kind=kind,
            # A fold pays player 0 the same in all columns; at a showdown column 2 is its win and 0 its loss.
            leaf_payoff=np.stack([payoffs[leaves, 2], -payoffs[leaves, 0]]),
            leaf_fee=np.zeros(len(leaves)),
        ),
        round_leaves,
    )


def _sequences(
    edge_actor: Ints, edge_node: Ints, edge_child: Ints, roots: Ints, num_nodes: int
) -> tuple[Ints, Ints, tuple[int, int]]:
    """The acting player's row after each edge, both players' rows at each node, and the number of rows of each player."""
    row = np.full((2, num_nodes), -1)
    row[:, roots] = np.arange(len(roots))
    edge_row = np.empty(len(edge_child), np.int64)
    num_rows = [len(roots), len(roots)]
    for edge, (actor, node, child) in enumerate(zip(edge_actor, edge_node, edge_child, strict=True)):
        edge_row[edge] = num_rows[actor]
        num_rows[actor] += 1
        row[1 - actor, child] = row[1 - actor, node]
        row[actor, child] = edge_row[edge]
    return edge_row, row, (num_rows[0], num_rows[1])


@dataclass(frozen=True)
class PartialRound:
    """The part of a round after some of its round roots, as a separate round."""

    tree: RoundTree
    edges: Ints  # [E] edges of the complete round
    round_leaves: Ints  # [X] round leaves of the complete round
