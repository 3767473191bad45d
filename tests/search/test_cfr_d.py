"""CFR-D: full-width CFR without its tables of boards, and from a sample of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import made_runs
from command_line import deepcfr, problem
from deepcfr.boards.boards import Boards
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.game.betting import CALL
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import build_game, load_rules, load_source
from deepcfr.game.rules import PRESETS
from deepcfr.measure.exploitability import exploitability
from deepcfr.run.build import build_solver
from deepcfr.search.cfr_d import CFRD, inclusion
from deepcfr.solve.vector_cfr import VectorCFR
from tables import finished, tabular

LEDUC = PokerGame(PRESETS["leduc"])
ALL = 1_000


@pytest.fixture(scope="module")
def small_flop() -> PokerGame:
    """28 flops up to a renaming of suits."""
    return PokerGame(load_rules(str(made_runs.places().game)))


def trained(game: PokerGame, iterations: int, boards: int = ALL, seed: int = 0) -> CFRD:
    return finished(CFRD(game, tabular("cfr-d", iterations, boards=boards, seed=seed, precision="float64")))


def strategies(game: PokerGame, *policies: Any) -> Iterator[tuple[np.ndarray, ...]]:
    """What policies play on each board of the second round."""
    boards = Boards(game, merge=True, keep=True)
    for board in boards.kept[1]:
        yield tuple(policy.on_board(boards.rounds[1], board) for policy in policies)


@pytest.mark.parametrize("name, iterations", [("leduc", 6), ("small flop", 2)])  # rounding breaks ties of the second
def test_with_all_boards_it_is_discounted_cfr_though_it_stores_no_strategy_on_them(
    name: str, iterations: int, small_flop: PokerGame
) -> None:
    game = LEDUC if name == "leduc" else small_flop
    ours, whole = trained(game, iterations), VectorCFR(game, tabular("dcfr", iterations, precision="float64"))
    finished(whole)
    found, expected = (exploitability(solver.average_policy()) for solver in (ours, whole))
    assert found.best_response_values == pytest.approx(expected.best_response_values, rel=1e-4)
    assert found.value == pytest.approx(expected.value, rel=1e-4)
    for searched, stored in strategies(game, ours.average_policy(), whole.average_policy()):
        np.testing.assert_allclose(searched, stored, atol=1e-3)
    if name == "leduc":
        current = [exploitability(solver.current_policy()).nash_conv for solver in (ours, whole)]
        assert current[0] == pytest.approx(current[1], rel=1e-2)


def estimate(game: PokerGame, boards: int, seed: int, *, checks: bool) -> np.ndarray:
    """Values of player 0 at the leaves of the first round, [X, U], for random ranges, if all check or play at random."""
    solver = CFRD(game, tabular("cfr-d", 1, boards=boards, seed=seed, precision="float64"))
    assert len(solver._played) == min(boards, 28)
    for board in solver._played:
        regrets = solver._regrets.load(board)
        regrets[:] = np.random.default_rng(board.cards).random(regrets.shape)
        regrets *= 1 if not checks else (solver._tree.edge_action == CALL)[:, None]
    return solver._values_at_leaves(0, 1, np.random.default_rng(5).random(solver.ranges.shape[1:]))


def test_values_from_a_sample_are_exact_if_nobody_bets_and_hardly_biased_else(small_flop: PokerGame) -> None:
    checked, exact = (estimate(small_flop, ALL, 0, checks=checks) for checks in (True, False))
    np.testing.assert_allclose(estimate(small_flop, 9, 1, checks=True), checked, atol=1e-6 * np.abs(checked).max())
    errors = np.array([estimate(small_flop, 14, seed, checks=False) - exact for seed in range(60)])
    spread = errors.std(0)
    assert 0.001 < np.median(spread) / np.abs(exact).mean() < 0.2
    assert np.median(np.abs(errors.mean(0)) / spread) < 0.25  # 0.09 without bias


def test_likely_things_are_in_every_sample_and_others_in_proportion_to_their_sizes() -> None:
    np.testing.assert_allclose(inclusion(np.array([6.0, 1, 1]), 2), [1, 0.5, 0.5])
    np.testing.assert_allclose(inclusion(np.array([12.0, 6, 1, 1, 2]), 3), [1, 1, 0.25, 0.25, 0.5])
    np.testing.assert_allclose(inclusion(np.array([1.0, 2, 3]), 1), [1 / 6, 1 / 3, 1 / 2])
    np.testing.assert_array_equal(inclusion(np.array([1.0, 2, 30]), 7), [1, 1, 1])


def test_a_sample_of_boards_comes_near_an_equilibrium_on_all_of_them(small_flop: PokerGame) -> None:
    uniform = exploitability(CFRD(small_flop, tabular("cfr-d")).current_policy()).nash_conv
    found = [exploitability(trained(small_flop, 60, boards).average_policy()) for boards in (10, 20, ALL)]
    assert found[2].nash_conv < 10 < 500 < uniform
    assert found[2].nash_conv < found[1].nash_conv < found[0].nash_conv < 0.25 * uniform
    for result in found:  # the value of the game lies between
        assert -found[2].best_response_values[1] <= result.best_response_values[0]


def test_a_run_is_played_matched_measured_and_goes_on(tmp_path: Any) -> None:
    run, more = tmp_path / "run", tmp_path / "more"
    arguments = ("--solver", "cfr-d", "--runtime.threads", 1, "--json")
    result = deepcfr("solve", "leduc", *arguments, "--iterations", 60, "--out", run).json
    assert deepcfr("exploitability", run, "--json").json["nash_conv"] == result["nash_conv"]
    assert deepcfr("match", run, "scripted:call", "--hands", 200, "--json").status == 0
    shares = deepcfr("strategy", run, "Kd / r c / Qc", "--json").json["probabilities"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares == deepcfr("strategy", run, "Kc / r c / Qd", "--json").json["probabilities"]  # suits are names
    assert deepcfr("resume", run, "--iterations", 80, "--json").json["iterations"] == 80
    straight = deepcfr("solve", "leduc", *arguments, "--iterations", 80, "--out", more).json
    assert deepcfr("exploitability", run, "--json").json["nash_conv"] == straight["nash_conv"] < result["nash_conv"]


def test_games_and_tables_that_it_does_not_take_are_refused() -> None:
    with pytest.raises(GameError, match="two betting rounds, and kuhn has 1"):
        CFRD(PokerGame(PRESETS["kuhn"]), tabular("cfr-d"))
    with pytest.raises(GameError, match="two betting rounds, and hulh has 4"):
        CFRD(PokerGame(PRESETS["hulh"]), tabular("cfr-d"))
    with pytest.raises(GameError, match="canonical suits"):
        CFRD(PokerGame(PRESETS["leduc"], "raw"), tabular("cfr-d"))
    with pytest.raises(ConfigError, match="kuhn_poker is none"):
        build_solver(build_game(load_source("openspiel:kuhn_poker")), tabular("cfr-d"))
    refused = deepcfr("solve", "leduc", "--solver", "cfr-d", "--precision", "int16", "--out", "unused")
    assert "CFR-D keeps its tables in float32" in problem(refused)
