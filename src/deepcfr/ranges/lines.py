"""Parts of a betting round: the decisions after some of the public action sequences that lead to it.

A round of a large game begins at hundreds of entries. A pass over some of them at a time needs memory for those only, and a
pass over a sample of them needs time for those only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepcfr.ranges.boards import RoundTree

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Lines:
    """What follows on some entries of a round, as a round of its own."""

    tree: RoundTree
    edges: Ints  # [E] which edges of the whole round these are
    exits: Ints  # [X] which exits of the whole round these are


class RoundLines:
    """A round that can be had in parts."""

    def __init__(self, tree: RoundTree) -> None:
        self.tree = tree
        self._entry = _entry_of_slot(tree)

    def only(self, entries: Ints) -> Lines:
        """The part after `entries` [X'], positions in ascending order; they are its own entries 0 .. X' - 1."""
        tree, decisions = self.tree, len(self.tree.nodes)
        chosen = np.zeros(len(tree.entries), np.bool_)
        chosen[entries] = True
        kept = chosen[self._entry]
        nodes, slots = np.flatnonzero(kept[:decisions]), np.flatnonzero(kept)
        edges = np.flatnonzero(kept[tree.edge_node])
        exits = np.flatnonzero(kept[tree.exits])
        slot = np.cumsum(kept) - 1
        edge_node = slot[tree.edge_node[edges]]
        actor = tree.actor[tree.edge_node[edges]]
        rows = [np.concatenate([entries, tree.edge_row[edges[actor == player]]]) for player in (0, 1)]
        # a row keeps its place among those of its player, so both parts of `rows` are in ascending order
        row = [np.searchsorted(rows[player], tree.row[player, slots]) for player in (0, 1)]
        edge_row = np.where(actor == 0, *(np.searchsorted(part, tree.edge_row[edges]) for part in rows))
        part = RoundTree(
            nodes=tree.nodes[nodes],
            actor=tree.actor[nodes],
            first_edge=np.searchsorted(edge_node, np.arange(len(nodes) + 1)),
            edge_action=tree.edge_action[edges],
            edge_slot=slot[tree.edge_slot[edges]],
            edge_row=edge_row,
            row=np.stack(row),
            num_rows=(len(rows[0]), len(rows[1])),
            entries=slot[tree.entries[entries]],
            exits=slot[tree.exits[exits]],
            leaf_kind=tree.leaf_kind[kept[decisions:]],
            leaf_payoff=tree.leaf_payoff[:, kept[decisions:]],
        )
        return Lines(part, edges, exits)


def _entry_of_slot(tree: RoundTree) -> Ints:
    """The entry, as a position in `tree.entries`, that every decision and leaf of a round comes after, [S]."""
    entry = np.full(tree.num_slots, -1)
    entry[tree.entries] = np.arange(len(tree.entries))
    for node, slot in zip(tree.edge_node, tree.edge_slot, strict=True):  # parents come first
        entry[slot] = entry[node]
    return entry
