"""Monte Carlo CFR solves small games, whatever the sampler, the threads and the form of the game; and it resumes."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from deepcfr.buckets.buckets import lossless
from deepcfr.config import TabularConfig, validate_config
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.game.openspiel import OpenSpielGame, load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.tables import TreePolicy
from deepcfr.solve.mccfr import MCCFR
from deepcfr.solve.vector_cfr import VectorCFR
from tables import changed, tabular

KUHN_VALUE = -1000 / 18  # mA/g to the first player
EXTERNAL = tabular("mccfr", 4, traversals=500, precision="float64")
OUTCOME = changed(EXTERNAL, sampler="outcome")


def solved(
    game: PokerGame | OpenSpielGame, config: TabularConfig, iterations: int, seed: int = 0, threads: int = 1
) -> MCCFR:
    solver = MCCFR(game, changed(config, iterations=iterations, seed=seed, threads=threads))
    deque(solver.iterations(), maxlen=0)
    return solver


@pytest.mark.parametrize("config", [EXTERNAL, OUTCOME, changed(EXTERNAL, weighting="uniform")])
def test_kuhn_is_solved(config: TabularConfig) -> None:
    result = exploitability(solved(load_game("kuhn"), config, 2_000).average_policy())
    assert result.exploitability < 4
    assert abs(result.value - KUHN_VALUE) < 4


def test_leduc_agrees_with_full_width_cfr() -> None:
    """By zero sum, the value of the game is between what best responses to our strategies leave to either player."""
    game = load_game("leduc")
    ours = exploitability(solved(game, changed(EXTERNAL, traversals=100), 5_000).average_policy())
    full_width = VectorCFR(game, tabular("dcfr", 1_000, precision="float64"))
    deque(full_width.iterations(), maxlen=0)
    exact = exploitability(full_width.average_policy())
    assert exact.nash_conv < 1
    assert ours.exploitability < 25
    assert -ours.best_response_values[1] < exact.value + exact.nash_conv
    assert exact.value - exact.nash_conv < ours.best_response_values[0]
    assert abs(ours.value - exact.value) < 10


def test_lost_updates_of_threads_do_not_hurt() -> None:
    """Leduc's 288 infosets are where threads meet most; twice the exploitability of one thread would be a defect."""
    game, config = load_game("leduc"), changed(EXTERNAL, traversals=2_000, precision="float32")
    one, two = (
        np.mean([exploitability(solved(game, config, 150, seed, n).average_policy()).exploitability for seed in (0, 1)])
        for n in (1, 2)
    )
    assert two < 1.5 * one
    assert one < 120


def test_openspiel_kuhn_is_solved_to_the_strategy_of_its_equilibria() -> None:
    """The second player's equilibrium is unique: bluff a jack with 1/3, call with a queen 1/3."""
    solver = solved(load_openspiel_game("kuhn_poker"), EXTERNAL, 2_000)
    policy = solver.average_policy()
    assert isinstance(policy, TreePolicy)
    bet = {name: policy.table[k, 1] for k, name in enumerate(policy.game.explicit.infoset_names)}
    assert bet["0p"] == pytest.approx(1 / 3, abs=0.05)
    assert bet["1b"] == pytest.approx(1 / 3, abs=0.05)
    assert bet["0b"] < 0.01
    assert bet["2b"] > 0.99
    assert bet["2pb"] > 0.99
    assert bet["2"] == pytest.approx(3 * bet["0"], abs=0.08)


@pytest.mark.parametrize("config", [EXTERNAL, OUTCOME])
@pytest.mark.parametrize("load", [lambda: load_game("leduc"), lambda: load_openspiel_game("kuhn_poker")])
def test_a_restored_state_goes_on_bit_for_bit(config: TabularConfig, load: type) -> None:
    game = load()
    whole, half = solved(game, config, 6, seed=3), solved(game, config, 3, seed=3)
    resumed = MCCFR(game, changed(config, iterations=6, seed=3))
    for name, array in resumed.arrays().items():
        np.copyto(array, half.arrays()[name])
    resumed.iteration, resumed.nodes_touched = half.iteration, half.nodes_touched
    records = list(resumed.iterations())
    assert [record.iteration for record in records] == [4, 5, 6]
    assert resumed.nodes_touched == whole.nodes_touched
    assert sum(record.nodes_touched for record in records) == whole.nodes_touched - half.nodes_touched
    for name, array in whole.arrays().items():
        assert array.any()
        np.testing.assert_array_equal(resumed.arrays()[name], array)


def test_seeds_differ_and_runs_repeat() -> None:
    game = load_game("leduc")
    first, again, other = (solved(game, EXTERNAL, 2, seed).arrays()["regret"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_chunks_of_one_thread_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    game = load_game("leduc")
    whole = solved(game, EXTERNAL, 3).arrays()
    monkeypatch.setattr("deepcfr.solve.mccfr._MOST_CHUNK", 7)
    for name, array in solved(game, EXTERNAL, 3).arrays().items():
        np.testing.assert_array_equal(array, whole[name])


def test_linear_weighting_multiplies_the_second_iteration_by_two() -> None:
    """With one traversal, player 0's second one starts from equal regrets under both weightings."""
    game, single = load_game("kuhn"), changed(EXTERNAL, traversals=1)
    average_rows = slice(9, None)  # player 1's block: its averages are added to while player 0 traverses
    gains = {}
    for weighting in ("linear", "uniform"):
        config = changed(single, weighting=weighting)
        once = {name: array.copy() for name, array in solved(game, config, 1, seed=2).arrays().items()}
        twice = solved(game, config, 2, seed=2).arrays()
        gains[weighting] = (once, twice["average"][average_rows] - once["average"][average_rows])
    for name, array in gains["linear"][0].items():
        np.testing.assert_array_equal(array, gains["uniform"][0][name])
    assert gains["uniform"][1].sum() > 0
    np.testing.assert_allclose(gains["linear"][1], 2 * gains["uniform"][1])


def test_float32_and_float64_agree() -> None:
    game = load_game("leduc")
    single, double = (
        exploitability(solved(game, changed(EXTERNAL, precision=p), 300).average_policy()).exploitability
        for p in ("float32", "float64")
    )
    assert single == pytest.approx(double, rel=0.25)


def test_current_policy_is_regret_matching() -> None:
    game = load_openspiel_game("kuhn_poker")
    solver = solved(game, EXTERNAL, 3)
    policy = solver.current_policy()
    assert isinstance(policy, TreePolicy)
    starts = np.cumsum(game.explicit.infoset_actions) - game.explicit.infoset_actions
    for infoset, at in enumerate(starts):
        positive = np.maximum(solver.arrays()["regret"][at : at + 2], 0)
        matched = positive / positive.sum() if positive.sum() > 0 else [0.5, 0.5]
        np.testing.assert_allclose(policy.table[infoset], matched)


def test_memory_is_known_before_it_is_taken() -> None:
    fhp = load_game("fhp")
    lossless_actions = 234_199_693  # infoset-actions of the game
    assert MCCFR.memory_bytes(fhp, changed(EXTERNAL, precision="float32")) == 2 * 4 * lossless_actions
    leduc = load_game("leduc")
    solver = MCCFR(leduc, EXTERNAL)
    taken = sum(array.nbytes for array in solver.arrays().values())
    double = changed(EXTERNAL, precision="float64")
    assert MCCFR.memory_bytes(leduc, double, lossless(leduc.rules).counts) == taken
    assert MCCFR.memory_bytes(leduc, double) == taken
    kuhn = load_openspiel_game("kuhn_poker")
    assert MCCFR.memory_bytes(kuhn, double) == 2 * 8 * 24


@pytest.mark.parametrize(
    "change, message",
    [
        ({"precision": "int16"}, "int16"),
        ({"abstraction": "buckets", "solver": "cfr+"}, "cfr\\+ is full-width"),
        ({"exploration_start": float("nan")}, "nan"),
    ],
)
def test_impossible_settings_are_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validate_config(changed(EXTERNAL, **change))


def test_abstractions_of_other_games_are_refused() -> None:
    abstraction = lossless(load_game("kuhn").rules)
    with pytest.raises(GameError, match=r"[Kk]uhn"):
        MCCFR(load_game("leduc"), EXTERNAL, abstraction=abstraction)
    with pytest.raises(GameError, match="kuhn_poker"):
        MCCFR(load_openspiel_game("kuhn_poker"), EXTERNAL, abstraction=abstraction)
