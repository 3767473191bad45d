"""Policies of explicit trees, and to OpenSpiel and back."""

import sys
from typing import Any

import numpy as np
import pyspiel
import pytest
import torch
from open_spiel.python import policy as spiel_policy
from open_spiel.python.algorithms import get_all_states
from open_spiel.python.algorithms.exploitability import nash_conv

import deepcfr
from deepcfr import Agent, load
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.types import Infosets
from deepcfr.game.cards import cards_text
from deepcfr.game.openspiel import load_openspiel_game, same_game
from deepcfr.game.poker import PokerGame, Suits
from deepcfr.game.presets import load_game
from deepcfr.game.rules import PRESETS
from deepcfr.interop.openspiel import from_openspiel, to_openspiel, to_openspiel_bot
from deepcfr.measure.exploitability import exploitability, tree_exploitability
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.styles import scripted_policy
from deepcfr.policy.tables import TreePolicy, table_of
from leaning import Leaning
from openspiel_poker import openspiel_infosets, openspiel_policy, small_fhp
from openspiel_policies import from_poker, random_tree_policy, to_tabular_policy

GAMES = ["kuhn_poker", "leduc_poker", "goofspiel(num_cards=4,imp_info=True,points_order=descending)"]


class SinglePrecision(Policy):
    """A policy that answers as networks do: in columns, in float32, with weight nowhere else."""

    kind = "single precision"

    def __init__(self, policy: TreePolicy) -> None:
        self.game, self.policy = policy.game, policy

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self.policy.probabilities(infosets).float()


@pytest.mark.parametrize("name", GAMES)
def test_policies_go_to_openspiel_and_back(name: str) -> None:
    game = load_openspiel_game(name)
    policy = random_tree_policy(game)
    tabular, on_demand = to_tabular_policy(policy), to_openspiel(policy)
    assert tabular.action_probability_array.sum(1) == pytest.approx(np.ones(game.explicit.num_infosets))
    np.testing.assert_array_equal(from_openspiel(game, tabular).table, policy.table)
    np.testing.assert_allclose(from_openspiel(game, on_demand).table, policy.table, rtol=0, atol=1e-15)
    compiled = pyspiel.TabularPolicy(tabular.to_dict())
    np.testing.assert_array_equal(from_openspiel(game, compiled).table, policy.table)
    if name == "leduc_poker":  # OpenSpiel lists the states by itself
        theirs = on_demand.to_tabular()
        assert theirs.state_lookup.keys() == tabular.state_lookup.keys()
        for infoset in theirs.state_lookup:
            expected = tabular.policy_for_key(infoset)
            np.testing.assert_allclose(theirs.policy_for_key(infoset), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("make", [pyspiel.UniformRandomPolicy, spiel_policy.UniformRandomPolicy])
def test_policies_of_openspiel_come_in(make: Any) -> None:
    game = load_openspiel_game("leduc_poker")
    np.testing.assert_allclose(from_openspiel(game, make(game.spiel_game)).table, game.explicit.uniform())
    first = from_openspiel(game, spiel_policy.FirstActionPolicy(game.spiel_game))  # leaves actions out
    np.testing.assert_array_equal(first.table, np.eye(3)[np.zeros(936, int)])


def test_bots_of_openspiel_come_in_and_go_back() -> None:
    game = load_openspiel_game("leduc_poker")
    policy = random_tree_policy(game)
    theirs = tuple(pyspiel.make_uniform_random_bot(player, 3) for player in (0, 1))
    ours = tuple(to_openspiel_bot(policy, player) for player in (0, 1))
    for bots, table in ((theirs, game.explicit.uniform()), (ours, policy.table)):
        np.testing.assert_allclose(from_openspiel(game, bots).table, table, rtol=0, atol=1e-15)
    with pytest.raises(GameError, match="as a pair, one for each player, not as 1"):
        from_openspiel(game, ours[:1])
    for wrong in (object(), (object(), object()), (pyspiel.make_stateful_random_bot(game.spiel_game, 0, 1),) * 2):
        with pytest.raises(GameError, match="has no probabilities at a state of"):
            from_openspiel(game, wrong)
    calls = Agent(scripted_policy("call", load_game("fhp")))  # and a bot of an agent plays a hand
    state = calls.to_openspiel().game.new_initial_state()
    won = pyspiel.evaluate_bots(state, [calls.to_openspiel_bot(player, seed=player) for player in (0, 1)], 7)
    assert state.history()[4:6] + state.history()[9:] == [1, 1, 1, 1]  # nobody raises
    assert won[0] == -won[1]


@pytest.mark.parametrize("name", GAMES)
def test_probabilities_are_in_the_columns_of_the_game(name: str) -> None:
    """Every legal action of OpenSpiel's number has in its column what the table says at its position."""
    game = load_openspiel_game(name)
    policy, tree = random_tree_policy(game), game.explicit
    nodes = torch.arange(tree.num_infosets)
    answer = policy.probabilities(Infosets(nodes, torch.empty(len(nodes), 0, dtype=torch.uint8)))
    assert not bool(answer[~game.encoding.legal].any())
    for infoset in range(0, tree.num_infosets, 7):
        for position in range(tree.infoset_actions[infoset]):
            column = game.action_ids.tolist().index(tree.infoset_action_ids[infoset, position])
            assert answer[infoset, column] == policy.table[infoset, position]
    np.testing.assert_array_equal(table_of(policy), policy.table)
    rounded = table_of(SinglePrecision(policy))
    np.testing.assert_allclose(rounded, policy.table, atol=1e-6)
    np.testing.assert_allclose(rounded.sum(1), 1, rtol=1e-15)


@pytest.mark.parametrize(("ours", "suits"), [("kuhn", "raw"), ("leduc", "canonical")])
def test_poker_policies_become_openspiels(ours: str, suits: Suits) -> None:
    """The sweep over ranges and the sequence form agree on a random policy: two evaluators, two rules engines."""
    policy = Leaning(load_game(ours, suits))
    converted = from_poker(load_openspiel_game(f"{ours}_poker"), policy)
    by_ranges, by_tree = exploitability(policy), tree_exploitability(converted)
    assert by_tree.value == pytest.approx(by_ranges.value, abs=1e-6)
    assert by_tree.best_response_values == pytest.approx(by_ranges.best_response_values, abs=1e-6)


def test_poker_policies_are_refused_by_other_games() -> None:
    kuhn, leduc = (Leaning(load_game(name, "raw")) for name in ("kuhn", "leduc"))
    with pytest.raises(GameError, match=r"'kuhn' cannot deal the cards \[3, 0\]"):
        from_poker(load_openspiel_game("leduc_poker"), kuhn)
    with pytest.raises(GameError, match="'kuhn_poker' is not the same game as 'leduc'"):
        from_poker(load_openspiel_game("kuhn_poker"), leduc)
    with pytest.raises(GameError, match="Only policies of poker games"):
        from_poker(load_openspiel_game("kuhn_poker"), random_tree_policy(load_openspiel_game("kuhn_poker")))
    for take in (table_of, to_tabular_policy, tree_exploitability):
        with pytest.raises(GameError, match=r"'kuhn' (is not one|cannot be listed)"):
            take(kuhn)  # type: ignore[operator]


@pytest.mark.parametrize("make", [lambda: spiel_policy.TabularPolicy(pyspiel.load_game("leduc_poker")), object])
def test_what_is_no_policy_of_the_game_is_refused(make: Any) -> None:
    with pytest.raises(GameError, match="has no probabilities at a state of 'kuhn_poker'"):
        Agent.from_openspiel("kuhn_poker", make())


def test_states_of_another_game_or_player_are_refused() -> None:
    other = pyspiel.load_game("leduc_poker").new_initial_state()
    for card in (0, 1):
        other.apply_action(card)
    with pytest.raises(GameError, match="'kuhn_poker' has no infoset of player 0 with the name '"):
        to_openspiel(random_tree_policy(load_openspiel_game("kuhn_poker"))).action_probabilities(other)
    for name in ("leduc", "fhp"):
        theirs = Agent(UniformPolicy(load_game(name))).to_openspiel()
        with pytest.raises(GameError, match="The state is one of kuhn_poker"):
            theirs.action_probabilities(pyspiel.load_game("kuhn_poker").new_initial_state(), 0)
        state = theirs.game.new_initial_state()
        while state.is_chance_node():
            state.apply_action(state.legal_actions()[0])
        with pytest.raises(GameError, match=f"Player {1 - state.current_player()} is not to act"):
            theirs.action_probabilities(state, 1 - state.current_player())
    for name in ("hunl-pot", "fhp-pot"):
        with pytest.raises(GameError, match=f"no game with the bets of {name}"):
            Agent(UniformPolicy(load_game(name))).to_openspiel()


def test_defaults_of_parameters_may_be_written_or_not() -> None:
    first = pyspiel.load_game("phantom_ttt")
    assert same_game(first, pyspiel.load_game("phantom_ttt(obstype=reveal-nothing)"))
    assert not same_game(first, pyspiel.load_game("phantom_ttt(gameversion=abrupt)"))
    assert not same_game(*map(pyspiel.load_game, ("tic_tac_toe", "matrix_mp")))  # neither has parameters


@pytest.mark.parametrize(
    "row", [[0.5, 0.4, 0], [1.5, -0.5, 0], [np.nan, 1.0, 0], [0, 0, 0], [0.5, 0.25, 0.25]],
    ids=["short", "negative", "nan", "empty", "illegal"],
)  # fmt: skip
def test_tables_that_are_no_policies_are_refused(row: list[float]) -> None:
    game = load_openspiel_game("leduc_poker")
    table = game.explicit.uniform()
    table[int(np.flatnonzero(~game.explicit.legal.all(1))[0])] = row
    with pytest.raises(
        GameError, match=r"at the infoset '.*' of 'leduc_poker' are \[.*\], not a distribution over its 2 actions"
    ):
        TreePolicy(game, table)
    with pytest.raises(GameError, match=r"is a table of shape \(936, 3\), not \(3, 936\)"):
        TreePolicy(game, table.T)


def test_names_shared_by_players_cannot_be_tabulated() -> None:
    game = load_openspiel_game("kuhn_poker")
    object.__setattr__(game.explicit, "infoset_names", ("same",) * 12)
    with pytest.raises(GameError, match="have the same name"):
        to_tabular_policy(random_tree_policy(game))


def test_openspiel_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = random_tree_policy(load_openspiel_game("kuhn_poker"))
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(ConfigError, match="OpenSpiel is not installed"):
        to_tabular_policy(policy)


# Agents of our poker games in OpenSpiel's


def test_openspiel_finds_the_exploitability_that_we_find() -> None:
    agent = load("leduc")
    theirs = agent.to_openspiel()
    found = nash_conv(theirs.game, theirs.to_tabular(), use_cpp_br=True)
    assert 1_000 * found == pytest.approx(deepcfr.exploitability(agent).nash_conv, abs=1e-3)
    again = Agent.from_openspiel("leduc_poker", theirs)
    assert deepcfr.exploitability(again).nash_conv == pytest.approx(1_000 * found, abs=1e-3)


def test_every_infoset_of_a_small_holdem_is_answered() -> None:
    """Against a map that was found by playing all histories of both games."""
    game = PokerGame(small_fhp(3, (1, 2), (0, 1), num_suits=2, hole_cards=1), "canonical")
    policy = Leaning(game)
    theirs = to_openspiel(policy)
    expected = openspiel_policy(policy, openspiel_infosets(game, theirs.game))
    states = get_all_states.get_all_states(theirs.game, include_terminals=False, include_chance_states=False)
    assert len(states) > 200
    for state in states.values():
        assert theirs.action_probabilities(state) == pytest.approx(dict(expected.action_probabilities(state)))


def test_large_games_are_answered_state_by_state() -> None:
    """Against the query in text, over random hands: cards, betting and the order of actions are read twice."""
    agent, random = Agent(Leaning(load_game("hulh"))), np.random.default_rng(4)
    theirs, rules = agent.to_openspiel(), PRESETS["hulh"]
    asked = 0
    for _ in range(15):
        state, cards, betting = theirs.game.new_initial_state(), list[int](), [""]
        while not state.is_terminal():
            if state.is_chance_node():
                cards.append(int(random.choice([card for card, _ in state.chance_outcomes()])))
                state.apply_action(cards[-1])
                continue
            round_ = next(r for r in range(4) if len(cards) - 4 == sum(rules.board_cards[: r + 1]))
            betting += [""] * (round_ + 1 - len(betting))
            player = state.current_player()
            hole, board = (cards_text(rules, some) for some in (cards[2 * player : 2 * player + 2], cards[4:]))
            expected = agent.act(hole, board, "/".join(betting))
            assert list(theirs.action_probabilities(state).values()) == pytest.approx(list(expected.values()))
            action = int(random.choice(state.legal_actions()))
            betting[-1] += "fcr"[action]
            state.apply_action(action)
            asked += 1
    assert asked > 40
