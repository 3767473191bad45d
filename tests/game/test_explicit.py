"""Trees written down in any order, their numbering, perfect recall, and the sequence form against plain recursion."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st

from deepcfr.core.errors import GameError
from deepcfr.core.types import TERMINAL
from deepcfr.game.explicit import (
    CHANCE,
    ExplicitTree,
    breadth_first,
    realization,
    sequence_form,
    terminal_values,
)

# A node is a payoff, ("chance", [(probability, node), ...]) or (player, infoset name, [node, ...]).
FLIP = (
    "chance",
    [(0.25, (0, "low", [1.0, (1, "raised", [2.0, -4.0])])), (0.75, (0, "high", [(1, "raised", [3.0, 6.0])]))],
)


def tree_of(root: object, order: str = "depth") -> ExplicitTree:
    """The tree of nested nodes, listed depth-first or with the last siblings visited first."""
    rows: list[list[float]] = [[TERMINAL, -1, 0, 0, -1, 1.0, -1, 0.0]]
    infosets: dict[tuple[int, str], int] = {}
    actions: list[list[int]] = []
    stack = [(0, root)]
    while stack:
        place, node = stack.pop()
        row = rows[place]
        if isinstance(node, float):
            row[7] = node
            continue
        if node[0] == "chance":
            row[0], children, chances = CHANCE, [child for _, child in node[1]], [p for p, _ in node[1]]
        else:
            player, name, children = node
            chances = [1.0] * len(children)
            row[0], row[6] = player, infosets.setdefault((player, name), len(infosets))
            if row[6] == len(actions):
                actions.append([10 * action for action in range(len(children))])
        row[2], row[3] = len(rows), len(children)
        fresh = [(len(rows) + i, child) for i, child in enumerate(children)]
        rows += [[TERMINAL, place, 0, 0, 10 * i, chance, -1, 0.0] for i, chance in enumerate(chances)]
        stack += fresh if order == "depth" else fresh[::-1]
    columns = list(zip(*rows, strict=True))
    ints = [np.array(column, np.int64) for column in columns]
    return breadth_first(
        actor=ints[0],
        parent=ints[1],
        first_child=ints[2],
        num_children=ints[3],
        action=ints[4],
        chance=np.array(columns[5]),
        infoset=ints[6],
        payoff=np.array(columns[7]),
        infoset_actor=[player for player, _ in infosets],
        infoset_action_ids=actions,
        infoset_names=[name for _, name in infosets],
    )


@st.composite
def nodes(draw: st.DrawFn, depth: int = 4, path: tuple[int, ...] = ()) -> object:
    """Games in which every history of a player is an infoset of its own, so that recall is perfect."""
    kind = draw(st.sampled_from(["chance", 0, 1, "over"])) if depth else "over"
    if kind == "over":
        return float(draw(st.integers(-5, 5)))
    children = [draw(nodes(depth - 1, (*path, i))) for i in range(draw(st.integers(1, 3)))]
    if kind == "chance":
        weights = [draw(st.integers(1, 4)) for _ in children]
        return ("chance", [(weight / sum(weights), child) for weight, child in zip(weights, children, strict=True)])
    return (kind, str(path), children)


def random_table(tree: ExplicitTree, seed: int) -> npt.NDArray[np.float64]:
    table = np.random.default_rng(seed).random(tree.legal.shape) * tree.legal
    return table / table.sum(1, keepdims=True)


def values_by_recursion(tree: ExplicitTree, table: npt.NDArray[np.float64], node: int = 0) -> float:
    children = [int(tree.first_child[node]) + i for i in range(int(tree.num_children[node]))]
    if not children:
        return float(tree.payoff[node])
    weights = tree.chance[children] if tree.actor[node] == CHANCE else table[tree.infoset[node]]
    return sum(w * values_by_recursion(tree, table, child) for w, child in zip(weights, children, strict=False))


def test_a_tree_by_hand() -> None:
    tree = tree_of(FLIP)
    assert tree.actor.tolist() == [CHANCE, 0, 0, TERMINAL, 1, 1, *[TERMINAL] * 4]
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1, 2, 4, 4, 5, 5]
    assert tree.first_child.tolist() == [1, 3, 5, 0, 6, 8, 0, 0, 0, 0]
    assert tree.num_children.tolist() == [2, 2, 1, 0, 2, 2, 0, 0, 0, 0]
    assert tree.action.tolist() == [-1, 0, 10, 0, 10, 0, 0, 10, 0, 10]
    assert tree.chance.tolist() == [1, 0.25, 0.75, *[1] * 7]
    assert tree.infoset.tolist() == [-1, 0, 1, -1, 2, 2, -1, -1, -1, -1]
    assert tree.payoff.tolist() == [0, 0, 0, 1, 0, 0, 2, -4, 3, 6]
    assert tree.infoset_names == ("low", "high", "raised")
    assert tree.infoset_actor.tolist() == [0, 0, 1]
    assert tree.infoset_actions.tolist() == [2, 1, 2]
    assert tree.infoset_action_ids.tolist() == [[0, 10], [0, -1], [0, 10]]
    assert tree.infoset_index == {(0, "low"): 0, (0, "high"): 1, (1, "raised"): 2}
    assert tree.uniform().tolist() == [[0.5, 0.5], [1, 0], [0.5, 0.5]]


@given(nodes())
def test_the_numbering_is_breadth_first_in_whatever_order_the_histories_come(root: object) -> None:
    tree, other = tree_of(root), tree_of(root, "last first")
    for name in ("actor", "parent", "first_child", "num_children", "action", "chance", "infoset", "payoff"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(other, name))
    assert tree.infoset_names == other.infoset_names
    inner = np.flatnonzero(tree.num_children)
    # siblings are contiguous, come after their parent, and follow the siblings of the node before
    listed = [
        child
        for node in inner
        for child in range(tree.first_child[node], tree.first_child[node] + tree.num_children[node])
    ]
    assert listed == list(range(1, tree.num_nodes))
    np.testing.assert_array_equal(tree.parent[1:], np.repeat(inner, tree.num_children[inner]))
    first = [int(np.flatnonzero(tree.infoset == k)[0]) for k in range(tree.num_infosets)]
    assert first == sorted(first)


@given(nodes(), st.integers(0, 1000))
def test_the_sequence_form_has_the_value_of_the_tree(root: object, seed: int) -> None:
    tree = tree_of(root)
    form, table = sequence_form(tree, "random"), random_table(tree, seed)
    plan = realization(table, form.parent, form.num_actions)
    value = (form.payoff * plan[form.sequences[0]] * plan[form.sequences[1]]).sum()
    assert value == pytest.approx(values_by_recursion(tree, table), abs=1e-12)
    values = terminal_values(*form.sequences, form.payoff, plan)
    for player, sign in ((0, 1), (1, -1)):  # a player's realization plan times its values is its value too
        owner = np.r_[0, 1, np.repeat(form.actor, tree.num_actions)]
        assert sign * (plan * values)[owner == player].sum() == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    "root",
    [
        (0, "first", [(0, "later", [1.0, 2.0]), (0, "later", [3.0, 4.0])]),  # forgets what it did
        ("chance", [(0.5, (0, "seen", [(0, "later", [1.0])])), (0.5, (0, "other", [(0, "later", [1.0])]))]),  # and saw
        (0, "again", [(0, "again", [1.0, 2.0]), 0.0]),  # does not know whether it has acted
    ],
)
def test_imperfect_recall_is_refused(root: object) -> None:
    with pytest.raises(GameError, match=r"'forgetful' has imperfect recall: .* share the infoset '(later|again)'\.$"):
        sequence_form(tree_of(root), "forgetful")
