"""No-limit betting with raises the size of the pot: lines by hand, and random hands as OpenSpiel plays them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyspiel
import pytest
import torch

from board_play import ALL_IN, AllDeals, random_policy, solved
from deepcfr.boards.boards import Boards
from deepcfr.boards.public_chance import traverse_boards
from deepcfr.boards.rounds import round_trees
from deepcfr.config import SamplingConfig
from deepcfr.core.parallel import Workers
from deepcfr.core.types import TERMINAL
from deepcfr.game.acpc_definition import parse_game_definition
from deepcfr.game.base import check_game
from deepcfr.game.betting import (
    ACTION_LETTERS,
    CALL,
    FOLD,
    FOLDED,
    NOT_TERMINAL,
    RAISE,
    SHOWDOWN,
    build_tree,
)
from deepcfr.game.poker import PokerGame, bet_features
from deepcfr.game.rules import PRESETS, PokerRules, most_raises
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import UniformPolicy
from openspiel_poker import no_limit_holdem

FHP_POT, HUNL_POT = PRESETS["fhp-pot"], PRESETS["hunl-pot"]


def with_stack(stack: int, percent: int = 100, cap: int = 20, blinds: tuple[int, int] = (1, 2)) -> PokerRules:
    """Hold'em with its four rounds, in small chips."""
    return replace(
        HUNL_POT,
        name=f"stack {stack}, {percent} %, at most {cap} raises, blinds {blinds}",
        blinds=blinds,
        stack=stack,
        raise_size=(percent,) * 4,
        max_raises=(cap,) * 4,
        unit_chips=2,
    )


SETTINGS = [
    with_stack(160),
    with_stack(100),
    with_stack(30),
    with_stack(7),
    with_stack(3),
    with_stack(35, percent=50),
    with_stack(16, percent=10),  # where the smallest legal raise is more than is asked for
    replace(with_stack(20), name="stack 20, small raises after the flop", raise_size=(100, 10, 10, 10)),
    with_stack(200, percent=250),
    with_stack(40, cap=1),
    with_stack(45, blinds=(2, 2)),
    with_stack(50, blinds=(0, 3)),
]
GAMES = {rules.name: PokerGame(rules, "raw") for rules in SETTINGS}


def line(rules: PokerRules, letters: str) -> tuple[tuple[int, int], str, int]:
    """Chips, the letters of legal actions, and how the game ended after `letters`."""
    tree, node = build_tree(rules), 0
    for letter in letters.replace("/", ""):
        node = int(tree.child[node, ACTION_LETTERS.index(letter)])
        assert node > 0, f"{letters} is illegal at {letter}"
    legal = "".join(letter for letter, allowed in zip(ACTION_LETTERS, tree.legal[node], strict=True) if allowed)
    return (int(tree.chips[node, 0]), int(tree.chips[node, 1])), legal, int(tree.ended[node])


# Lines by hand. ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "letters", "chips", "legal", "ended"),
    [
        (FHP_POT, "", (50, 100), "fr", NOT_TERMINAL),  # calling is not allowed for the first action
        (FHP_POT, "r", (300, 100), "fc", NOT_TERMINAL),  # 50 to call, then the pot of 200; one raise is the cap
        (FHP_POT, "rc/", (300, 300), "cr", NOT_TERMINAL),
        (FHP_POT, "rc/r", (300, 900), "fcr", NOT_TERMINAL),
        (FHP_POT, "rc/crr", (900, 2700), "fc", NOT_TERMINAL),
        (FHP_POT, "rc/rrc", (2700, 2700), "", SHOWDOWN),
        (HUNL_POT, "", (50, 100), "fcr", NOT_TERMINAL),
        (HUNL_POT, "rrrr", (2700, 8100), "fcr", NOT_TERMINAL),
        (HUNL_POT, "rrrrr", (20000, 8100), "fc", NOT_TERMINAL),  # less than the pot is left: all-in
        (HUNL_POT, "rrrrrc", (20000, 20000), "", SHOWDOWN),
        (HUNL_POT, "rrrrc/r", (8100, 20000), "fc", NOT_TERMINAL),
        (HUNL_POT, "rc/rc/rrf", (8100, 2700), "", FOLDED),
        (with_stack(7), "rr", (6, 7), "fc", NOT_TERMINAL),  # less than the smallest raise
        (with_stack(3), "r", (3, 2), "fc", NOT_TERMINAL),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_lines(rules: PokerRules, letters: str, chips: tuple[int, int], legal: str, ended: int) -> None:
    assert line(rules, letters) == (chips, legal, ended)


def test_the_first_versions_flop_holdem_has_eight_decisions_and_no_all_in() -> None:
    tree = build_tree(FHP_POT)
    assert np.bincount(tree.round[: tree.num_decisions]).tolist() == [2, 6]
    assert tree.num_nodes == 19
    assert tree.chips.max() == 2700 < FHP_POT.stack


def test_the_last_raise_sets_the_size_of_the_next_one_in_its_round_only() -> None:
    rules = replace(with_stack(500, cap=3, blinds=(5, 10)), raise_size=(100, 5, 60, 60))
    assert line(rules, "r")[0] == (30, 10)
    assert line(rules, "rc/r")[0] == (30, 40)  # the big blind, 10, and neither 20 nor 5 % of the pot
    assert line(rules, "rc/cc/r")[0] == (30, 66)  # 60 % of 60
    assert line(rules, "rc/cc/rr")[0] == (145, 66)  # 60 % of 132 rounded down is 79, more than 36


def test_after_all_ins_nobody_acts_and_the_showdown_is_in_the_last_round() -> None:
    game = PokerGame(HUNL_POT)
    tree = game.tree
    all_in = (tree.chips == HUNL_POT.stack).all(axis=1)
    early = all_in & (tree.round[tree.parent] < 3)
    assert early.sum() > 50
    assert (tree.ended[all_in] == SHOWDOWN).all()
    assert (tree.round[all_in] == 3).all()
    # all cards that are left are dealt between the call and the showdown
    assert np.array_equal(game.deals_before.numpy()[early], 3 - tree.round[tree.parent][early])


# What networks see. -----------------------------------------------------------------------------------------------------


def test_an_action_is_three_numbers() -> None:
    # First round r c, then check, bet, and player 1 to act again: [share of the pot, occurred, now], four places a round.
    tree, node = build_tree(FHP_POT), 0
    for letter in "rccr":
        node = int(tree.child[node, ACTION_LETTERS.index(letter)])
    share, occurred, now = bet_features(FHP_POT, tree)[node].reshape(3, 8)
    assert share.tolist() == pytest.approx([250 / 150, 200 / 400, 0, 0, 0, 600 / 600, 0, 0])
    assert occurred.tolist() == [1, 1, 0, 0, 1, 1, 0, 0]
    assert now.tolist() == [0, 0, 0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize("rules", [FHP_POT, HUNL_POT, *SETTINGS[2:6]], ids=lambda rules: rules.name)
def test_every_decision_looks_different_and_has_one_current_place(rules: PokerRules) -> None:
    tree = build_tree(rules)
    features = bet_features(rules, tree)
    assert len(np.unique(features, axis=0)) == len(features) == tree.num_decisions
    _, occurred, now = features.reshape(len(features), 3, -1).swapaxes(0, 1)
    assert (now.sum(axis=1) == 1).all()
    assert (occurred[now == 1] == 0).all()
    assert (now.argmax(axis=1) // tree.positions == tree.round[: tree.num_decisions]).all()


# Random hands, as OpenSpiel plays them. ----------------------------------------------------------------------


def random_hands(game: PokerGame, count: int, seed: int) -> list[tuple[list[int], list[int], float]]:
    """Hands as cards, nodes from the root to the end, and what player 0 gains, in chips."""
    rng = np.random.default_rng(seed)
    cards = rng.random((count, game.rules.num_cards)).argsort(axis=1)[:, :9].astype(np.uint8)
    deals = game.deals_of(cards)
    ends, paths = [], []
    for _ in range(count):
        path = [0]
        while game.tree.actor[path[-1]] != TERMINAL:
            legal = np.flatnonzero(game.tree.legal[path[-1]])
            weights = np.where(legal == FOLD, 0.1, 1.0)  # folding rarely, so that many hands are long
            path.append(int(game.tree.child[path[-1], rng.choice(legal, p=weights / weights.sum())]))
        paths.append(path)
        ends.append(path[-1])
    gains = game.payoff(torch.tensor(ends), torch.arange(count), deals).double().numpy() * game.rules.unit_chips
    return list(zip(cards.tolist(), paths, gains.tolist(), strict=True))


def follow_openspiel(game: PokerGame, other: pyspiel.Game, count: int, seed: int, *, deeper: bool = False) -> None:
    """Play random hands in both games and compare whatever the other shows.

    `deeper` if one of the other game's stacks is larger: then its owner may raise beyond the other player's stack, or must
    if the rest is too short for a raise, and gets back what is not called.
    """
    rules, tree = game.rules, game.tree
    for cards, path, gain in random_hands(game, count, seed):
        state, deck = other.new_initial_state(), iter(cards)
        for node, after in pairwise(path):
            while state.is_chance_node():
                state.apply_action(next(deck))
            fold, call, *raises = [action in tree.legal[node].nonzero()[0] for action in (FOLD, CALL, RAISE)]
            legal = state.legal_actions()
            sizes = [action for action in legal if action > 1]
            assert state.current_player() == tree.actor[node]
            assert (0 in legal, 1 in legal) == (fold, call)
            if not deeper:
                assert raises == [bool(sizes)]
            if raises == [True]:
                total = int(tree.chips[tree.child[node, RAISE]].max())
                if deeper and total == rules.stack:
                    total = max(total, min(sizes))
                else:
                    check_raise(rules, int(tree.round[node]), tree.chips[node].tolist(), total, sizes)
            action = int(np.flatnonzero(tree.child[node] == after)[0])
            state.apply_action(total if action == RAISE else action)
        while state.is_chance_node():
            state.apply_action(next(deck))
        assert state.is_terminal()
        assert state.returns() == pytest.approx([gain, -gain])


def check_raise(rules: PokerRules, round_: int, chips: list[int], total: int, sizes: list[int]) -> None:
    """A raise to `total` is what the rule says, cut to the smallest and largest that the other rule book allows."""
    wanted = max(chips) + 2 * max(chips) * rules.raise_size[round_] // 100
    assert total in sizes
    assert total == min(max(wanted, min(sizes)), rules.stack)


HANDS = pytest.mark.parametrize("count", [60, pytest.param(1_000, marks=pytest.mark.long)])


@HANDS
@pytest.mark.parametrize("name", GAMES)
def test_random_hands_are_those_of_openspiel(name: str, count: int) -> None:
    game = GAMES[name]
    follow_openspiel(game, no_limit_holdem(game.rules, (game.rules.stack,) * 2), count, seed=1)


NO_LIMIT = """\
GAMEDEF
nolimit
numPlayers = 2
numRounds = 4
stack = {} {}
blind = 1 2
firstPlayer = 1 2 2 2
numSuits = 4
numRanks = 13
numHoleCards = 2
numBoardCards = 0 3 1 1
END GAMEDEF
"""


@pytest.mark.parametrize("stacks", [(400, 30), (7, 8), (41, 40)])
def test_what_a_longer_stack_has_more_is_never_at_stake(stacks: tuple[int, int]) -> None:
    rules = with_stack(min(stacks))
    read = parse_game_definition(NO_LIMIT.format(*stacks), rules.name)
    assert read == replace(rules, max_raises=(most_raises((1, 2), min(stacks)),) * 4)
    follow_openspiel(PokerGame(read, "raw"), no_limit_holdem(read, stacks), 60, seed=2, deeper=True)


# Games in which players are all-in early, traversed and solved. ----------------------------------------------------------


def test_all_ins_lead_through_every_round_to_a_showdown_on_every_board() -> None:
    game = PokerGame(ALL_IN)
    rounds, tree = round_trees(game), game.tree
    entered = [len(round_.roots) - int((round_.roots < len(round_.nodes)).sum()) for round_ in rounds]
    all_in = (tree.chips == ALL_IN.stack).all(axis=1)
    came_from = tree.round[tree.parent]
    assert entered == [0, int((all_in & (came_from == 0)).sum()), int((all_in & (came_from < 2)).sum())]
    assert 0 < entered[1] < entered[2]
    assert [int((round_.leaf_kind == SHOWDOWN).sum()) for round_ in rounds[:2]] == [0, 0]
    assert int((rounds[2].leaf_kind == SHOWDOWN).sum()) == int((tree.ended == SHOWDOWN).sum())
    for before, after in pairwise(rounds):
        assert len(before.round_leaves) == len(after.roots)


def test_a_traversal_of_all_boards_has_the_values_of_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepcfr.boards.public_chance._LATER_BOARDS", 10_000)
    policy = random_policy(ALL_IN, seed=2)
    boards, deals = Boards(policy.game, merge=True), AllDeals(policy)
    settings = SamplingConfig(kind="public-chance", boards=10_000)
    with Workers(1) as workers:
        for player in (0, 1):
            found = traverse_boards(boards, policy.on_board, player, settings, 1, 5, workers)
            assert found.value == pytest.approx(deals.value(player))


def test_full_width_cfr_solves_games_with_all_ins() -> None:
    for rules in (ALL_IN, replace(ALL_IN, name="no limping", limp=False)):
        check_game(PokerGame(rules))
        uniform = exploitability(UniformPolicy(PokerGame(rules))).nash_conv
        assert exploitability(solved(rules, 30)).nash_conv < 0.03 * uniform
