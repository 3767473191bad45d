"""The betting tree: the published sizes of the games, computed from the tree, and chips and payoffs of lines by hand."""

from itertools import pairwise
from math import comb

import numpy as np
import pytest

from deepcfr.core.types import TERMINAL
from deepcfr.game.betting import ACTION_LETTERS, FOLDED, NOT_TERMINAL, SHOWDOWN, PublicTree, build_tree
from deepcfr.game.cards import all_hands, canonical_cards, extend_board
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


def hands_per_round(name: str) -> list[int]:
    """Distinct canonical (hole, board) of each of the first two rounds."""
    rules = PRESETS[name]
    holes = all_hands(rules.num_cards, rules.hole_cards)
    groups = (rules.hole_cards, rules.board_cards[1])
    weights = rules.num_cards ** np.arange(sum(groups))
    rows = []
    for board in extend_board((), (), groups[1], rules.num_ranks, rules.num_suits, merge=True).cards:
        live = holes[~np.isin(holes, board).any(axis=1)]
        rows.append(np.concatenate([live, np.tile(board, (len(live), 1))], axis=1))
    first = canonical_cards(holes, groups[:1], rules.num_suits)
    second = canonical_cards(np.concatenate(rows), groups, rules.num_suits)
    return [len(np.unique(cards.astype(np.int64) @ weights[: cards.shape[1]])) for cards in (first, second)]


def test_flop_holdem_has_the_published_tree() -> None:
    tree = TREES["fhp"]
    assert lines_into_round(tree, 1) == 7
    assert decisions_per_round(tree) == [8, 7 * 10]
    assert tree.num_decisions == 78
    assert node_actions_per_round(tree) == [21, 182]
    assert tree.positions == 6


def test_every_line_to_the_flop_has_ten_decisions() -> None:
    tree = TREES["fhp"]
    entry = np.arange(tree.num_nodes)
    for node in range(tree.num_nodes):  # parents first
        if tree.parent[node] >= 0 and tree.round[tree.parent[node]] == 1:
            entry[node] = entry[tree.parent[node]]
    flop = np.flatnonzero((tree.round == 1) & (tree.ended == NOT_TERMINAL))
    assert np.unique(entry[flop], return_counts=True)[1].tolist() == [10] * 7


def test_flop_holdem_has_234_million_infoset_actions() -> None:
    hands = np.array(hands_per_round("fhp"))
    assert hands @ decisions_per_round(TREES["fhp"]) == 90_076_792
    assert hands @ node_actions_per_round(TREES["fhp"]) == 234_199_693


def test_limit_holdem_has_the_published_tree() -> None:
    tree = TREES["hulh"]
    assert decisions_per_round(tree) == [8, 70, 630, 5670]
    assert tree.num_decisions == 6378
    assert node_actions_per_round(tree) == [21, 182, 1638, 14742]
    assert int(tree.legal.sum()) == 16_583
    assert [lines_into_round(tree, round_) for round_ in (1, 2, 3)] == [7, 63, 567]


def test_kuhn_has_12_infosets_and_58_histories() -> None:
    tree = TREES["kuhn"]
    assert tree.num_decisions * 3 == 12
    chance = 1 + 3  # before the first and before the second card
    assert chance + 3 * 2 * tree.num_nodes == 58


def test_leduc_has_936_infosets_and_9457_histories() -> None:
    tree = TREES["leduc"]
    deals, runouts = 6 * 5, 4
    first, second = decisions_per_round(tree)
    assert 6 * first + 6 * 5 * second == 936
    chance = 1 + 6 + deals * lines_into_round(tree, 1)
    decisions = deals * (first + runouts * second)
    ends = tree.ended != NOT_TERMINAL
    terminals = deals * (int((ends & (tree.round == 0)).sum()) + runouts * int((ends & (tree.round == 1)).sum()))
    assert (decisions, chance, terminals) == (3780, 157, 5520)
    assert decisions + chance + terminals == 9457


def test_leduc_has_468_infosets_when_suits_are_merged() -> None:
    # A board pairs one of three ranks, or is one of two other ranks in the same or in the other suit: 3 * (1 + 2 * 2).
    assert hands_per_round("leduc") == [3, 15]
    assert np.array([3, 15]) @ decisions_per_round(TREES["leduc"]) == 468


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


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_fold_leaves_the_other_player_and_a_showdown_has_equal_chips(name: str) -> None:
    tree = TREES[name]
    folds, showdowns = tree.ended == FOLDED, tree.ended == SHOWDOWN
    assert np.array_equal(tree.winner[folds], 1 - tree.actor[tree.parent[folds]])
    assert (tree.winner[~folds] == -1).all()
    assert (tree.chips[showdowns, 0] == tree.chips[showdowns, 1]).all()
    folder_lost = tree.chips[folds, 1 - tree.winner[folds]]
    assert (folder_lost < tree.chips[folds, tree.winner[folds]]).all()
    assert np.array_equal(tree.chips[folds], tree.chips[tree.parent[folds]])


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_path_leads_back_to_its_node(name: str) -> None:
    tree = TREES[name]
    for node in range(0, tree.num_nodes, max(1, tree.num_nodes // 200)):
        path = tree.path(node)
        assert not path or path[0][0] == 0
        reached = [int(tree.child[step]) for step in path]
        assert reached[-1:] == ([node] if node else [])
        assert reached[:-1] == [after for _, (after, _) in pairwise(path)]


# line, chips of both players, who acts next or why not, payoff to player 0 if it loses, ties and wins
FHP_LINES = [
    ("", (50, 100), 0, (0, 0, 0)),
    ("f", (50, 100), FOLDED, (-0.5, -0.5, -0.5)),
    ("c", (100, 100), 1, (0, 0, 0)),
    ("r", (200, 100), 1, (0, 0, 0)),
    ("rf", (200, 100), FOLDED, (1, 1, 1)),
    ("rrrc/", (400, 400), 1, (0, 0, 0)),
    ("cc/", (100, 100), 1, (0, 0, 0)),
    ("cc/cc", (100, 100), SHOWDOWN, (-1, 0, 1)),
    ("cc/rf", (100, 200), FOLDED, (-1, -1, -1)),
    ("crc/rrf", (400, 300), FOLDED, (3, 3, 3)),
    ("crf", (100, 200), FOLDED, (-1, -1, -1)),
    ("crrrc/crrrrc", (800, 800), SHOWDOWN, (-8, 0, 8)),
]


@pytest.mark.parametrize(("line", "chips", "state", "payoff"), FHP_LINES)
def test_lines_of_flop_holdem_by_hand(
    line: str, chips: tuple[int, int], state: int, payoff: tuple[float, float, float]
) -> None:
    tree = TREES["fhp"]
    node = at(tree, line)
    assert tuple(tree.chips[node]) == chips
    assert payoff_table(PRESETS["fhp"], build_tree(PRESETS["fhp"]))[node].tolist() == pytest.approx(payoff)
    if tree.ended[node] == NOT_TERMINAL:
        assert tree.actor[node] == state
    else:
        assert tree.ended[node] == state


@pytest.mark.parametrize(
    ("name", "line", "payoff"),
    [
        ("kuhn", "cc", (-1, 0, 1)),
        ("kuhn", "crf", (-1, -1, -1)),
        ("kuhn", "rf", (1, 1, 1)),
        ("kuhn", "rc", (-2, 0, 2)),
        ("leduc", "rrc/crrc", (-13, 0, 13)),
        ("leduc", "cc/rf", (1, 1, 1)),
        ("leduc", "rc/crf", (-3, -3, -3)),
        ("leduc", "rc/crrf", (7, 7, 7)),
        ("hulh", "cc/cc/cc/cc", (-1, 0, 1)),
        ("hulh", "rrrc/rrrrc/rrrrc/rrrrc", (-24, 0, 24)),
        ("hulh", "rc/rc/rrf", (5, 5, 5)),
        ("hulh", "cc/cc/crc/rf", (-3, -3, -3)),
    ],
)
def test_payoffs_of_lines_by_hand(name: str, line: str, payoff: tuple[float, float, float]) -> None:
    assert payoff_table(PRESETS[name], TREES[name])[at(TREES[name], line)].tolist() == pytest.approx(payoff)


@pytest.mark.parametrize(
    ("line", "letters"),
    [
        ("", "fcr"),
        ("c", "cr"),  # the big blind may check or raise
        ("crrr", "fc"),  # three raises on top of the big blind are the cap
        ("rrr", "fc"),
        ("cc/", "cr"),
        ("cc/r", "fcr"),
        ("cc/rrrr", "fc"),  # a bet and three raises
        ("cc/crrr", "fcr"),
        ("cc/cc", ""),
    ],
)
def test_legal_actions_of_flop_holdem(line: str, letters: str) -> None:
    legal = TREES["fhp"].legal[at(TREES["fhp"], line)]
    assert "".join(letter for letter, allowed in zip(ACTION_LETTERS, legal, strict=True) if allowed) == letters


def test_bets_record_the_chips_of_every_action() -> None:
    tree = TREES["fhp"]
    bets = tree.bets[at(tree, "crc/cr")].reshape(2, 6)
    assert bets.tolist() == [[50, 100, 100, -1, -1, -1], [0, 100, -1, -1, -1, -1]]


def test_no_two_nodes_of_a_tree_have_the_same_bets() -> None:
    # Networks see a node only through its bets. A fold adds no chips, so only decision nodes are told apart.
    for tree in TREES.values():
        assert len(np.unique(tree.bets[: tree.num_decisions], axis=0)) == tree.num_decisions


def size(name: str) -> tuple[int, int]:
    """Histories and infosets of a game with all cards as dealt."""
    tree, rules = TREES[name], PRESETS[name]
    decisions, nodes = (np.bincount(rounds).tolist() for rounds in (tree.round[tree.ended == NOT_TERMINAL], tree.round))
    deck, own = rules.num_cards, rules.hole_cards
    hands = comb(deck, own)  # what a player sees, and then what happens
    deals, seen, histories, infosets = hands * comb(deck - own, own), 0, 0, 0
    for round_, dealt in enumerate(rules.board_cards):
        hands *= comb(deck - own - seen, dealt)
        deals *= comb(deck - 2 * own - seen, dealt)
        seen += dealt
        histories += nodes[round_] * deals
        infosets += decisions[round_] * hands
    return histories, infosets


@pytest.mark.parametrize(
    ("name", "histories", "infosets"), [("fhp", 10**12, 10**9), ("hulh", 10**17, 10**14)], ids=["fhp", "hulh"]
)
def test_the_games_are_as_large_as_the_paper_says(name: str, histories: int, infosets: int) -> None:
    """Section 5: "over" these powers of ten."""
    found = size(name)
    assert histories < found[0] < 10 * histories
    assert infosets < found[1] < 10 * infosets
