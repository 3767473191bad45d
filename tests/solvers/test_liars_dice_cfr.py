"""Full-width CFR on liar's dice by positions does what it does on the list of histories."""

import numpy as np
import pyspiel
import pytest

from deepcfr.config import SolveConfig, TabularConfig
from deepcfr.errors import ConfigError
from deepcfr.evaluation.exploitability import exploitability
from deepcfr.games.liars_dice import LiarsDice
from deepcfr.games.openspiel import load_openspiel_game
from deepcfr.solvers.build import build_solver
from deepcfr.solvers.liars_dice import LiarsDiceCFR
from deepcfr.solvers.tree_cfr import TreeCFR

NAME = "liars_dice(dice_sides=4)"


def solver(algorithm: str, iterations: int) -> LiarsDiceCFR:
    game = LiarsDice(pyspiel.load_game(NAME), NAME)
    return LiarsDiceCFR(game, TabularConfig(algorithm=algorithm, iterations=iterations))


def run(made: LiarsDiceCFR | TreeCFR) -> None:
    for _ in made.iterations():
        pass


@pytest.mark.parametrize("algorithm", ["cfr", "cfr+", "dcfr", "pcfr+"])
def test_strategies_are_those_of_the_listed_game(algorithm: str) -> None:
    # the tables are in single precision, which decides ties in another way after some more iterations
    ours = solver(algorithm, 12)
    theirs = TreeCFR(load_openspiel_game(NAME), ours.config)
    run(ours)
    run(theirs)
    for mine, other in (
        (ours.average_policy(), theirs.average_policy()),
        (ours.current_policy(), theirs.current_policy()),
    ):
        found, expected = exploitability(mine), exploitability(other)
        assert found.nash_conv == pytest.approx(expected.nash_conv, rel=1e-3)
        assert found.value == pytest.approx(expected.value, abs=0.1)


def test_a_restored_solver_goes_on_as_if_nothing_had_happened() -> None:
    whole, half = solver("pcfr+", 6), solver("pcfr+", 3)
    run(whole)
    run(half)
    rest = solver("pcfr+", 6)
    for name, array in rest.arrays().items():
        np.copyto(array, half.arrays()[name])
    rest.iteration = half.iteration
    run(rest)
    np.testing.assert_array_equal(rest.regret, whole.regret)
    np.testing.assert_array_equal(rest.average, whole.average)


def test_the_value_of_a_small_game_is_found() -> None:
    solved = solver("dcfr", 200)
    run(solved)
    result = exploitability(solved.average_policy())
    assert result.nash_conv < 2
    assert result.value == pytest.approx(62.5, abs=1)  # 1/16: 62.500 after 5,000 iterations on the list of histories


def test_sampled_algorithms_are_refused() -> None:
    game = LiarsDice(pyspiel.load_game(NAME), NAME)
    with pytest.raises(ConfigError, match="'mccfr' is not a full-width algorithm"):
        build_solver(game, SolveConfig(game=f"openspiel:{NAME}", solve=TabularConfig(algorithm="mccfr")))
