"""No-limit betting with raises the size of the pot: lines by hand, and random hands as two other rule books play them."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyspiel
import pytest
import torch

from deepcfr.core.types import TERMINAL
from deepcfr.game.acpc_definition import parse_game_definition
from deepcfr.game.betting import (
    ACTION_LETTERS,
    CALL,
    FOLD,
    FOLDED,
    NOT_TERMINAL,
    RAISE,
    SHOWDOWN,
    PublicTree,
    build_tree,
)
from deepcfr.game.poker import PokerGame, bet_features
from deepcfr.game.rules import PRESETS, PokerRules, most_raises
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
TREES = {name: build_tree(PRESETS[name]) for name in ("fhp-pot", "hunl-pot")}


@cache
def tree_of(rules: PokerRules) -> PublicTree:
    return build_tree(rules)


def line(rules: PokerRules, letters: str) -> tuple[tuple[int, int], str, int]:
    """Chips, the letters of legal actions, and how the game ended after `letters`."""
    tree, node = tree_of(rules), 0
    for letter in letters.replace("/", ""):
        node = int(tree.child[node, ACTION_LETTERS.index(letter)])
        assert node > 0, f"{letters} is illegal at {letter}"
    legal = "".join(letter for letter, allowed in zip(ACTION_LETTERS, tree.legal[node], strict=True) if allowed)
    return (int(tree.chips[node, 0]), int(tree.chips[node, 1])), legal, int(tree.ended[node])


# Lines by hand. ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("letters", "chips", "legal", "ended"),
    [
        ("", (50, 100), "fr", NOT_TERMINAL),  # calling is not allowed for the first action
        ("f", (50, 100), "", FOLDED),
        ("r", (300, 100), "fc", NOT_TERMINAL),  # 50 to call, then the pot of 200; one raise is the cap
        ("rc/", (300, 300), "cr", NOT_TERMINAL),
        ("rc/r", (300, 900), "fcr", NOT_TERMINAL),
        ("rc/rr", (2700, 900), "fc", NOT_TERMINAL),
        ("rc/crr", (900, 2700), "fc", NOT_TERMINAL),
        ("rc/crc", (900, 900), "", SHOWDOWN),
        ("rc/rrc", (2700, 2700), "", SHOWDOWN),
        ("rc/cc", (300, 300), "", SHOWDOWN),
    ],
)
def test_lines_of_the_first_versions_flop_holdem(letters: str, chips: tuple[int, int], legal: str, ended: int) -> None:
    assert line(FHP_POT, letters) == (chips, legal, ended)


def test_the_first_versions_flop_holdem_has_eight_decisions_and_no_all_in() -> None:
    tree = TREES["fhp-pot"]
    assert np.bincount(tree.round[: tree.num_decisions]).tolist() == [2, 6]
    assert tree.num_nodes == 19
    assert tree.chips.max() == 2700 < FHP_POT.stack


@pytest.mark.parametrize(
    ("letters", "chips", "legal", "ended"),
    [
        ("", (50, 100), "fcr", NOT_TERMINAL),
        ("c", (100, 100), "cr", NOT_TERMINAL),
        ("rrrr", (2700, 8100), "fcr", NOT_TERMINAL),
        ("rrrrr", (20000, 8100), "fc", NOT_TERMINAL),  # less than the pot is left, and the other player is all-in
        ("rrrrrc", (20000, 20000), "", SHOWDOWN),
        ("rrrrrf", (20000, 8100), "", FOLDED),
        ("rrrrc/", (8100, 8100), "cr", NOT_TERMINAL),
        ("rrrrc/r", (8100, 20000), "fc", NOT_TERMINAL),
        ("rc/rc/rrf", (8100, 2700), "", FOLDED),
        ("cc/cc/cc/crrrrr", (20000, 8100), "fc", NOT_TERMINAL),
    ],
)
def test_lines_of_no_limit_holdem(letters: str, chips: tuple[int, int], legal: str, ended: int) -> None:
    assert line(HUNL_POT, letters) == (chips, legal, ended)


@pytest.mark.parametrize(
    ("letters", "chips"),
    [
        ("r", (4, 2)),  # a tenth of the pot rounds down to nothing, so the big blind is the raise
        ("rr", (4, 6)),
        ("rrc/r", (6, 8)),  # a new round begins with the big blind again
        ("rrc/rr", (10, 8)),
        ("rrrrrrr", (16, 14)),
        ("rrrrrrrc", (16, 16)),
    ],
)
def test_a_raise_is_no_smaller_than_the_last_one_or_the_blind(letters: str, chips: tuple[int, int]) -> None:
    assert line(with_stack(16, percent=10), letters)[0] == chips


def test_the_last_raise_sets_the_size_of_the_next_one_in_its_round_only() -> None:
    rules = replace(with_stack(500, cap=3, blinds=(5, 10)), raise_size=(100, 5, 60, 60))
    assert line(rules, "r")[0] == (30, 10)
    assert line(rules, "rc/r")[0] == (30, 40)  # the big blind, 10, and neither 20 nor 5 % of the pot
    assert line(rules, "rc/cc/r")[0] == (30, 66)  # 60 % of 60
    assert line(rules, "rc/cc/rr")[0] == (145, 66)  # 60 % of 132 rounded down is 79, more than 36


def test_an_all_in_may_be_less_than_the_smallest_raise() -> None:
    assert line(with_stack(7), "rr") == ((6, 7), "fc", NOT_TERMINAL)
    assert line(with_stack(3), "r") == ((3, 2), "fc", NOT_TERMINAL)


def test_after_all_ins_nobody_acts_and_the_showdown_is_in_the_last_round() -> None:
    tree, game = TREES["hunl-pot"], PokerGame(HUNL_POT)
    all_in = (tree.chips == HUNL_POT.stack).all(axis=1)
    early = all_in & (tree.round[tree.parent] < 3)
    assert early.sum() > 50
    assert (tree.ended[all_in] == SHOWDOWN).all()
    assert (tree.round[all_in] == 3).all()
    # all cards that are left are dealt between the call and the showdown
    assert np.array_equal(game.deals_before.numpy()[early], 3 - tree.round[tree.parent][early])


def test_the_cap_of_no_limit_holdem_is_never_met() -> None:
    assert most_raises(HUNL_POT.blinds, HUNL_POT.stack) == 5
    tree, uncapped = TREES["hunl-pot"], build_tree(replace(HUNL_POT, max_raises=(99,) * 4))
    assert np.array_equal(tree.child, uncapped.child)
    assert build_tree(replace(HUNL_POT, max_raises=(4,) * 4)).num_nodes < tree.num_nodes


# What networks see. -----------------------------------------------------------------------------------------------------


def test_an_action_is_three_numbers() -> None:
    # First round r c, then check, bet, and player 1 to act again: [share of the pot, occurred, now], four places a round.
    tree, node = TREES["fhp-pot"], 0
    for letter in "rccr":
        node = int(tree.child[node, ACTION_LETTERS.index(letter)])
    share, occurred, now = bet_features(FHP_POT, tree)[node].reshape(3, 8)
    assert share.tolist() == pytest.approx([250 / 150, 200 / 400, 0, 0, 0, 600 / 600, 0, 0])
    assert occurred.tolist() == [1, 1, 0, 0, 1, 1, 0, 0]
    assert now.tolist() == [0, 0, 0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize("rules", [FHP_POT, HUNL_POT, *SETTINGS], ids=lambda rules: rules.name)
def test_every_decision_looks_different_and_has_one_current_place(rules: PokerRules) -> None:
    tree = build_tree(rules)
    features = bet_features(rules, tree)
    assert len(np.unique(features, axis=0)) == len(features) == tree.num_decisions
    _, occurred, now = features.reshape(len(features), 3, -1).swapaxes(0, 1)
    assert (now.sum(axis=1) == 1).all()
    assert (occurred[now == 1] == 0).all()
    assert (now.argmax(axis=1) // tree.positions == tree.round[: tree.num_decisions]).all()


def test_limit_games_keep_their_two_numbers() -> None:
    tree = build_tree(PRESETS["fhp"])
    assert bet_features(PRESETS["fhp"], tree).shape == (78, 2 * 2 * 6)


# Random hands, as OpenSpiel and pokerkit play them. ---------------------------------------------------------------------


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


# pokerkit takes equal or missing blinds for another game.
COMPARABLE = [rules.name for rules in SETTINGS if 0 < rules.blinds[0] < rules.blinds[1]]


def parts(names: list[str], by_default: int) -> list[object]:
    """(name, hands): a few hands of each game, and 10,000 in all as long tests."""
    few = [pytest.param(name, by_default, id=f"{name}-{by_default}") for name in names]
    hands = -(-10_000 // len(names))
    return few + [pytest.param(name, hands, id=f"{name}-{hands}", marks=pytest.mark.long) for name in names]


@pytest.mark.parametrize(("name", "count"), parts(list(GAMES), 200))
def test_random_hands_are_those_of_openspiel(name: str, count: int) -> None:
    game = GAMES[name]
    follow_openspiel(game, no_limit_holdem(game.rules, (game.rules.stack,) * 2), count, seed=1)


@pytest.mark.parametrize("stacks", [(400, 30), (30, 400), (7, 8), (41, 40)])
def test_what_a_longer_stack_has_more_is_never_at_stake(stacks: tuple[int, int]) -> None:
    rules = with_stack(min(stacks))
    text = f"""\
GAMEDEF
nolimit
numPlayers = 2
numRounds = 4
stack = {stacks[0]} {stacks[1]}
blind = 1 2
firstPlayer = 1 2 2 2
numSuits = 4
numRanks = 13
numHoleCards = 2
numBoardCards = 0 3 1 1
END GAMEDEF
"""
    read = parse_game_definition(text, rules.name)
    assert read == replace(rules, max_raises=(most_raises((1, 2), min(stacks)),) * 4)
    follow_openspiel(PokerGame(read, "raw"), no_limit_holdem(read, stacks), 200, seed=2, deeper=True)


def follow_pokerkit(game: PokerGame, count: int, seed: int) -> None:
    """Play random hands with pokerkit, whose player 0 is the big blind, and compare pots, sizes of raises and payoffs."""
    pokerkit = pytest.importorskip("pokerkit")
    steps = pokerkit.Automation
    automations = (
        steps.ANTE_POSTING,
        steps.BET_COLLECTION,
        steps.BLIND_OR_STRADDLE_POSTING,
        steps.HOLE_CARDS_SHOWING_OR_MUCKING,
        steps.HAND_KILLING,
        steps.CHIPS_PUSHING,
        steps.CHIPS_PULLING,
    )
    rules, tree = game.rules, game.tree
    names = [rank + suit for rank in "23456789TJQKA" for suit in "cdhs"]
    for cards, path, gain in random_hands(game, count, seed):
        deck = [names[card] for card in cards]
        board = iter([deck[4:7], deck[7:8], deck[8:9]])
        table = pokerkit.NoLimitTexasHoldem(automations, True, 0, rules.blinds, max(rules.blinds))
        state = table((rules.stack, rules.stack), 2)
        state.deal_hole("".join(deck[2:4]))
        state.deal_hole("".join(deck[:2]))
        for node, after in pairwise(path):
            deal_streets(state, board)
            assert state.actor_index == 1 - tree.actor[node]
            assert state.total_pot_amount == tree.chips[node].sum()
            to_call = state.checking_or_calling_amount
            assert bool(tree.legal[node, FOLD]) == (to_call > 0)
            assert bool(tree.legal[node, CALL]) == state.can_check_or_call()
            before = int(tree.chips[node].max()) - max(state.bets)  # chips of each player from earlier rounds
            smallest, largest = state.min_completion_betting_or_raising_to_amount, rules.stack
            if rules.max_raises[0] > 10:  # there is no cap in pokerkit
                assert bool(tree.legal[node, RAISE]) == (smallest is not None)
            if tree.legal[node, RAISE]:
                total = int(tree.chips[tree.child[node, RAISE]].max())
                assert state.max_completion_betting_or_raising_to_amount == largest - before
                check_raise(
                    rules,
                    int(tree.round[node]),
                    tree.chips[node].tolist(),
                    total,
                    list(range(smallest + before, largest + 1)),
                )
            action = int(np.flatnonzero(tree.child[node] == after)[0])
            if action == FOLD:
                state.fold()
            elif action == CALL:
                state.check_or_call()
            else:
                state.complete_bet_or_raise_to(int(tree.chips[after].max()) - before)
        deal_streets(state, board)
        assert not state.status
        assert state.payoffs == [-gain, gain]


def deal_streets(state: Any, board: Iterator[list[str]]) -> None:
    """Burn a card that is not looked at, and deal the next street, as long as the hand waits for it."""
    while state.can_burn_card("??"):
        state.burn_card("??")
        state.deal_board("".join(next(board)))


@pytest.mark.parametrize(("name", "count"), parts(COMPARABLE, 40))
def test_random_hands_are_those_of_pokerkit(name: str, count: int) -> None:
    follow_pokerkit(GAMES[name], count, seed=3)
