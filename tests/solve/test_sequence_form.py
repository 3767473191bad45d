"""Solvers on explicit trees: CFR and fictitious play are OpenSpiel's, iteration by iteration; the excessive gap technique
keeps its bound.
"""

from typing import Any

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import discounted_cfr, fictitious_play

from deepcfr.core.types import Doubles
from deepcfr.game.explicit import EMPTY, realization, terminal_values
from deepcfr.game.openspiel import OpenSpielGame, load_openspiel_game
from deepcfr.interop.openspiel import from_openspiel
from deepcfr.measure.exploitability import tree_exploitability
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.tables import TreePolicy, table_of
from deepcfr.solve.sequence_form import ExcessiveGap, FictitiousPlay, TreeCFR, entropy_weights, respond
from predictive_cfr import PredictiveCFRPlus
from tables import finished, tabular

ALGORITHMS = ["cfr", "cfr+", "pcfr+", "linear-cfr", "dcfr"]
SOLVERS: dict[str, Any] = {
    "cfr": pyspiel.CFRSolver,
    "cfr+": pyspiel.CFRPlusSolver,
    "pcfr+": PredictiveCFRPlus,
    "linear-cfr": discounted_cfr.LCFRSolver,
    "dcfr": discounted_cfr.DCFRSolver,
}


@pytest.mark.parametrize(
    ("name", "iterations", "algorithms"),
    [
        ("kuhn_poker", 20, ALGORITHMS),
        ("leduc_poker", 8, ["cfr", "cfr+"]),
        ("leduc_poker", 3, ["pcfr+", "linear-cfr", "dcfr"]),
        ("liars_dice(dice_sides=4)", 5, ["cfr", "cfr+"]),
    ],
)
def test_averages_are_openspiels_at_every_iteration(name: str, iterations: int, algorithms: list[str]) -> None:
    game = load_openspiel_game(name)
    for algorithm in algorithms:
        theirs = SOLVERS[algorithm](game.spiel_game)
        for record in (ours := TreeCFR(game, tabular(algorithm, iterations))).iterations():
            theirs.evaluate_and_update_policy()
            expected = from_openspiel(game, theirs.average_policy()).table
            difference = np.abs(ours.average_policy().table - expected).max()
            assert difference < 1e-9, f"{algorithm}, iteration {record.iteration}"
            assert record.nodes_touched == 2 * game.explicit.num_nodes


@pytest.mark.parametrize(("name", "value"), [("kuhn_poker", -1000 / 18), ("leduc_poker", -85.6064)])
def test_values_are_those_of_the_literature(name: str, value: float) -> None:
    solver = finished(TreeCFR(load_openspiel_game(name), tabular("cfr+", 400)))
    result = tree_exploitability(solver.average_policy())
    assert result.nash_conv < 20
    assert abs(result.value - value) < result.nash_conv


def test_infosets_out_of_reach_are_uniform_in_the_average() -> None:
    game = load_openspiel_game("kuhn_poker")
    solver = TreeCFR(game, tabular("cfr", 1))
    assert isinstance(solver.average_policy(), TreePolicy)
    np.testing.assert_array_equal(solver.average_policy().table, game.explicit.uniform())
    np.testing.assert_array_equal(solver.current_policy().table, game.explicit.uniform())


# Fictitious play


@pytest.mark.parametrize(("name", "iterations"), [("kuhn_poker", 3), ("leduc_poker", 3)])
def test_averages_of_fictitious_play_are_openspiels_at_every_iteration(name: str, iterations: int) -> None:
    """Until two actions are equally good: Kuhn has a tie in iteration 4, which rounding decides."""
    game = load_openspiel_game(name)
    theirs = fictitious_play.XFPSolver(game.spiel_game)
    for record in (ours := FictitiousPlay(game, tabular("xfp", iterations))).iterations():
        theirs.iteration()
        expected = from_openspiel(game, theirs.average_policy()).table
        mine = ours.average_policy().table
        assert np.abs(mine - expected).max() < 1e-9, record.iteration


def test_responses_win_what_a_best_response_wins() -> None:
    game = load_openspiel_game("kuhn_poker")
    solver = FictitiousPlay(game, tabular("xfp", 300))
    before: Policy = UniformPolicy(game)
    for record in solver.iterations():
        assert record.nodes_touched == 2 * game.explicit.num_nodes
        if record.iteration > 30:
            continue
        best = tree_exploitability(before).best_response_values
        tables = solver.current_policy().table, table_of(before)
        actor = game.explicit.infoset_actor[:, None]
        for player in (0, 1):
            mixed = TreePolicy(game, np.where(actor == player, *tables), "response against the average")
            value = tree_exploitability(mixed).value * (1 if player == 0 else -1)
            assert value == pytest.approx(best[player], abs=1e-6)
        before = solver.average_policy()
    assert tree_exploitability(solver.average_policy()).nash_conv < 80  # mpoints; uniform play has 917
    rows = solver.current_policy().table
    assert set(np.unique(rows)) == {0.0, 1.0}
    assert (rows.sum(1) == 1).all()


# The excessive gap technique


KUHN = load_openspiel_game("kuhn_poker")


def weights(game: OpenSpielGame) -> Doubles:
    form = game.sequences
    found: Doubles = entropy_weights(form.parent, form.num_actions, game.explicit.num_actions)
    return found


def distance(game: OpenSpielGame, player: int, table: Doubles, base: Doubles) -> float:
    """The dilated divergence of a player's strategy from another one, by its definition."""
    form, weight = game.sequences, weights(game)
    plan, total = realization(table, form.parent, form.num_actions), 0.0
    for infoset in (form.actor == player).nonzero()[0]:
        p, q = (rows[infoset, : form.num_actions[infoset]] for rows in (table, base))
        inside = p > 0
        total += weight[infoset] * plan[form.parent[infoset]] * (p[inside] * np.log(p[inside] / q[inside])).sum()
    return float(total)


def largest_distance(game: OpenSpielGame, player: int) -> float:
    """The distance from uniform play of the pure strategy that is farthest from it, infoset by infoset from the last."""
    form, width, weight = game.sequences, game.explicit.num_actions, weights(game)
    after = np.zeros(EMPTY + len(form.parent) * width)
    for infoset in reversed((form.actor == player).nonzero()[0]):
        first, n = EMPTY + infoset * width, form.num_actions[infoset]
        after[form.parent[infoset]] += weight[infoset] * np.log(n) + after[first : first + n].max()
    return float(after[player])


def test_the_weight_of_an_infoset_is_1_more_than_the_largest_sum_after_an_action() -> None:
    form, weight = KUHN.sequences, weights(KUHN)
    first = form.actor == 0
    assert sorted(weight[first]) == [1, 1, 1, 2, 2, 2]  # after a check and a bet the first player acts again
    assert (weight[~first] == 1).all()


@pytest.mark.parametrize("player", [0, 1])
def test_a_smoothed_response_maximises_value_less_distance(player: int) -> None:
    form, rng = KUHN.sequences, np.random.default_rng(3)
    legal, mu = KUHN.explicit.legal, np.array([0.4, 0.7])
    base, theirs = (rng.random(legal.shape) * legal for _ in range(2))
    base, theirs = (rows / rows.sum(1, keepdims=True) for rows in (base, theirs))
    values = terminal_values(*form.sequences, form.payoff, realization(theirs, form.parent, form.num_actions))
    gradient = values.copy()
    with np.errstate(divide="ignore"):
        logs = respond(values, np.log(base), weights(KUHN), mu, form.actor, form.parent, form.num_actions)
    best = np.exp(logs)

    def objective(table: Doubles) -> float:
        plan = realization(table, form.parent, form.num_actions)
        mine = np.concatenate([[0, 1], np.repeat(form.actor, legal.shape[1])]) == player
        return float((plan * gradient)[mine].sum()) - mu[player] * distance(KUHN, player, table, base)

    np.testing.assert_allclose(best.sum(1), 1)
    assert objective(best) == pytest.approx(values[player], abs=1e-9)
    for size in (0.01, 0.1, 1.0):
        for _ in range(20):
            other = (1 - size) * best + size * rng.dirichlet(np.ones(legal.shape[1]), len(legal)) * legal
            assert objective(other / other.sum(1, keepdims=True)) < values[player]


def test_every_iteration_keeps_the_gap_which_bounds_nash_conv() -> None:
    solver = ExcessiveGap(KUHN, tabular("egt", 40))
    far = np.array([largest_distance(KUHN, player) for player in (0, 1)])
    last = solver.smoothing[:2].copy()
    for _ in solver.iterations():
        mu = solver.smoothing[:2].copy()
        assert solver._responses(solver.plan, mu)[1].sum() <= 1e-9
        assert sorted(mu < last) == [False, True]  # one at a time
        assert tree_exploitability(solver.average_policy()).nash_conv <= 1000 * (mu * far).sum() + 1e-6
        last = mu
    assert (1000 * last * far).sum() < 150


def test_strategies_far_from_uniform_do_not_underflow() -> None:
    """With mu of 1e-5 and payoffs of 13 a probability is exp(-1e6)."""
    solver = finished(ExcessiveGap(load_openspiel_game("leduc_poker"), tabular("egt", 320)))
    assert np.isfinite(solver.plan).all()
    assert solver.smoothing[:2].max() < 1e-4
    assert tree_exploitability(solver.average_policy()).nash_conv < 30  # mpoints; fictitious play has 500 after 100
