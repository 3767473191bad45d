"""CFR on explicit trees is OpenSpiel's, iteration by iteration, and converges; Deep CFR trains on the same games."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel
import pytest
import torch
from open_spiel.python.algorithms import cfr as spiel_cfr
from open_spiel.python.algorithms import discounted_cfr

from deepcfr.config import (
    AdvantageFitConfig,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    RunConfig,
    RuntimeConfig,
    SamplingConfig,
    TabularConfig,
)
from deepcfr.core.errors import ConfigError
from deepcfr.game.openspiel import OpenSpielGame, load_openspiel_game
from deepcfr.interop.openspiel import from_openspiel
from deepcfr.measure.exploitability import tree_exploitability
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.tables import TreePolicy
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.sequence_form import TreeCFR
from openspiel_policies import to_tabular_policy
from predictive_cfr import PredictiveCFRPlus
from tables import tabular

LIARS_DICE = "liars_dice(dice_sides=5)"
GOOFSPIEL = "goofspiel(num_cards=5,imp_info=True,points_order=descending)"
ALGORITHMS = ["cfr", "cfr+", "pcfr+", "linear-cfr", "dcfr"]
SOLVERS: dict[str, Any] = {
    "cfr": pyspiel.CFRSolver,
    "cfr+": pyspiel.CFRPlusSolver,
    "pcfr+": PredictiveCFRPlus,
    "linear-cfr": discounted_cfr.LCFRSolver,
    "dcfr": discounted_cfr.DCFRSolver,
}


def config(algorithm: str, iterations: int) -> TabularConfig:
    return tabular(algorithm, iterations)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "iterations", "algorithms"),
    [
        ("kuhn_poker", 50, ALGORITHMS),
        ("leduc_poker", 40, ["cfr", "cfr+"]),
        ("leduc_poker", 10, ["pcfr+", "linear-cfr", "dcfr"]),
        (LIARS_DICE, 6, ["cfr", "cfr+"]),
    ],
)
def test_averages_are_openspiels_at_every_iteration(name: str, iterations: int, algorithms: list[str]) -> None:
    game = load_openspiel_game(name)
    for algorithm in algorithms:
        theirs = SOLVERS[algorithm](game.spiel_game)
        for record in (ours := TreeCFR(game, config(algorithm, iterations))).iterations():
            theirs.evaluate_and_update_policy()
            expected = from_openspiel(game, theirs.average_policy()).table
            difference = np.abs(ours.average_policy().table - expected).max()
            assert difference < 1e-9, f"{algorithm}, iteration {record.iteration}"


def arrays_of(game: OpenSpielGame, solver: Any, column: str) -> npt.NDArray[np.float64]:
    """OpenSpiel's cumulative regrets or policy in our layout."""
    tree = game.explicit
    table = np.zeros(tree.legal.shape)
    for infoset, name in enumerate(tree.infoset_names):
        values = getattr(solver._info_state_nodes[name], column)
        for position in range(tree.infoset_actions[infoset]):
            table[infoset, position] = values[int(tree.infoset_action_ids[infoset, position])]
    return table


def test_goofspiel_steps_like_openspiel_from_openspiels_own_state() -> None:
    """Goofspiel is full of ties, which rounding breaks: whole runs differ, so single steps of player 0 are compared."""
    game = load_openspiel_game("goofspiel(num_cards=4,imp_info=True,points_order=descending)")
    theirs = spiel_cfr.CFRSolver(game.spiel_game)
    mine, ours = game.sequences.actor == 0, TreeCFR(game, config("cfr", 100))
    histories = np.bincount(game.explicit.infoset[game.explicit.infoset >= 0])[:, None]  # theirs adds for each of them
    for _ in range(8):
        ours.arrays()["regret"][:] = arrays_of(game, theirs, "cumulative_regret")
        ours.arrays()["average"][:] = arrays_of(game, theirs, "cumulative_policy") / histories
        next(ours.iterations())
        theirs.evaluate_and_update_policy()
        for name, column, scale in [("regret", "cumulative_regret", 1), ("average", "cumulative_policy", histories)]:
            expected = arrays_of(game, theirs, column) / scale
            np.testing.assert_allclose(ours.arrays()[name][mine], expected[mine], rtol=0, atol=1e-9)
            assert np.abs(expected[mine]).max() > 0.1


@pytest.mark.parametrize(
    ("name", "iterations", "largest"),
    [("kuhn_poker", 500, 10.0), ("leduc_poker", 400, 80.0), (LIARS_DICE, 300, 40.0), (GOOFSPIEL, 300, 40.0)],
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_variant_converges(name: str, iterations: int, largest: float, algorithm: str) -> None:
    game = load_openspiel_game(name)
    solver = TreeCFR(game, config(algorithm, iterations))
    nash_conv, touched = [], 0
    for record in solver.iterations():
        touched += record.nodes_touched
        if record.iteration in (iterations // 10, iterations):
            nash_conv.append(tree_exploitability(solver.average_policy()).nash_conv)
    assert nash_conv[1] < nash_conv[0] / 2
    assert nash_conv[1] < largest
    assert touched == solver.nodes_touched == 2 * iterations * game.explicit.num_nodes


@pytest.mark.parametrize(("name", "value"), [("kuhn_poker", -1000 / 18), ("leduc_poker", -85.6064)])
def test_values_are_those_of_the_literature(name: str, value: float) -> None:
    solver = TreeCFR(load_openspiel_game(name), config("cfr+", 2_000))
    for _ in solver.iterations():
        pass
    result = tree_exploitability(solver.average_policy())
    assert result.nash_conv < 3
    assert abs(result.value - value) < result.nash_conv


def test_the_exploitability_of_a_solution_is_openspiels() -> None:
    for name in (LIARS_DICE, GOOFSPIEL):
        solver = TreeCFR(load_openspiel_game(name), config("cfr+", 30))
        for _ in solver.iterations():
            pass
        policy = solver.average_policy() if name == LIARS_DICE else solver.current_policy()
        theirs = pyspiel.TabularPolicy(to_tabular_policy(policy).to_dict())
        nash_conv = pyspiel.nash_conv(solver.game.spiel_game, theirs)
        assert tree_exploitability(policy).nash_conv == pytest.approx(1000 * nash_conv, abs=1e-6)


@pytest.mark.parametrize("algorithm", ["dcfr", "pcfr+"])
def test_a_solver_goes_on_from_its_arrays(algorithm: str) -> None:
    game = load_openspiel_game("leduc_poker")
    whole, first, second = (TreeCFR(game, config(algorithm, 12)) for _ in range(3))
    for _ in whole.iterations():
        pass
    for record in first.iterations():
        if record.iteration == 5:
            break
    for name, array in first.arrays().items():
        second.arrays()[name][:] = array
    second.iteration, second.nodes_touched = first.iteration, first.nodes_touched
    assert [record.iteration for record in second.iterations()] == list(range(6, 13))
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(second.arrays()[name], array)
    assert second.nodes_touched == whole.nodes_touched


def test_infosets_out_of_reach_are_uniform_in_the_average() -> None:
    game = load_openspiel_game("kuhn_poker")
    solver = TreeCFR(game, config("cfr", 1))
    assert isinstance(solver.average_policy(), TreePolicy)
    np.testing.assert_array_equal(solver.average_policy().table, game.explicit.uniform())
    np.testing.assert_array_equal(solver.current_policy().table, game.explicit.uniform())


def test_only_full_width_algorithms() -> None:
    with pytest.raises(ConfigError, match="'mccfr' is not a full-width algorithm"):
        TreeCFR(load_openspiel_game("kuhn_poker"), config("mccfr", 1))


@pytest.mark.parametrize(("name", "share"), [("kuhn_poker", 0.2), (LIARS_DICE, 0.5), (GOOFSPIEL, 0.9)])
def test_deep_cfr_learns_games_of_openspiel(name: str, share: float) -> None:
    """A few iterations leave less than `share` of the uniform policy's NashConv, and OpenSpiel computes the same."""
    torch.set_num_threads(1)
    game = load_openspiel_game(name)
    fit = FitConfig(steps=60, batch_size=256, learning_rate=3e-3, schedule="cosine", draw="merged")
    solver = DeepCFR(
        game,
        RunConfig(
            game="openspiel",
            iterations=8,
            sampling=SamplingConfig(traversals=300),
            memory=MemoryConfig(advantage_capacity=100_000, strategy_capacity=100_000),
            network=NetworkConfig(kind="mlp", width=32, layers=2),
            advantage=AdvantageFitConfig(**vars(fit), refit="fine-tune"),
            average=replace(fit, steps=400),
            runtime=RuntimeConfig(threads=1),
        ),
    )
    for _ in solver.iterations():
        pass
    solver.fit_average()
    policy = solver.average_policy()
    result = tree_exploitability(policy)
    assert result.nash_conv < share * tree_exploitability(UniformPolicy(game)).nash_conv
    theirs = pyspiel.nash_conv(game.spiel_game, pyspiel.TabularPolicy(to_tabular_policy(policy).to_dict()))
    assert result.nash_conv == pytest.approx(1000 * theirs, abs=1e-6)
