"""Monte Carlo CFR solves small games, whatever the sampler, the threads and the game; floors and shapes of rewards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bet_size_games import ONE_ROUND, TWO_ROUNDS, Enumeration, decisions
from deepcfr.buckets.buckets import lossless
from deepcfr.config import TabularConfig
from deepcfr.core.errors import CheckpointError
from deepcfr.game.bet_size_betting import nodes_of
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BetSizeRules
from deepcfr.game.openspiel import OpenSpielGame, load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.tables import AbstractPolicy
from deepcfr.run.build import build_solver
from deepcfr.sample.bet_size_tables import FULL, expand
from deepcfr.sample.mccfr import SHAPES, Decay, _match, floor_after, shaped
from deepcfr.solve.mccfr import MCCFR, _shaped_tree
from tables import changed, finished, tabular

EXTERNAL = tabular("mccfr", 4, traversals=500, precision="float64")
OUTCOME = changed(EXTERNAL, sampler="outcome")


def solved(
    game: PokerGame | OpenSpielGame, config: TabularConfig, iterations: int, seed: int = 0, threads: int = 1
) -> MCCFR:
    return finished(MCCFR(game, changed(config, iterations=iterations, seed=seed, threads=threads)))


@pytest.mark.parametrize("config", [OUTCOME, changed(EXTERNAL, weighting="uniform")])
def test_kuhn_is_solved(config: TabularConfig) -> None:
    result = exploitability(solved(load_game("kuhn"), config, 300).average_policy())
    assert result.exploitability < 12
    assert abs(result.value + 1000 / 18) < 12  # mA/g to the first player


def test_lost_updates_of_threads_do_not_hurt() -> None:
    """Leduc's 288 infosets are where threads meet most; twice the exploitability of one thread would be a defect."""
    game, config = load_game("leduc"), changed(EXTERNAL, traversals=2_000, precision="float32")
    one, two = (exploitability(solved(game, config, 100, threads=n).average_policy()).exploitability for n in (1, 2))
    assert two < 1.5 * one
    assert one < 180


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


# Floors and shapes of rewards (Lin 2024)


LIN = Decay(start=0.01, slope=-2.5e-7, end=40_000)


@settings(max_examples=30)
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


@pytest.mark.parametrize(
    ("config", "end", "same"), [(EXTERNAL, 1_500, True), (EXTERNAL, 1_501, False), (OUTCOME, 1_500, True)]
)
def test_from_the_end_on_a_run_goes_on_as_one_without_a_floor(
    config: TabularConfig, end: int, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 3 iterations of 500 games a solver without a floor takes over: if game 1,500 is the end, bit for bit."""
    game = load_game("leduc")
    falls(monkeypatch, 0.0, end)
    floored = changed(config, exploration_start=0.2)
    whole, half = solved(game, floored, 5), solved(game, floored, 3)
    plain = MCCFR(game, changed(config, iterations=5))
    for name, array in half.arrays().items():
        np.copyto(plain.arrays()[name], array)
    plain.iteration = 3
    finished(plain)
    equal = [np.array_equal(whole.arrays()[name], plain.arrays()[name]) for name in ("regret", "average")]
    assert equal == ([True, True] if same else [False, False])


def test_shapes_by_hand() -> None:
    loss = -0.35 * 10**1.32  # -7.31
    assert [shaped(-10.0, shape) for shape in range(4)] == pytest.approx([-10, -15, loss - 5, -10])
    assert shaped(-100.0, 3) == pytest.approx(-0.35 * 100**1.32)  # beyond 26.6 units y4 is the steeper curve
    assert shaped(-100.0, 3) < -100
    assert shaped(-26.0, 3) == -26.0
    assert [shaped(10.0, shape) for shape in range(4)] == [10.0] * 4
    assert [shaped(0.0, shape) for shape in range(4)] == [0.0] * 4


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_each_player_feels_its_own_losses(shape: str) -> None:
    """Payoffs of a tree are to player 0, so a loss of player 1 is a gain there."""
    tree = MCCFR(load_game("leduc"), EXTERNAL)._trees[0]
    flat = tree.payoff.ravel()
    assert _shaped_tree(tree, 1, "y1").payoff.tobytes() == tree.payoff.tobytes()
    first, second = (_shaped_tree(tree, player, shape).payoff.ravel() for player in (0, 1))
    np.testing.assert_array_equal(first, [shaped(x, SHAPES.index(shape)) for x in flat])
    np.testing.assert_array_equal(second, [-shaped(-x, SHAPES.index(shape)) for x in flat])
    np.testing.assert_array_equal(first[flat > 0], flat[flat > 0])
    np.testing.assert_array_equal(second[flat < 0], flat[flat < 0])


# Games with bet sizes, by enumeration


def bet_size_solved(rules: BetSizeRules, **settings: Any) -> MCCFR:
    solver = finished(build_solver(ImplicitPoker(rules), tabular("mccfr", **settings)))
    solver.workers.shutdown()
    return solver


@pytest.fixture(scope="module")
def one_round() -> MCCFR:
    return bet_size_solved(ONE_ROUND, iterations=300, traversals=100)


def test_a_game_of_one_round_is_solved(one_round: MCCFR) -> None:
    uniform = Enumeration(UniformPolicy(one_round.game)).nash_conv()
    reached = Enumeration(one_round.average_policy()).nash_conv()
    assert uniform > 1_000
    assert 0 <= reached < 0.1 * uniform


def test_a_game_of_two_rounds_comes_close_though_it_forgets_some_betting() -> None:
    solver = bet_size_solved(TWO_ROUNDS, threads=2, iterations=200, traversals=150)
    uniform = Enumeration(UniformPolicy(solver.game)).nash_conv()
    assert 0 <= Enumeration(solver.average_policy()).nash_conv() < 0.35 * uniform


def test_the_compact_strategy_is_the_same_to_a_rounding(one_round: MCCFR) -> None:
    plain, data = one_round.average_policy(), dict(one_round.state(memories=False).arrays)["average-compact"]
    small = AbstractPolicy(plain.game, plain.abstraction, expand(data, plain.layout.size))
    nodes, cards = nodes_of(np.stack(decisions(plain.game))), np.arange(5, dtype=np.uint8)[:, None]
    before, after = plain.on_hands(nodes, cards), small.on_hands(nodes, cards)
    np.testing.assert_allclose(after.sum(2), 1)
    np.testing.assert_allclose(after, before, atol=1.5 / FULL)
    assert Enumeration(small).nash_conv() < Enumeration(plain).nash_conv() + 50
    for damaged in (data[:-3], np.append(data[:9], data[:9])):
        with pytest.raises(CheckpointError, match="The compact strategy is damaged"):
            expand(damaged, plain.layout.size)


def test_y1_and_no_floor_are_plain_and_the_others_are_not() -> None:
    few = {"iterations": 5, "traversals": 50}
    plain = bet_size_solved(TWO_ROUNDS, **few).arrays()
    for nothing in ({"reward_shape": "y1"}, {"exploration_start": 0.0}):
        same = bet_size_solved(TWO_ROUNDS, **few, **nothing).arrays()
        assert all(np.array_equal(plain[name], same[name]) for name in plain)
    for something in ({"reward_shape": "y2"}, {"reward_shape": "y3"}, {"exploration_start": 0.05}):
        other = bet_size_solved(TWO_ROUNDS, **few, **something).arrays()
        assert not np.array_equal(plain["regret"], other["regret"])


def test_a_threshold_takes_rare_actions_out_of_the_average_and_changes_no_table() -> None:
    few = {"iterations": 20, "traversals": 50}
    plain, cut = bet_size_solved(ONE_ROUND, **few), bet_size_solved(ONE_ROUND, **few, threshold=0.3)
    assert all(np.array_equal(plain.arrays()[name], cut.arrays()[name]) for name in plain.arrays())
    asked = nodes_of(np.stack(decisions(plain.game))), np.full((1, 1), 3, np.uint8)
    before, after = (solver.average_policy().on_hands(*asked)[:, 0] for solver in (plain, cut))
    np.testing.assert_allclose(after.sum(1), 1)
    played = (before >= 0.3) | (before == before.max(1, keepdims=True))
    assert np.array_equal(after > 0, played & (before > 0))
    assert (before[~played] > 0).any()
    kept = np.where(played, before, 0)
    np.testing.assert_allclose(after, kept / kept.sum(1, keepdims=True))
    whole = bet_size_solved(ONE_ROUND, **few, threshold=1.0).average_policy().on_hands(*asked)[:, 0]
    assert np.array_equal(whole > 0, before == before.max(1, keepdims=True))
