"""Deviations at some decisions only: what they gain over all deals, and which decisions are of which kind."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from board_play import KUHN, LEDUC, THREE_ROUNDS, AllDeals, random_policy
from deepcfr.boards.boards import Boards
from deepcfr.core.errors import GameError
from deepcfr.core.parallel import Workers
from deepcfr.game.betting import ACTION_LETTERS, RAISE
from deepcfr.game.poker import PokerGame, Suits
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.measure.deviations import (
    ALL,
    KINDS,
    DecisionSet,
    decision_kinds,
    decision_sets,
    deviations,
    restricted_gains,
    round_name,
)
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import UniformPolicy
from deepcfr.search.spot import Spot
from experiments.theorem1.tables import TablePolicy
from openspiel_poker import small_fhp

FHP = PRESETS["fhp"]
GAMES = [KUHN, THREE_ROUNDS, small_fhp(2, (3, 1), (0, 1)), replace(LEDUC, name="no board", board_cards=(0, 0))]


def gains(policy: TablePolicy, masks: npt.NDArray[np.bool_], threads: int = 1) -> Any:
    """Both players' gains at each of the sets, [P, M] in the game's unit."""
    with Workers(threads) as workers:
        return restricted_gains(Boards(policy.game, policy.game.suits == "canonical"), policy.on_board, masks, workers)


@pytest.mark.parametrize("suits", ["canonical", "raw"])
@pytest.mark.parametrize("rules", GAMES, ids=lambda rules: rules.name)
def test_the_gain_at_a_set_is_that_of_the_best_actions_there_over_all_deals(rules: PokerRules, suits: Suits) -> None:
    policy = random_policy(rules, 2, suits)
    tree, deals = policy.game.tree, AllDeals(policy)
    some = np.random.default_rng(3).random((2, tree.num_decisions)) < 0.5
    everything = np.ones(tree.num_decisions, bool)
    masks = np.stack([everything, ~everything, tree.actor[: tree.num_decisions] == 0, *some])
    expected = [[deals.value(player, free) - deals.value(player) for free in masks] for player in (0, 1)]
    assert np.min(np.max(expected, axis=1)) > 0.01
    np.testing.assert_allclose(gains(policy, masks, threads=2), expected, rtol=1e-9, atol=1e-9)


# Kinds of decisions.
# ----------------------------------------------------------------------------------------------------

LINES = {
    "first to act": ["", "cc", "rc", "crrc"],
    "after a check or call": ["c", "rcc"],
    "facing one bet": ["r", "cr", "rrcr"],
    "facing two or more bets": ["rr", "crr", "rrr", "ccrrr"],
}


@pytest.mark.parametrize("kind", LINES)
def test_a_decision_is_of_the_kind_that_its_round_has_made_it(kind: str) -> None:
    tree = PokerGame(FHP).tree
    for line in LINES[kind]:
        node = 0
        for letter in line:
            node = int(tree.child[node, ACTION_LETTERS.index(letter)])
        assert KINDS[decision_kinds(tree)[node]] == kind, line


def test_a_raise_of_any_size_is_one() -> None:
    spot = Spot.parse("Qs 7h 2c 9d 4s", "river 50 100", pot=10, stacks=40, dealer="AA", big_blind="KK")
    tree = spot.game(merge=False).tree
    bets = tree.child[0, RAISE:][tree.legal[0, RAISE:]]
    assert len(bets) == 2
    assert {KINDS[kind] for kind in decision_kinds(tree)[bets]} == {"facing one bet"}


@pytest.mark.parametrize("rules", [KUHN, THREE_ROUNDS, FHP], ids=lambda rules: rules.name)
def test_the_kinds_of_a_round_part_its_decisions_and_the_rounds_part_all(rules: PokerRules) -> None:
    tree = PokerGame(rules).tree
    sets = decision_sets(rules, tree)
    assert len({one.name for one in sets}) == len(sets)
    assert (sets[0].name, sets[0].free.all()) == (ALL, True)
    for round_ in range(rules.num_rounds):
        kinds = [one.free for one in sets if one.round == round_ and one.kind is not None]
        here = tree.round[: tree.num_decisions] == round_
        assert (np.sum(kinds, axis=0) == here).all()
        assert all(kind.any() for kind in kinds)
        rounds = [one.free for one in sets if one.round == round_ and one.kind is None]
        assert len(rounds) == (rules.num_rounds > 1)
        assert all((free == here).all() for free in rounds)


def test_deviations_are_in_thousandths_and_say_where() -> None:
    policy = random_policy(LEDUC, 10)
    sets, told = decision_sets(LEDUC, policy.game.tree), []
    found = deviations(policy, sets, on_board=lambda *done: told.append(done))
    expected = 1000 * gains(policy, np.stack([one.free for one in sets]))
    assert [one.gains for one in found] == [tuple(pair) for pair in expected.T.tolist()]
    assert [(one.name, one.round, one.kind, one.decisions) for one in found] == [
        (one.name, one.round, one.kind, int(one.free.sum())) for one in sets
    ]
    assert found[0].nash_conv == pytest.approx(exploitability(policy).nash_conv)
    assert told[-1] == (3, 3)
    assert deviations(policy, []) == []
    assert [round_name(FHP, r) for r in (0, 1)] == ["round 1 (no board cards)", "round 2 (3 board cards)"]
    assert round_name(LEDUC, 1) == "round 2 (1 board card)"


def test_games_without_boards_and_games_out_of_reach_are_refused() -> None:
    other: Any = SimpleNamespace(game=SimpleNamespace(name="goofspiel"))
    with pytest.raises(GameError, match=r"round by round in poker games, but 'goofspiel' is not one\."):
        deviations(other, [])
    hulh = PokerGame(PRESETS["hulh"])
    sets = [DecisionSet(ALL, None, None, np.ones(hulh.tree.num_decisions, bool))]
    with pytest.raises(GameError, match=r"hulh has 51,979,200 boards"):
        deviations(UniformPolicy(hulh), sets)
