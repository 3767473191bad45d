"""The betting tree: the published sizes of the games, computed from the tree, and chips and payoffs of lines by hand."""

from math import comb, prod

import numpy as np
import pytest

from deepcfr.core.types import TERMINAL
from deepcfr.game.betting import ACTION_LETTERS, FOLDED, NOT_TERMINAL, SHOWDOWN, PublicTree, build_tree
from deepcfr.game.poker import payoff_table
from deepcfr.game.rules import PRESETS

TREES = {name: build_tree(rules) for name, rules in PRESETS.items()}


def at(tree: PublicTree, line: str) -> int:
    """The node that a line such as `crc` leads to; `/` between rounds is for the reader."""
    node = 0
    for letter in line.replace("/", ""):
        node = int(tree.child[node, ACTION_LETTERS.index(letter)])
        assert node >= 0, f"{line} is illegal at {letter}"
    return node


def decisions_per_round(tree: PublicTree) -> list[int]:
    return np.bincount(tree.round[tree.ended == NOT_TERMINAL]).tolist()


def node_actions_per_round(tree: PublicTree) -> list[int]:
    rounds = range(int(tree.round.max()) + 1)
    return [int(tree.legal[tree.round == round_].sum()) for round_ in rounds]


def lines_into_round(tree: PublicTree, round_: int) -> int:
    """Decision nodes of a round whose parent is in an earlier one."""
    inside = (tree.round == round_) & (tree.ended == NOT_TERMINAL)
    return int((inside & (tree.round[np.maximum(tree.parent, 0)] < round_)).sum())


def test_flop_holdem_has_the_published_tree() -> None:
    tree = TREES["fhp"]
    assert lines_into_round(tree, 1) == 7
    assert decisions_per_round(tree) == [8, 7 * 10]
    assert tree.num_decisions == 78
    assert node_actions_per_round(tree) == [21, 182]
    assert tree.positions == 6


def test_limit_holdem_has_the_published_tree() -> None:
    tree = TREES["hulh"]
    assert decisions_per_round(tree) == [8, 70, 630, 5670]
    assert tree.num_decisions == 6378
    assert node_actions_per_round(tree) == [21, 182, 1638, 14742]
    assert int(tree.legal.sum()) == 16_583
    assert [lines_into_round(tree, round_) for round_ in (1, 2, 3)] == [7, 63, 567]


@pytest.mark.parametrize(("name", "nodes", "infosets"), [("fhp", 12, 9), ("hulh", 17, 14)])
def test_holdem_has_the_published_size(name: str, nodes: int, infosets: int) -> None:
    """Section 5 of the paper has powers of ten; here only the last round counts, which has nearly all."""
    dealt = [cards for cards in PRESETS[name].board_cards if cards]

    def boards(left: int) -> int:
        return prod(comb(left - sum(dealt[:place]), cards) for place, cards in enumerate(dealt))

    last, hands = decisions_per_round(TREES[name])[-1], comb(52, 2)
    assert 10**nodes < last * hands * comb(50, 2) * boards(48) < 10 ** (nodes + 1)
    assert 10**infosets < last * hands * boards(50) < 10 ** (infosets + 1)


def test_the_first_round_of_pot_bets_is_small() -> None:
    found = {name: 169 * decisions_per_round(TREES[name])[0] for name in ("fhp-pot", "hunl-pot")}
    assert found == {"fhp-pot": 338, "hunl-pot": 2_028}


@pytest.mark.parametrize("name", list(PRESETS))
def test_decisions_come_first_and_children_after_parents(name: str) -> None:
    tree = TREES[name]
    assert (tree.actor[: tree.num_decisions] != TERMINAL).all()
    assert (tree.actor[tree.num_decisions :] == TERMINAL).all()
    assert np.array_equal(tree.actor == TERMINAL, tree.ended != NOT_TERMINAL)
    assert (tree.parent[1:] < np.arange(1, tree.num_nodes)).all()
    for action in range(3):
        parents = np.flatnonzero(tree.child[:, action] >= 0)
        assert np.array_equal(tree.parent[tree.child[parents, action]], parents)
    assert np.array_equal(np.sort(tree.child[tree.child >= 0]), np.arange(1, tree.num_nodes))
    assert np.array_equal(tree.legal, tree.child >= 0)
    path = tree.path(tree.num_nodes - 1)
    reached = [int(tree.child[step]) for step in path]
    assert (path[0][0], reached[-1]) == (0, tree.num_nodes - 1)
    assert reached[:-1] == [node for node, _ in path[1:]]


# line, chips of both players, who acts next or why not, payoff to player 0 if it loses, ties and wins
LINES = [
    ("fhp", "", (50, 100), 0, (0, 0, 0)),
    ("fhp", "f", (50, 100), FOLDED, (-0.5, -0.5, -0.5)),
    ("fhp", "rf", (200, 100), FOLDED, (1, 1, 1)),
    ("fhp", "rrrc/", (400, 400), 1, (0, 0, 0)),
    ("fhp", "cc/cc", (100, 100), SHOWDOWN, (-1, 0, 1)),
    ("fhp", "crc/rrf", (400, 300), FOLDED, (3, 3, 3)),
    ("fhp", "crrrc/crrrrc", (800, 800), SHOWDOWN, (-8, 0, 8)),
    ("kuhn", "crf", (1, 2), FOLDED, (-1, -1, -1)),
    ("kuhn", "rc", (2, 2), SHOWDOWN, (-2, 0, 2)),
    ("leduc", "rrc/crrc", (13, 13), SHOWDOWN, (-13, 0, 13)),
    ("leduc", "rc/crrf", (11, 7), FOLDED, (7, 7, 7)),
    ("hulh", "cc/cc/cc/cc", (100, 100), SHOWDOWN, (-1, 0, 1)),
    ("hulh", "rrrc/rrrrc/rrrrc/rrrrc", (2400, 2400), SHOWDOWN, (-24, 0, 24)),
    ("hulh", "cc/cc/crc/rf", (300, 500), FOLDED, (-3, -3, -3)),
]


@pytest.mark.parametrize(("name", "line", "chips", "state", "payoff"), LINES)
def test_lines_by_hand(
    name: str, line: str, chips: tuple[int, int], state: int, payoff: tuple[float, float, float]
) -> None:
    tree = TREES[name]
    node = at(tree, line)
    assert tuple(tree.chips[node]) == chips
    assert payoff_table(PRESETS[name], tree)[node].tolist() == pytest.approx(payoff)
    assert state == (tree.actor[node] if tree.ended[node] == NOT_TERMINAL else tree.ended[node])


def test_bets_record_the_chips_of_every_action() -> None:
    tree = TREES["fhp"]
    bets = tree.bets[at(tree, "crc/cr")].reshape(2, 6)
    assert bets.tolist() == [[50, 100, 100, -1, -1, -1], [0, 100, -1, -1, -1, -1]]


def test_no_two_nodes_of_a_tree_have_the_same_bets() -> None:
    # Networks see a node only through its bets. A fold adds no chips, so only decision nodes are told apart.
    for tree in TREES.values():
        assert len(np.unique(tree.bets[: tree.num_decisions], axis=0)) == tree.num_decisions
