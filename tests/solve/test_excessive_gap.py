"""The excessive gap technique: smoothed responses against the plain objective, the gap and its bound, and whole runs."""

import numpy as np
import pytest

from deepcfr.config import config_problems
from deepcfr.core.types import Doubles
from deepcfr.game.explicit import EMPTY, realization, terminal_values
from deepcfr.game.openspiel import OpenSpielGame, load_openspiel_game
from deepcfr.measure.exploitability import tree_exploitability
from deepcfr.run.build import build_solver
from deepcfr.solve.base import SavedState
from deepcfr.solve.sequence_form import ExcessiveGap, entropy_weights, respond
from tables import tabular

KUHN = load_openspiel_game("kuhn_poker")


def solver_of(game: OpenSpielGame, iterations: int) -> ExcessiveGap:
    solver = build_solver(game, tabular("egt", iterations))
    assert isinstance(solver, ExcessiveGap)
    return solver


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
    solver = solver_of(KUHN, 60)
    far = np.array([largest_distance(KUHN, player) for player in (0, 1)])
    last = solver.smoothing[:2].copy()
    for _ in solver.iterations():
        mu = solver.smoothing[:2].copy()
        assert solver._responses(solver.plan, mu)[1].sum() <= 1e-9
        assert sorted(mu < last) == [False, True]  # one at a time
        assert tree_exploitability(solver.average_policy()).nash_conv <= 1000 * (mu * far).sum() + 1e-6
        last = mu
    assert (1000 * last * far).sum() < 100


@pytest.mark.parametrize(("name", "limit"), [("kuhn_poker", 3.0), ("leduc_poker", 40.0)])
def test_it_converges_far_faster_than_fictitious_play(name: str, limit: float) -> None:
    solver = solver_of(load_openspiel_game(name), 200)
    for _ in solver.iterations():
        pass
    found = tree_exploitability(solver.average_policy())
    assert found.nash_conv < limit  # mpoints; fictitious play has 500 on Leduc after 100
    if name == "kuhn_poker":
        assert found.value == pytest.approx(-1000 / 18, abs=limit)


def test_strategies_far_from_uniform_do_not_underflow() -> None:
    """With mu of 1e-5 and payoffs of 13 a probability is exp(-1e6)."""
    solver = solver_of(load_openspiel_game("leduc_poker"), 320)
    for _ in solver.iterations():
        pass
    assert np.isfinite(solver.plan).all()
    assert solver.smoothing[:2].max() < 1e-4


def test_a_run_goes_on_from_its_saved_state() -> None:
    straight, half, again = (solver_of(KUHN, 9) for _ in range(3))
    for record, _ in zip(half.iterations(), range(4), strict=False):
        assert record.nodes_touched >= 4 * KUHN.explicit.num_nodes
    state = half.state(memories=True)
    arrays = {name: array.copy() for name, array in state.arrays}
    again.restore(SavedState(state.facts, {}, arrays.__getitem__), True)
    for solver in (straight, again):
        assert [r.iteration for r in solver.iterations()][-1] == 9
    assert np.array_equal(straight.plan, again.plan)
    assert np.array_equal(straight.smoothing, again.smoothing)
    assert straight.nodes_touched == again.nodes_touched


def test_poker_games_of_ours_are_refused_with_a_sentence() -> None:
    config = tabular("egt", game="leduc")
    assert any("is egt, which is for games of OpenSpiel" in problem for problem in config_problems(config))
