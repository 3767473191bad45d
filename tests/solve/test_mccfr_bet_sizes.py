"""Monte Carlo CFR with bet sizes: small games near equilibrium by enumeration, settings that matter, compact strategies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bet_size_games import ONE_ROUND, TWO_ROUNDS, Enumeration, decisions
from deepcfr.config import RunConfig
from deepcfr.core.errors import CheckpointError, ConfigError, GameError
from deepcfr.game.bet_size_betting import nodes_of
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES, BetSizeRules
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.tables import AbstractPolicy
from deepcfr.run.build import build_solver, make_game
from deepcfr.sample.bet_size_tables import FULL, expand
from deepcfr.solve.mccfr import MCCFR
from tables import tabular


def solved(rules: BetSizeRules, **settings: Any) -> MCCFR:
    solver = build_solver(ImplicitPoker(rules), tabular("mccfr", **settings))
    for _ in solver.iterations():
        pass
    solver.workers.shutdown()
    return solver


@pytest.fixture(scope="module")
def one_round() -> MCCFR:
    return solved(ONE_ROUND, iterations=600, traversals=100)


def test_a_game_of_one_round_is_solved(one_round: MCCFR) -> None:
    uniform = Enumeration(UniformPolicy(one_round.game)).nash_conv()
    reached = Enumeration(one_round.average_policy()).nash_conv()
    assert uniform > 1_000
    assert 0 <= reached < 0.05 * uniform
    assert 0 <= Enumeration(one_round.current_policy()).nash_conv() < uniform


def test_a_game_of_two_rounds_comes_close_though_it_forgets_some_betting() -> None:
    solver = solved(TWO_ROUNDS, threads=2, iterations=300, traversals=150)
    uniform = Enumeration(UniformPolicy(solver.game)).nash_conv()
    assert 0 <= Enumeration(solver.average_policy()).nash_conv() < 0.25 * uniform


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
    plain = solved(TWO_ROUNDS, **few).arrays()
    for settings in ({"reward_shape": "y1", "reward_on": "regret"}, {"exploration_start": 0.0}):
        same = solved(TWO_ROUNDS, **few, **settings).arrays()
        assert all(np.array_equal(plain[name], same[name]) for name in plain)
    for settings in (
        {"reward_shape": "y2"}, {"reward_shape": "y3", "reward_on": "regret"}, {"exploration_start": 0.05},
    ):  # fmt: skip
        other = solved(TWO_ROUNDS, **few, **settings).arrays()
        assert not np.array_equal(plain["regret"], other["regret"])


def test_a_floor_keeps_every_action_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepcfr.solve.mccfr._FLOOR_SLOPE", 0.0)
    solver = solved(ONE_ROUND, iterations=400, exploration_start=0.05, weighting="uniform", traversals=1)
    average = solver.average_policy()
    nodes = nodes_of(np.stack(decisions(solver.game)))
    visited = average.on_hands(nodes, np.arange(5, dtype=np.uint8)[:, None])
    assert visited[visited > 0].min() > 0.0499


def test_a_threshold_takes_rare_actions_out_of_the_average_and_changes_no_table() -> None:
    few = {"iterations": 20, "traversals": 50}
    plain, cut = solved(ONE_ROUND, **few), solved(ONE_ROUND, **few, threshold=0.3)
    assert all(np.array_equal(plain.arrays()[name], cut.arrays()[name]) for name in plain.arrays())
    asked = nodes_of(np.stack(decisions(plain.game))), np.full((1, 1), 3, np.uint8)
    before, after = (solver.average_policy().on_hands(*asked)[:, 0] for solver in (plain, cut))
    np.testing.assert_allclose(after.sum(1), 1)
    played = (before >= 0.3) | (before == before.max(1, keepdims=True))
    assert np.array_equal(after > 0, played & (before > 0))
    assert (before[~played] > 0).any()
    kept = np.where(played, before, 0)
    np.testing.assert_allclose(after, kept / kept.sum(1, keepdims=True))
    whole = solved(ONE_ROUND, **few, threshold=1.0).average_policy().on_hands(*asked)[:, 0]
    assert np.array_equal(whole > 0, before == before.max(1, keepdims=True))


def test_what_cannot_be_is_one_sentence() -> None:
    hunl = BET_SIZE_GAMES["hunl-ladder"]
    sentences = {
        "hunl-ladder is solved with mccfr, and 'cfr+' was asked for.": {"solver": "cfr+"},
        "hunl-ladder is solved with external sampling only, but the sampler is 'outcome'.": {
            "sampler": "outcome", "abstraction": "texture",
        },
        "The abstraction 'runs/k' of hunl-ladder is in a folder, but was not loaded from it.": {
            "abstraction": "runs/k",
        },
        "Round 4 of hunl-ladder has 123,156,254 distinct hands, and a lossless abstraction numbers at most 20,000,000: use "
        "--abstraction texture or a folder.": {},
    }  # fmt: skip
    for sentence, settings in sentences.items():
        with pytest.raises(ConfigError) as error:
            build_solver(ImplicitPoker(hunl), tabular(**{"solver": "mccfr", **settings}))
        assert error.value.problems == (sentence,)
    with pytest.raises(
        GameError, match=r"has more than 200,000 nodes: networks, search and exact evaluation need fewer"
    ):
        make_game(hunl, RunConfig(game="hunl-ladder"))
