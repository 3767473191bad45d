"""Phantom tic-tac-toe by pairs of sequences: OpenSpiel's rules, and the values of smaller games as lists of histories."""

import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from blind_hex import BlindHex

import phantom_tic_tac_toe
from command_line import deepcfr, problem
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.types import TERMINAL, Infosets
from deepcfr.game.base import by_infoset
from deepcfr.game.openspiel import OpenSpielGame
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.match.exact import exact_match
from deepcfr.measure.match.hands import sampled_match
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.mixture import MixturePolicy
from deepcfr.run.build import build_solver
from openspiel_policies import on_histories
from phantom_tic_tac_toe import PhantomTable, PhantomTicTacToe, table_of
from tables import tabular

SMALL, LARGE = (BlindHex(2, 2), BlindHex(2, 3)), "phantom_ttt"


class Hex(PhantomTicTacToe):
    """A game of the same kind on a smaller board."""

    def __init__(self) -> None:
        super().__init__("dark_hex(num_rows=2,num_cols=3)")


@cache
def game_of(rules: BlindHex | str) -> PhantomTicTacToe:
    return PhantomTicTacToe(rules)


@cache
def listed_of(rules: BlindHex) -> OpenSpielGame:
    return OpenSpielGame(rules, str(rules))


def random_policy(rules: BlindHex, seed: int) -> PhantomTable:
    """Random probabilities, a fifth of them 0."""
    game, chance = game_of(rules), np.random.default_rng(seed)
    legal = game.encoding.legal.numpy()
    weights = legal * np.maximum(chance.random(legal.shape) - 0.2, 0)
    weights[weights.sum(1) == 0] = legal[weights.sum(1) == 0]
    return PhantomTable(game, (weights / weights.sum(1, keepdims=True)).astype(np.float32))


@pytest.mark.long  # as smaller boards, whose numbers are OpenSpiel's
def test_phantom_tic_tac_toe_has_the_published_number_of_infosets() -> None:
    game = game_of(LARGE)
    assert game.num_infosets == 5_990_669  # 5.99 million in the literature
    assert game.size == "5,990,669 infosets, and too many histories to list"


@pytest.mark.parametrize("rules", [*SMALL, pytest.param(LARGE, marks=pytest.mark.long)])
def test_random_games_go_as_openspiels(rules: BlindHex | str) -> None:
    if isinstance(rules, BlindHex):
        assert game_of(rules).num_infosets == listed_of(rules).explicit.num_infosets
    game, chance = game_of(rules), random.Random(0)
    names: dict[str, int] = {}
    infosets: dict[int, str] = {}
    deals, fails = game.deal(60, 0), 0
    for row in range(len(deals)):
        state, at = game.spiel_game.new_initial_state(), torch.tensor([row])
        node = game.start(deals)[at]
        while not state.is_terminal():
            mover = state.current_player()
            assert game.actor[node].tolist() == [mover]
            assert torch.nonzero(game.legal[node][0])[:, 0].tolist() == state.legal_actions()
            infoset = int(game.infoset[node])
            assert game.infoset_of(state, mover).node.tolist() == [infoset]
            assert torch.equal(game.encoding.legal[infoset], game.legal[node][0])
            seen = f"{mover} {state.information_state_string()}"
            assert names.setdefault(seen, infoset) == infoset
            assert infosets.setdefault(infoset, seen) == seen
            assert (int(by_infoset(game, game.actor)[infoset]), int(game.round[node])) == (mover, 0)
            action = chance.choice(state.legal_actions())
            node = game.step(node, torch.tensor([action]), at, deals)
            state.apply_action(action)
            fails += not state.is_terminal() and state.current_player() == mover
        assert game.actor[node].item() == TERMINAL
        assert not game.legal[node].any()
        assert game.payoff(node, at, deals).item() == state.returns()[0]
    assert fails > 10


def test_a_player_sees_its_marks_those_that_it_found_and_when_it_tried() -> None:
    game = game_of(SMALL[1])
    infoset = game.sequence([(0, 4), (1, 0), (0, 0)], 0)  # in the second row, then a corner that is taken
    expected = torch.zeros(3, 6)
    expected[0, 4] = expected[1, 0] = 1
    expected[2, 4], expected[2, 0] = 1 / 6, 2 / 6
    features = game.encoding.node_features
    torch.testing.assert_close(features[infoset], torch.cat([expected.flatten(), torch.zeros(1)]))
    assert features[game.sequence([(0, 4)], 1)].tolist() == [0.0] * 18 + [1.0]


@pytest.mark.parametrize("version", ["gameversion=abrupt", "obstype=reveal-numturns"])
def test_games_where_a_try_costs_a_turn_or_shows_more_are_refused(version: str) -> None:
    with pytest.raises(GameError, match="A failed try must cost no turn and show nothing else, but 'phantom_ttt"):
        PhantomTicTacToe(f"phantom_ttt({version})")
    with pytest.raises(ConfigError, match=r"Tabular solvers need a list of histories, and 'blind .*' has too many"):
        build_solver(game_of(SMALL[0]), tabular(game="blind"))


@pytest.mark.parametrize(("rules", "threads"), [(SMALL[0], 2)])
def test_values_matches_and_averages_are_those_of_the_listed_game(rules: BlindHex, threads: int) -> None:
    first, second, parts = random_policy(rules, 0), random_policy(rules, 1), []
    on_list = [on_histories(listed_of(rules), policy) for policy in (first, second)]
    ours = exploitability(first, threads=threads, on_board=lambda done, total: parts.append((done, total)))
    theirs = exploitability(on_list[0])
    np.testing.assert_allclose(ours.best_response_values, theirs.best_response_values, atol=1e-3)
    assert ours.value == pytest.approx(theirs.value, abs=1e-3)
    assert ours.nash_conv > 100
    assert parts == [(done + 1, 2 * game_of(rules).cells) for done in range(2 * game_of(rules).cells)]
    match = exact_match(first, second)
    np.testing.assert_allclose(match.seats, exact_match(*on_list).seats, atol=1e-3)
    assert abs(match.seats[0]) > 1
    played = sampled_match(first, second, 20_000, seed=0)
    assert abs(played.value - match.value) < 2 * played.interval
    mixed = exploitability(MixturePolicy(first.game, [first, second], [1, 3]))
    expected = exploitability(MixturePolicy(listed_of(rules), on_list, [1, 3]))
    np.testing.assert_allclose(mixed.best_response_values, expected.best_response_values, atol=1e-3)
    assert expected.nash_conv != pytest.approx(ours.nash_conv, abs=10)


def test_a_policy_with_a_number_that_is_none_has_no_values() -> None:
    table = random_policy(SMALL[0], 5).table.copy()
    table[3, 0] = np.nan
    exact = exploitability(PhantomTable(game_of(SMALL[0]), table))
    assert np.isnan([exact.nash_conv, exact.value]).all()


def test_a_policy_is_asked_about_all_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phantom_tic_tac_toe, "_AT_ONCE", 7)
    game = game_of(SMALL[0])
    table = table_of(UniformPolicy(game))
    legal = game.encoding.legal.numpy()
    np.testing.assert_allclose(table, legal / legal.sum(1, keepdims=True), rtol=1e-6)
    infosets = Infosets(torch.tensor([3, 1]), torch.empty(2, 0, dtype=torch.uint8))
    np.testing.assert_array_equal(PhantomTable(game, table).probabilities(infosets).numpy(), table[[3, 1]])


def test_it_is_learned_measured_and_matched_by_the_command_line(tmp_path: Path) -> None:
    game, deep, gradient = "test_phantom_tic_tac_toe:Hex", tmp_path / "deep", tmp_path / "ppo"
    small = ("--sampling.traversals", 20, "--advantage.steps", 4, "--average.steps", 4, "--iterations", 2)
    small += ("--advantage.batch-size", 32, "--average.batch-size", 32)
    learned = deepcfr("train", game, "--out", deep, *small, "--cfr.keep-networks", 1)
    assert learned.status == 0
    assert "2,508 infosets, and too many histories to list" in learned.out
    exact = deepcfr("exploitability", deep, "--json").json
    assert -exact["best_response_values"][1] < exact["value"] < exact["best_response_values"][0]
    sampled = deepcfr("exploitability", deep, "--policy", "sd-cfr", "--json").json
    assert sampled["nash_conv"] > 100
    assert sampled["nash_conv"] != exact["nash_conv"]
    few = ("--iterations", 20, "--ppo.episodes", 64, "--evaluation.every", 0)
    assert deepcfr("train", game, "--out", gradient, "--solver", "ppo", *few, "--json").json["nash_conv"] > 100
    match = deepcfr("match", gradient, deep, "--json").json
    assert match["exact"]
    assert match["hands"] == 0
    refused = problem(deepcfr("train", game, "--solver", "dream", "--out", tmp_path / "dream"))
    assert refused.startswith("Values of histories need a list of all nodes, and 'dark_hex(")
