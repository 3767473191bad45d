"""Initial strategies by win rates: what they are, that tables start from them, and that off is off to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from bet_size_games import ONE_ROUND, TWO_ROUNDS, decisions, rows_at
from deepcfr.buckets.buckets import lossless
from deepcfr.buckets.texture import TextureBuckets
from deepcfr.config import RunConfig
from deepcfr.core.errors import GameError
from deepcfr.core.types import Infosets
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES
from deepcfr.game.betting import FOLD
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.presets import load_game
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.mixture import ensemble
from deepcfr.policy.styles import styled
from deepcfr.policy.tables import AbstractPolicy
from deepcfr.run.folder import RunFolder
from deepcfr.run.players import load_players
from deepcfr.sample.initial import RANGES, range_buckets, shares, win_rates
from deepcfr.solve.mccfr import MCCFR
from tables import changed, finished, tabular

PLAIN = tabular("mccfr", 3, traversals=50)
STARTED = changed(PLAIN, initial="win-rates")


def bet_size_solver(config: RunConfig) -> MCCFR:
    game = ImplicitPoker(TWO_ROUNDS)
    return MCCFR(game, config)


def all_infosets(solver: MCCFR) -> Infosets:
    """Some hands at every node, which a policy of tables tells apart."""
    game = solver.game
    nodes = torch.arange(len(game.encoding.legal))
    count = sum(game.encoding.card_groups)
    cards = torch.stack([torch.roll(torch.arange(6, dtype=torch.uint8), k)[:count] for k in range(6)])
    return Infosets(nodes.repeat_interleave(6), cards.repeat(len(nodes), 1))


# What they are


def test_weak_hands_fold_and_strong_ones_raise() -> None:
    for raises in (1, 6):
        rows = shares(True, raises)
        np.testing.assert_allclose(rows.sum(1), 1)
        assert rows[0, FOLD] == rows[0].max() >= 0.7
        assert rows[0, -1] == rows[0].min()  # the largest raise is the rarest of what a weak hand does
        assert (np.diff(rows[:, FOLD]) < 0).all()
        assert (np.diff(rows[:, 2:].sum(1)) > 0).all()
        checks = shares(False, raises)
        assert (checks[:, FOLD] == 0).all()
        np.testing.assert_allclose(checks[:, 1], rows[:, 0] + rows[:, 1])
    assert shares(True, 0).shape == (RANGES, 2)


def test_win_rates_by_bucket_know_good_hands() -> None:
    texture = TextureBuckets(BET_SIZE_GAMES["hunl-ladder"].deck)
    rates = win_rates(texture, 20_000)
    aces, trash = (
        int(texture.buckets(0, np.array([hand], np.uint8), np.zeros((1, 0), np.uint8))[0])
        for hand in ((51, 50), (20, 1))
    )
    assert rates[0][aces] > 0.75 > 0.5 > rates[0][trash]
    assert [len(rate) for rate in rates] == list(texture.counts)
    assert all(((rate > 0) & (rate < 1)).all() for rate in rates)
    assert (rates[3] == 0.5).any()  # many classes of figure 4 never come


def test_win_rates_are_those_of_all_deals() -> None:
    """One card each of five ranks: the card of rank k beats k of the four others."""
    rates = win_rates(lossless(ONE_ROUND.deck), 40_000)
    np.testing.assert_allclose(rates[0], np.arange(5) / 4, atol=0.01)
    ranges = range_buckets(lossless(ONE_ROUND.deck), 40_000)
    assert ranges.counts == (RANGES,)
    assert ranges.buckets(0, np.arange(5, dtype=np.uint8)[:, None], np.zeros((5, 0), np.uint8)).tolist() == [
        0, 1, 2, 3, 4,
    ]  # fmt: skip


# Where training starts


def test_tables_start_from_it() -> None:
    solver = MCCFR(load_game("leduc"), STARTED)
    for table in solver.arrays().values():
        solver.tables.start(table)
        assert (table >= 0).all()
    initial, infosets = solver.initial_policy(), all_infosets(solver)
    for policy in (solver.current_policy(), solver.average_policy()):
        found, wanted = policy.probabilities(infosets), initial.probabilities(infosets)
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)
        assert not torch.allclose(wanted, UniformPolicy(policy.game).probabilities(infosets), atol=0.05)


def test_a_game_without_hands_has_no_win_rates() -> None:
    with pytest.raises(GameError, match="no hands with win rates: set solve"):
        MCCFR(load_openspiel_game("kuhn_poker"), STARTED)


def test_a_bet_size_solver_starts_from_it_too() -> None:
    solver = bet_size_solver(STARTED)
    for table in solver.arrays().values():
        solver.tables.start(table)
    initial = solver.initial_policy()
    cards = np.array([[0, 3, 5], [4, 1, 2], [2, 5, 1]], np.uint8)
    positions = np.repeat(np.stack(decisions(solver.game)), 3, axis=0)
    deals = np.tile(cards, (len(positions) // 3, 1))
    wanted = rows_at(initial, positions, deals)
    np.testing.assert_allclose(wanted.sum(1), 1)
    assert np.ptp(wanted[:3], axis=0).max() > 0.2  # other hands do other things
    for policy in (solver.current_policy(), solver.average_policy()):
        np.testing.assert_allclose(rows_at(policy, positions, deals), wanted, atol=1e-6)
    small = AbstractPolicy(solver.game, solver.tables.buckets, solver._regret, "")
    first = rows_at(small, positions[:1], deals[:1])[0]
    assert first[FOLD] > 0.4  # the lowest card owes a blind


# The style, and runs


def test_the_style_initial_is_what_training_started_from(tmp_path: Path) -> None:
    solver = MCCFR(load_game("leduc"), STARTED)
    infosets = all_infosets(solver)
    wanted = solver.initial_policy().probabilities(infosets)
    average: Policy = solver.average_policy()
    for policy in (styled(average, "initial"), styled(styled(average, "tight"), "initial")):
        torch.testing.assert_close(policy.probabilities(infosets), wanted)
    plain = styled(MCCFR(load_game("leduc"), PLAIN).average_policy(), "initial")
    assert isinstance(plain, UniformPolicy)
    run = RunFolder.create(tmp_path / "run", changed(STARTED, game="leduc"))
    other = MCCFR(load_game("leduc"), PLAIN)
    for one in (solver, other):
        finished(one)
    assert not np.array_equal(solver.arrays()["average"], other.arrays()["average"])
    run.save(solver, 1.0)
    (loaded,) = load_players([f"initial:{tmp_path / 'run'}"], "average", pytest.fail)
    torch.testing.assert_close(loaded.probabilities(infosets), wanted)  # type: ignore[call-arg,arg-type]


def test_the_style_initial_of_bet_size_policies() -> None:
    average = bet_size_solver(STARTED).average_policy()
    both = ensemble([average, bet_size_solver(STARTED).average_policy()], "sum")
    for policy in (average, styled(average, "tight"), both):
        assert styled(policy, "initial").kind == "initial"
    assert styled(bet_size_solver(PLAIN).average_policy(), "initial").kind == "uniform"
