"""Tables, exact values and matches of liar's dice by positions, against the list of histories."""

import numpy as np
import pyspiel
import pytest
import torch

from deepcfr.evaluation.exploitability import exploitability
from deepcfr.evaluation.match.exact import exact_match
from deepcfr.evaluation.match.hands import sampled_match
from deepcfr.games.liars_dice import LiarsDice
from deepcfr.games.openspiel import load_openspiel_game
from deepcfr.policies import liars_dice
from deepcfr.policies.base import Policy, UniformPolicy
from deepcfr.policies.liars_dice import LiarsDiceTable, match_weights, table_of_dice
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.policies.tables import TreePolicy
from deepcfr.protocols.openspiel import infoset_states, to_openspiel
from deepcfr.types import Infosets

GAMES = ("liars_dice(dice_sides=4)", "liars_dice(numdice=2,dice_sides=2)")


def random_policy(name: str, seed: int, game: LiarsDice | None = None) -> LiarsDiceTable:
    game = game or LiarsDice(pyspiel.load_game(name), name)
    weights = np.random.default_rng(seed).normal(size=(2 << game.num_bids, len(game.hands))) + 0.5
    return LiarsDiceTable(game, match_weights(weights))


def on_histories(name: str, policy: Policy) -> TreePolicy:
    """The same policy on the list of histories, asked through OpenSpiel's states."""
    listed, asked = load_openspiel_game(name), to_openspiel(policy)
    table = np.zeros(listed.explicit.legal.shape)
    for infoset, state in enumerate(infoset_states(listed)):
        row = asked.action_probabilities(state)
        assert sorted(row) == state.legal_actions()
        table[infoset, : len(row)] = [row[action] for action in state.legal_actions()]
    return TreePolicy(listed, table / table.sum(1, keepdims=True))


def acted(game: LiarsDice) -> list[int]:
    """The nodes that an action leads to: not the first one, nor the call before the first bid."""
    return [node for node in range(1, 2 << game.num_bids) if node != 1 << game.num_bids]


@pytest.mark.parametrize("name", GAMES)
def test_values_are_those_of_the_listed_game(name: str) -> None:
    policy = random_policy(name, 0)
    ours, theirs = exploitability(policy), exploitability(on_histories(name, policy))
    np.testing.assert_allclose(ours.best_response_values, theirs.best_response_values, atol=1e-3)
    assert ours.value == pytest.approx(theirs.value, abs=1e-3)
    assert ours.nash_conv > 100
    assert ours.boards_used == "no boards: all 256 public positions"


@pytest.mark.parametrize("name", GAMES)
def test_matches_are_those_of_the_listed_game(name: str) -> None:
    first = random_policy(name, 1)
    second = random_policy(name, 2, first.game)
    ours, theirs = exact_match(first, second), exact_match(on_histories(name, first), on_histories(name, second))
    assert ours.value == pytest.approx(theirs.value, abs=1e-3)
    np.testing.assert_allclose(ours.seats, theirs.seats, atol=1e-3)
    played = sampled_match(first, second, 20_000, seed=0)
    assert abs(played.value - ours.value) < 2 * played.interval


def test_a_table_answers_for_infosets_and_for_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liars_dice, "_AT_ONCE", 7)
    policy = random_policy(GAMES[0], 3)
    game = policy.game
    nodes = np.arange(len(game.encoding.legal))
    rows = policy.on_hands(nodes, game.hands)
    np.testing.assert_allclose(rows.sum(2), 1, atol=1e-6)
    assert not rows[~np.broadcast_to(game.encoding.legal.numpy()[:, None], rows.shape)].any()
    node = torch.tensor([200, 0, 77])
    cards = torch.from_numpy(game.hands)[[2, 0, 3]]
    np.testing.assert_array_equal(policy.probabilities(Infosets(node, cards)).numpy(), rows[[200, 0, 77], [2, 0, 3]])
    again = table_of_dice(_Asked(policy))
    np.testing.assert_allclose(again[acted(game)], policy.table[acted(game)], atol=1e-6)


class _Asked(Policy):
    """A policy of which only the answers are known."""

    kind = "asked"

    def __init__(self, inner: LiarsDiceTable) -> None:
        self.game, self._inner = inner.game, inner

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self._inner.probabilities(infosets)


@pytest.mark.parametrize("name", GAMES)
def test_averages_are_those_of_the_listed_game(name: str) -> None:
    first = random_policy(name, 4)
    game = first.game
    second = LiarsDiceTable(
        game, (random_policy(name, 5, game).table > 0.3).astype(float)
    )  # never comes to most positions
    second = LiarsDiceTable(game, match_weights(second.table))
    ours = MixturePolicy(game, [first, second], [1, 3])
    theirs = MixturePolicy(load_openspiel_game(name), [on_histories(name, first), on_histories(name, second)], [1, 3])
    expected = exploitability(theirs)
    np.testing.assert_allclose(exploitability(ours).best_response_values, expected.best_response_values, atol=1e-3)
    assert expected.nash_conv != pytest.approx(exploitability(first).nash_conv, abs=10)


def test_an_average_that_is_never_reached_is_plain() -> None:
    policy = random_policy(GAMES[0], 6)
    game = policy.game
    calls = np.zeros_like(policy.table)
    calls[1], calls[1 << game.num_bids :] = 1, 1  # the lowest bid, then a call
    always = LiarsDiceTable(game, calls)
    average = MixturePolicy(game, [always, always], [1, 1])
    assert average.probabilities(Infosets(torch.tensor([0b110]), torch.tensor([[0]], dtype=torch.uint8)))[0, -1] == 1


def test_weights_without_a_positive_one_are_uniform() -> None:
    game = random_policy(GAMES[0], 0).game
    table = match_weights(np.full((2 << game.num_bids, len(game.hands)), -1.0))
    np.testing.assert_allclose(table[acted(game)], table_of_dice(UniformPolicy(game))[acted(game)], rtol=1e-6)
