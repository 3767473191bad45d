"""Lin's floor under strategies and shapes of rewards in Monte Carlo CFR: what they do, and that off is off to the bit."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepcfr.config import TabularConfig
from deepcfr.game.openspiel import OpenSpielGame, load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.tables import TreePolicy
from deepcfr.sample.mccfr import (
    SHAPES,
    Learning,
    _match,
    external_traversals,
    floor_after,
    outcome_traversals,
    shaped,
)
from deepcfr.solve.mccfr import MCCFR, _shaped_tree
from tables import changed, tabular

EXTERNAL = tabular("mccfr", traversals=300, precision="float64")
OUTCOME = changed(EXTERNAL, sampler="outcome")
LIN = Learning(start=0.01, slope=-2.5e-7, end=40_000)


def solved(game: PokerGame | OpenSpielGame, config: TabularConfig, iterations: int, threads: int = 1) -> MCCFR:
    solver = MCCFR(game, changed(config, iterations=iterations, threads=threads))
    deque(solver.iterations(), maxlen=0)
    return solver


# Floors


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9), st.floats(0, 1))
def test_a_floor_leaves_a_distribution_with_that_least_probability(regrets: list[float], floor: float) -> None:
    match = _match.py_func  # `tests/sampling` ties compiled kernels to their source
    share, count = np.full(len(regrets) + 2, 7.0), len(regrets)
    match(np.array(regrets), 0, count, share, 1, floor)
    assert share[1:-1].sum() == pytest.approx(1, abs=1e-12)
    assert share[1:-1].min() >= min(floor, 1 / count) - 1e-15
    assert share[0] == share[-1] == 7.0
    plain = np.empty(count)
    match(np.array(regrets), 0, count, plain, 0, 0.0)
    np.testing.assert_allclose(share[1:-1] - min(floor, 1 / count), max(0, 1 - count * floor) * plain, atol=1e-12)


def test_lins_floor_falls_from_a_hundredth_to_exactly_zero() -> None:
    assert floor_after(LIN, 0) == 0.01
    assert floor_after(LIN, 20_000) == pytest.approx(0.005)
    assert floor_after(LIN._replace(games=19_000), 1_000) == floor_after(LIN, 20_000)
    assert 0 < floor_after(LIN, 39_999) < 3e-7
    assert floor_after(LIN, 40_000) == floor_after(LIN, 10**12) == 0.0
    flat = LIN._replace(slope=0.0)
    assert (floor_after(flat, 39_999), floor_after(flat, 40_000)) == (0.01, 0.0)
    assert floor_after(LIN._replace(slope=-1e-6), 20_000) == 0.0  # the line may be at zero before the end


def falls(monkeypatch: pytest.MonkeyPatch, slope: float, end: int) -> None:
    """Let floors fall by another slope, and end after another number of games, than Lin's."""
    monkeypatch.setattr("deepcfr.solve.mccfr._FLOOR_SLOPE", slope)
    monkeypatch.setattr("deepcfr.solve.mccfr._FLOOR_END", end)


@pytest.mark.parametrize("config", [EXTERNAL, OUTCOME], ids=["external", "outcome"])
@pytest.mark.parametrize("end, same", [(900, True), (901, False)])
def test_from_the_end_on_a_run_goes_on_as_one_without_a_floor(
    config: TabularConfig, end: int, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 3 iterations of 300 games a solver without a floor takes over: if game 900 is the end, bit for bit."""
    game = load_game("leduc")
    falls(monkeypatch, 0.0, end)
    floored = changed(config, exploration_start=0.2)
    whole, half = solved(game, floored, 5), solved(game, floored, 3)
    plain = MCCFR(game, changed(config, iterations=5))
    for name, array in half.arrays().items():
        np.copyto(plain.arrays()[name], array)
    plain.iteration = 3
    deque(plain.iterations(), maxlen=0)
    equal = [np.array_equal(whole.arrays()[name], plain.arrays()[name]) for name in ("regret", "average")]
    assert equal == ([True, True] if same else [False, False])


def test_a_floor_that_stays_is_under_the_average_and_one_that_decays_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    game, config = load_openspiel_game("kuhn_poker"), changed(EXTERNAL, exploration_start=0.05)
    falls(monkeypatch, 0.0, 10**9)
    stayed = solved(game, config, 1_000).average_policy()
    falls(monkeypatch, -5e-7, 100_000)
    decayed = solved(game, config, 1_000).average_policy()
    assert isinstance(stayed, TreePolicy)
    assert isinstance(decayed, TreePolicy)
    assert 0.05 - 1e-12 <= stayed.table.min() < 0.051
    assert decayed.table.min() < 0.01
    assert exploitability(stayed).exploitability > 2 * exploitability(decayed).exploitability


# Shapes


def test_shapes_by_hand() -> None:
    loss = -0.35 * 10**1.32  # -7.31
    assert [shaped(-10.0, shape) for shape in range(4)] == pytest.approx([-10, -15, loss - 5, -10])
    assert shaped(-100.0, 3) == pytest.approx(-0.35 * 100**1.32)  # beyond 26.6 units y4 is the steeper curve
    assert shaped(-100.0, 3) < -100
    assert shaped(-26.0, 3) == -26.0
    assert [shaped(10.0, shape) for shape in range(4)] == [10.0] * 4
    assert [shaped(0.0, shape) for shape in range(4)] == [0.0] * 4


@pytest.mark.parametrize("config", [EXTERNAL, OUTCOME], ids=["external", "outcome"])
def test_no_shape_and_no_floor_are_the_plain_solver_bit_for_bit(config: TabularConfig) -> None:
    """Both kinds of kernel calls, without and with settings that change nothing."""
    game = load_game("leduc")
    plain = solved(game, config, 3)
    solver = MCCFR(game, changed(config, iterations=3))
    assert solver._trees
    tree = solver._trees[0]
    for player in (0, 1):
        assert _shaped_tree(tree, player, "y1").payoff.tobytes() == tree.payoff.tobytes()
    for on in ("payoff", "regret"):
        same = solved(game, changed(config, reward_shape="y1", reward_on=on), 3)  # type: ignore[arg-type]
        for name, array in plain.arrays().items():
            assert array.any()
            assert same.arrays()[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_each_player_feels_its_own_losses(shape: str) -> None:
    """Payoffs of a tree are to player 0, so a loss of player 1 is a gain there."""
    tree = MCCFR(load_game("leduc"), EXTERNAL)._trees[0]
    flat = tree.payoff.ravel()
    first, second = (_shaped_tree(tree, player, shape).payoff.ravel() for player in (0, 1))
    np.testing.assert_array_equal(first, [shaped(x, SHAPES.index(shape)) for x in flat])
    np.testing.assert_array_equal(second, [-shaped(-x, SHAPES.index(shape)) for x in flat])
    np.testing.assert_array_equal(first[flat > 0], flat[flat > 0])
    np.testing.assert_array_equal(second[flat < 0], flat[flat < 0])


@pytest.mark.parametrize("shape", range(1, 4))
@pytest.mark.parametrize("sampler", ["external", "outcome"])
def test_shaped_regrets_are_the_shapes_of_sampled_regrets(sampler: str, shape: int) -> None:
    """One traversal adds to an infoset once, so from empty tables the sum is what was added."""
    solver = MCCFR(load_game("leduc"), EXTERNAL)
    seen = 0.0
    for traversal in range(30):
        situations = solver.tables.situations(1, 5, traversal)
        found = []
        for learning in (Learning(), Learning(shape=shape)):
            regrets, averages = np.zeros_like(solver.arrays()["regret"]), np.zeros_like(solver.arrays()["regret"])
            where = (solver._trees[0], regrets, averages, situations, traversal % 2, 2.0, np.uint64(9), traversal)
            if sampler == "external":
                external_traversals(*where, learning)
            else:
                outcome_traversals(*where, 0.6, learning)
            found.append(regrets)
        np.testing.assert_allclose(found[1], [2 * shaped(r / 2, shape) for r in found[0]], rtol=1e-12)
        seen = min(seen, float(found[0].min()))
    assert seen < -2


def test_losses_that_hurt_half_as_much_again_have_the_equilibrium_of_that_game() -> None:
    """Kuhn with y2, by hand.

    A queen that calls a bet wins 2 or loses 2, felt as 3, instead of 1, felt as 1.5: it is indifferent when 3 bets in 10
    are bluffs, so the second player bluffs with 3/7 of its jacks. A jack that bluffs is indifferent when a queen calls 1/4
    of the time. In the real game both are 1/3, so what is optimal there loses chips here.
    """
    game = load_openspiel_game("kuhn_poker")
    plain, felt = (solved(game, changed(EXTERNAL, reward_shape=y), 2_000).average_policy() for y in ("y1", "y2"))
    assert isinstance(plain, TreePolicy)
    assert isinstance(felt, TreePolicy)
    bluff, call = (game.explicit.infoset_names.index(name) for name in ("0p", "1pb"))
    assert felt.table[bluff, 1] == pytest.approx(3 / 7, abs=0.03)
    assert felt.table[call, 1] == pytest.approx(1 / 4, abs=0.04)
    assert plain.table[bluff, 1] == pytest.approx(1 / 3, abs=0.03)
    assert exploitability(felt).nash_conv > 5 * exploitability(plain).nash_conv


# Together, and what is refused


def test_all_at_once_in_two_threads_still_learns_and_evaluates_the_real_game() -> None:
    game = load_game("leduc")
    config = changed(EXTERNAL, exploration_start=0.01, reward_shape="y2", traversals=1_000)
    start = exploitability(solved(game, changed(config, traversals=1), 1).average_policy())
    trained = exploitability(solved(game, config, 150, threads=2).average_policy())
    assert trained.exploitability < start.exploitability / 4
