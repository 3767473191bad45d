"""Fictitious play on explicit trees is OpenSpiel's, iteration by iteration, and converges; its state can be restored."""

import numpy as np
import pytest
from open_spiel.python.algorithms import fictitious_play

from deepcfr.config import config_problems
from deepcfr.game.openspiel import OpenSpielGame, load_openspiel_game
from deepcfr.interop.openspiel import from_openspiel
from deepcfr.measure.exploitability import tree_exploitability
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.tables import TreePolicy, table_of
from deepcfr.run.build import build_solver
from deepcfr.solve.base import SavedState
from deepcfr.solve.sequence_form import FictitiousPlay
from tables import tabular


def solver_of(game: OpenSpielGame, iterations: int) -> FictitiousPlay:
    solver = build_solver(game, tabular("xfp", iterations))
    assert isinstance(solver, FictitiousPlay)
    return solver


@pytest.mark.parametrize(("name", "iterations"), [("kuhn_poker", 3), ("leduc_poker", 12)])
def test_averages_are_openspiels_at_every_iteration(name: str, iterations: int) -> None:
    """Until two actions are equally good: Kuhn has a tie in iteration 4, which rounding decides."""
    game = load_openspiel_game(name)
    theirs = fictitious_play.XFPSolver(game.spiel_game)
    for record in (ours := solver_of(game, iterations)).iterations():
        theirs.iteration()
        expected = from_openspiel(game, theirs.average_policy()).table
        mine = ours.average_policy().table
        assert np.abs(mine - expected).max() < 1e-9, record.iteration


def test_responses_win_what_a_best_response_wins() -> None:
    game = load_openspiel_game("kuhn_poker")
    solver = solver_of(game, 40)
    before: Policy = UniformPolicy(game)
    for _ in solver.iterations():
        best = tree_exploitability(before).best_response_values
        tables = solver.current_policy().table, table_of(before)
        actor = game.explicit.infoset_actor[:, None]
        for player in (0, 1):
            mixed = TreePolicy(game, np.where(actor == player, *tables), "response against the average")
            value = tree_exploitability(mixed).value * (1 if player == 0 else -1)
            assert value == pytest.approx(best[player], abs=1e-6)
        before = solver.average_policy()


def test_the_average_approaches_an_equilibrium_more_slowly_than_its_responses_are_exploitable() -> None:
    game = load_openspiel_game("kuhn_poker")
    solver = solver_of(game, 2_000)
    found = []
    for record in solver.iterations():
        if record.iteration in (20, 200, 2_000):
            found.append(tree_exploitability(solver.average_policy()).nash_conv)
    assert found[0] > found[1] > found[2]
    assert found[2] < 25  # mpoints; uniform play has 917
    assert tree_exploitability(solver.current_policy()).nash_conv > 10 * found[2]
    rows = solver.current_policy().table
    assert set(np.unique(rows)) == {0.0, 1.0}
    assert (rows.sum(1) == 1).all()


def test_a_run_goes_on_from_its_saved_state() -> None:
    game = load_openspiel_game("kuhn_poker")
    straight, half, again = solver_of(game, 9), solver_of(game, 9), solver_of(game, 9)
    for record, _ in zip(half.iterations(), range(4), strict=False):
        assert record.nodes_touched == 2 * game.explicit.num_nodes
    state = half.state(memories=True)
    arrays = {name: array.copy() for name, array in state.arrays}
    again.restore(SavedState(state.facts, {}, arrays.__getitem__), True)
    for solver in (straight, again):
        assert [r.iteration for r in solver.iterations()][-1] == 9
    assert np.array_equal(straight.average, again.average)
    assert straight.nodes_touched == again.nodes_touched


def test_poker_games_of_ours_are_refused_with_a_sentence() -> None:
    config = tabular("xfp", game="leduc")
    assert any("openspiel:leduc_poker" in problem for problem in config_problems(config))
    assert not list(config_problems(tabular("xfp", game="openspiel:kuhn_poker")))
