"""Thresholds: only rare actions go, in every form in which a policy is asked, and training does not change."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from board_play import all_infosets, random_policy
from deepcfr.config import (
    AdvantageFitConfig,
    CFRConfig,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    RunConfig,
    SamplingConfig,
)
from deepcfr.core.types import Infosets
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import Policy
from deepcfr.policy.styles import ThresholdPolicy, styled, without_rare
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.mccfr import MCCFR
from experiments.theorem1.tables import TablePolicy, canonical_hands
from tables import changed, finished, tabular

LEDUC = PokerGame(PRESETS["leduc"])
CUT = 0.25


def expected(before: torch.Tensor, threshold: float) -> list[list[float]]:
    """Rows without rare actions, one by one."""
    rows = []
    for row in before.tolist():
        kept = [p if p >= threshold or p == max(row) else 0.0 for p in row]
        rows.append([p / sum(kept) for p in kept])
    return rows


def test_rows_by_hand() -> None:
    rows = torch.tensor([[0.04, 0.06, 0.9], [0.0, 0.5, 0.5], [0.3, 0.3, 0.4], [0.0, 1.0, 0.0]], dtype=torch.float64)
    cut = without_rare(rows, 0.05)
    torch.testing.assert_close(cut[0], torch.tensor([0.0, 0.06 / 0.96, 0.9 / 0.96], dtype=torch.float64))
    torch.testing.assert_close(cut[1:], rows[1:])
    torch.testing.assert_close(without_rare(rows, 0.45)[2], torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64))
    torch.testing.assert_close(without_rare(rows, 1.0)[1], rows[1])  # as probable as each other


def test_every_form_of_a_policy_is_cut() -> None:
    plain = random_policy(LEDUC, 1)
    policy, infosets = ThresholdPolicy(plain, CUT), all_infosets(LEDUC)
    before = plain.probabilities(infosets)
    assert ((before > 0) & (before < CUT)).any()
    np.testing.assert_allclose(policy.probabilities(infosets), expected(before, CUT))
    tables = []
    for round_, hands in enumerate(canonical_hands(LEDUC)):
        nodes = np.flatnonzero(LEDUC.tree.round[: LEDUC.tree.num_decisions] == round_)
        place = [np.repeat(nodes, len(hands)), np.tile(np.arange(len(hands)), len(nodes))]
        there = Infosets(torch.from_numpy(place[0]), torch.from_numpy(hands[place[1]]))
        rows = np.array(expected(plain.probabilities(there), CUT))
        np.testing.assert_allclose(policy.on_hands(nodes, hands).reshape(rows.shape), rows)
        np.testing.assert_allclose(policy.row_strategy(0, round_, hands)(*place), rows)
        tables.append(rows.reshape(len(nodes), len(hands), -1))
    on_boards = exploitability(policy).nash_conv
    assert on_boards == pytest.approx(exploitability(TablePolicy(LEDUC, tables)).nash_conv)
    assert on_boards != pytest.approx(exploitability(plain).nash_conv)


def test_tables_of_listed_games_are_cut_and_their_training_does_not_change() -> None:
    game = LEDUC
    few = tabular("mccfr", 5, traversals=20)
    solvers = [MCCFR(game, few), MCCFR(game, changed(few, threshold=CUT))]
    for solver in solvers:
        finished(solver)
    assert all(np.array_equal(solvers[0].arrays()[name], table) for name, table in solvers[1].arrays().items())
    _are_cut([solver.average_policy() for solver in solvers], game)
    started = MCCFR(game, changed(few, threshold=CUT, initial="win-rates"))
    for policy, kind in ((started.average_policy(), "initial"), (solvers[1].average_policy(), "uniform")):
        assert styled(policy, "initial").kind == kind


def test_average_networks_are_cut_and_their_training_does_not_change() -> None:
    fit = FitConfig(steps=20, batch_size=64, learning_rate=5e-3)
    config = RunConfig(
        game="leduc",
        iterations=2,
        cfr=CFRConfig(first_round="table"),
        sampling=SamplingConfig(traversals=40),
        memory=MemoryConfig(capacity=10_000),
        network=NetworkConfig(kind="mlp", width=16, layers=1),
        advantage=AdvantageFitConfig(**vars(fit)),
        average=fit,
    )
    solvers = [DeepCFR(LEDUC, config), DeepCFR(LEDUC, changed(config, threshold=CUT))]
    for solver in solvers:
        finished(solver)
        solver.fit_average()
    one, other = (solver.average_network.state_dict() for solver in solvers if solver.average_network)
    assert all(torch.equal(one[name], weights) for name, weights in other.items())
    later = LEDUC.tree.round[: LEDUC.tree.num_decisions] == 1
    _are_cut([solver.average_policy() for solver in solvers], LEDUC, later)


def _are_cut(policies: list[Policy], game: PokerGame, where: np.ndarray | None = None) -> None:
    infosets = all_infosets(game)
    if where is not None:
        infosets = infosets[torch.from_numpy(where)[infosets.node]]
    before, after = (policy.probabilities(infosets) for policy in policies)
    assert ((before > 0) & (before < CUT)).any()
    np.testing.assert_allclose(after, expected(before, CUT), atol=1e-6)
    assert "threshold 0.25" in policies[1].kind
