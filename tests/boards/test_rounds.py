"""Parts of a round: together they are the round, and each is a round of its own."""

from dataclasses import fields

import numpy as np
import pytest

from deepcfr.boards.rounds import round_trees
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from openspiel_poker import small_fhp

ROUNDS = round_trees(PokerGame(small_fhp(4, (2, 2, 1, 2), (0, 1, 1, 1), num_suits=3)))


@pytest.mark.parametrize("tree", ROUNDS)
def test_all_entries_are_the_whole_round(tree) -> None:
    lines = tree.only(np.arange(len(tree.roots)))
    for field in fields(tree):
        assert np.array_equal(getattr(lines.tree, field.name), getattr(tree, field.name)), field.name
    assert np.array_equal(lines.edges, np.arange(tree.num_edges))
    assert np.array_equal(lines.round_leaves, np.arange(len(tree.round_leaves)))


def test_a_part_has_the_paths_of_the_whole() -> None:
    """From every node of a part back to its round root lie the same public nodes and actions as in the whole round."""
    tree = ROUNDS[1]
    roots = np.array([1, 3])
    part = tree.only(roots)
    assert np.array_equal(part.tree.nodes[part.tree.roots], tree.nodes[tree.roots[roots]])
    for edge, original in enumerate(part.edges):
        assert part.tree.edge_action[edge] == tree.edge_action[original]
        assert part.tree.nodes[part.tree.edge_node[edge]] == tree.nodes[tree.edge_node[original]]
        after, before = part.tree.edge_child[edge], tree.edge_child[original]
        assert (after < len(part.tree.nodes)) == (before < len(tree.nodes))
        if after < len(part.tree.nodes):
            assert part.tree.nodes[after] == tree.nodes[before]
        else:
            leaf, whole = after - len(part.tree.nodes), before - len(tree.nodes)
            assert part.tree.leaf_kind[leaf] == tree.leaf_kind[whole]
            assert (part.tree.leaf_payoff[:, leaf] == tree.leaf_payoff[:, whole]).all()
        # the acting player's reach changes along the edge, the other's does not
        actor = part.tree.actor[part.tree.edge_node[edge]]
        assert part.tree.row[actor, after] == part.tree.edge_row[edge]
        assert part.tree.row[1 - actor, after] == part.tree.row[1 - actor, part.tree.edge_node[edge]]
    assert len(ROUNDS[0].only(np.array([0])).tree.nodes) == len(ROUNDS[0].nodes)


def test_heads_up_limit_holdem_has_6378_decisions() -> None:
    trees = round_trees(PokerGame(PRESETS["hulh"]))
    assert sum(len(tree.nodes) for tree in trees) == 6378
    part = trees[3].only(np.arange(0, len(trees[3].roots), 100))
    assert len(part.tree.nodes) == 6 * 10
