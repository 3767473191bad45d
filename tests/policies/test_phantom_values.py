"""Tables, exact values and matches of phantom games by sequences, against the list of histories."""

from functools import cache

import numpy as np
import pytest
import torch

from blind_hex import BlindHex
from deepcfr.evaluation.exploitability import exploitability
from deepcfr.evaluation.match.exact import exact_match
from deepcfr.evaluation.match.hands import sampled_match
from deepcfr.games.openspiel import OpenSpielGame
from deepcfr.games.phantom import PhantomGame
from deepcfr.policies import phantom
from deepcfr.policies.base import Policy, UniformPolicy
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.policies.phantom import PhantomTable, table_of_sequences
from deepcfr.policies.tables import TreePolicy
from deepcfr.protocols.openspiel import infoset_states, to_openspiel
from deepcfr.types import Infosets

GAMES = (BlindHex(2, 2), BlindHex(2, 3))


@cache
def game_of(rules: BlindHex) -> PhantomGame:
    return PhantomGame(rules, str(rules))


@cache
def listed_of(rules: BlindHex) -> OpenSpielGame:
    return OpenSpielGame(rules, str(rules))


def random_policy(rules: BlindHex, seed: int) -> PhantomTable:
    """Random probabilities, a fifth of them 0."""
    game, chance = game_of(rules), np.random.default_rng(seed)
    legal = game.encoding.legal.numpy()
    weights = legal * np.maximum(chance.random(legal.shape) - 0.2, 0) + 1e-9 * legal
    weights[weights < 1e-8] *= legal.sum(1, keepdims=True).repeat(legal.shape[1], 1)[weights < 1e-8] == 1
    weights[weights.sum(1) == 0] = legal[weights.sum(1) == 0]
    return PhantomTable(game, (weights / weights.sum(1, keepdims=True)).astype(np.float32))


def on_histories(rules: BlindHex, policy: Policy) -> TreePolicy:
    """The same policy on the list of histories, asked through OpenSpiel's states."""
    listed, asked = listed_of(rules), to_openspiel(policy)
    table = np.zeros(listed.explicit.legal.shape)
    for infoset, state in enumerate(infoset_states(listed)):
        row = asked.action_probabilities(state)
        table[infoset, : len(row)] = [row[action] for action in state.legal_actions()]
    return TreePolicy(listed, table / table.sum(1, keepdims=True))


@pytest.mark.parametrize("rules", GAMES)
@pytest.mark.parametrize("threads", [1, 2])
def test_values_are_those_of_the_listed_game(rules: BlindHex, threads: int) -> None:
    policy, parts = random_policy(rules, 0), []
    ours = exploitability(policy, threads=threads, on_board=lambda done, total: parts.append((done, total)))
    theirs = exploitability(on_histories(rules, policy))
    np.testing.assert_allclose(ours.best_response_values, theirs.best_response_values, atol=1e-3)
    assert ours.value == pytest.approx(theirs.value, abs=1e-3)
    assert ours.nash_conv > 100
    assert parts == [(done + 1, 2 * game_of(rules).cells) for done in range(2 * game_of(rules).cells)]


@pytest.mark.parametrize("rules", GAMES)
def test_matches_are_those_of_the_listed_game(rules: BlindHex) -> None:
    first, second = random_policy(rules, 1), random_policy(rules, 2)
    ours, theirs = exact_match(first, second), exact_match(on_histories(rules, first), on_histories(rules, second))
    np.testing.assert_allclose(ours.seats, theirs.seats, atol=1e-3)
    assert abs(ours.seats[0]) > 1
    played = sampled_match(first, second, 20_000, seed=0)
    assert abs(played.value - ours.value) < 2 * played.interval


@pytest.mark.parametrize("rules", GAMES)
def test_averages_are_those_of_the_listed_game(rules: BlindHex) -> None:
    first, second = random_policy(rules, 3), random_policy(rules, 4)
    ours = MixturePolicy(first.game, [first, second], [1, 3])
    theirs = MixturePolicy(listed_of(rules), [on_histories(rules, first), on_histories(rules, second)], [1, 3])
    expected = exploitability(theirs)
    np.testing.assert_allclose(exploitability(ours).best_response_values, expected.best_response_values, atol=1e-3)
    assert expected.nash_conv != pytest.approx(exploitability(first).nash_conv, abs=10)


def test_a_policy_with_a_number_that_is_none_has_no_values() -> None:
    table = random_policy(GAMES[0], 5).table.copy()
    table[3, 0] = np.nan
    exact = exploitability(PhantomTable(game_of(GAMES[0]), table))
    assert np.isnan([exact.nash_conv, exact.value]).all()


def test_a_policy_is_asked_about_all_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phantom, "_AT_ONCE", 7)
    game = game_of(GAMES[0])
    table = table_of_sequences(UniformPolicy(game))
    legal = game.encoding.legal.numpy()
    np.testing.assert_allclose(table, legal / legal.sum(1, keepdims=True), rtol=1e-6)
    asked = PhantomTable(game, table).probabilities(
        Infosets(torch.tensor([3, 1]), torch.empty(2, 0, dtype=torch.uint8))
    )
    np.testing.assert_array_equal(asked.numpy(), table[[3, 1]])
