"""Regret beside its bound: terms worked out by hand, regret against its definition, and a table of what was measured."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from deepcfr.config import RunConfig
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_rules
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.tables import canonical_hands
from deepcfr.run.folder import RunFolder
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.mccfr import MCCFR
from experiments.theorem1 import runs as theorem
from experiments.theorem1.page import read_theorem, theorem_page
from experiments.theorem1.runs import (
    Constants,
    approximation_bound,
    arm_config,
    average_regrets,
    excess_losses,
    measure,
    sampling_bound,
    snapshot,
)

KUHN = PokerGame(load_rules("kuhn"))
FACTS = Constants.of(KUHN.rules)


def test_the_constants_are_those_of_the_games() -> None:
    assert Constants((6, 6), 2, 4.0) == FACTS
    # up to suits there are 3 private cards, and 15 with a board card: 3 pairs, and 6 of two ranks, of one suit or not
    leduc = Constants.of(load_rules("leduc"))
    assert (sum(leduc.infosets), leduc.actions, leduc.range) == (6 * 3 + 5 * 6 * 15, 3, 26.0)


def test_the_terms_are_worked_out_by_hand() -> None:
    # 1 + sqrt(2 / (0.02 * 100)) = 2, and 2 * 4 * 6 * sqrt(2 / 32) = 12
    assert sampling_bound(FACTS, 0, iterations=32, traversals=100, rho=0.02) == pytest.approx(12.0)
    # 4 * 6 * sqrt(2 * 4 * 0.5) = 48
    assert approximation_bound(FACTS, 0, 0.5) == pytest.approx(48.0)


def test_average_regrets_sum_to_the_nash_conv_of_the_average() -> None:
    solver = MCCFR(KUHN, arm_config("kuhn", "mccfr", 3))
    hands = canonical_hands(KUHN)
    policies, values = [], []
    for record in solver.iterations():
        policies.append(snapshot(solver.current_policy(), hands))
        values.append(exploitability(policies[-1]).value)
        if record.iteration == 5:
            break
    for weights in ([1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]):
        regrets = average_regrets(KUHN, policies, values, weights)
        from deepcfr.policy.mixture import MixturePolicy

        assert sum(regrets) == pytest.approx(exploitability(MixturePolicy(KUHN, policies, weights)).nash_conv)


def test_the_regret_of_one_policy_is_what_its_best_response_gains() -> None:
    uniform = UniformPolicy(KUHN)
    found = exploitability(uniform)
    best = found.best_response_values
    assert average_regrets(KUHN, [uniform], [found.value], [1.0]) == pytest.approx(
        [best[0] - found.value, best[1] + found.value]
    )
    assert sum(average_regrets(KUHN, [uniform], [found.value], [1.0])) == pytest.approx(916.6667, rel=1e-6)


def test_a_snapshot_stays_while_the_solver_goes_on() -> None:
    solver = MCCFR(KUHN, arm_config("kuhn", "mccfr", 3))
    steps = solver.iterations()
    next(steps)
    hands = canonical_hands(KUHN)
    kept = snapshot(solver.current_policy(), hands)
    before = [table.clone() for table in kept.tables]
    assert exploitability(kept).nash_conv == pytest.approx(exploitability(solver.current_policy()).nash_conv)
    for _ in range(5):
        next(steps)
    assert all(torch.equal(old, new) for old, new in zip(before, kept.tables, strict=True))
    now = snapshot(solver.current_policy(), hands)
    assert not any(torch.equal(old, new) for old, new in zip(now.tables, kept.tables, strict=True))


def test_the_excess_loss_is_the_loss_less_the_least_loss() -> None:
    config = arm_config("kuhn", "deep-cfr", 0)
    assert isinstance(config, RunConfig)
    solver = DeepCFR(KUHN, replace(config, iterations=2))
    list(solver.iterations())
    for player, excess in enumerate(excess_losses(solver)):
        memory = solver.memories.advantages[player]  # type: ignore[union-attr]
        samples = memory[slice(None)]
        legal = KUHN.encoding.legal[samples.infosets.node.long()].numpy()
        target = samples.target.double().numpy()
        network = solver.advantage_networks[player]
        predicted = (network(samples.infosets) * network.scale).detach().double().numpy()
        keys = [(int(n), *map(int, c)) for n, c in zip(samples.infosets.node, samples.infosets.cards, strict=True)]
        means = {key: np.mean([target[i] for i, k in enumerate(keys) if k == key], axis=0) for key in set(keys)}
        least = np.array([((target[i] - means[key]) ** 2 * legal[i]).sum() for i, key in enumerate(keys)]).mean()
        loss = ((target - predicted) ** 2 * legal).sum(1).mean()
        assert excess == pytest.approx(loss - least, rel=1e-3)
        assert excess > 0


def test_a_short_run_measures_regrets_that_fall_and_stay_below_the_bound(tmp_path: Path) -> None:
    config = arm_config("kuhn", "mccfr", 0)
    assert isinstance(config, RunConfig)
    run = RunFolder.create(tmp_path / "run", replace(config, iterations=100))
    lines = measure(run)
    assert [line["iteration"] for line in lines] == [1, 2, 4, 8, 16, 32, 64, 100]
    assert max(lines[-1]["regret"]) < max(lines[0]["regret"]) / 4
    for line in lines:
        for player, regret in enumerate(line["regret"]):
            assert regret / 1000 <= sampling_bound(FACTS, player, line["iteration"], theorem.TRAVERSALS)


def test_the_section_has_the_figures_of_the_runs_and_names_the_missing(tmp_path: Path) -> None:
    config = arm_config("kuhn", "mccfr", 0)
    for seed, last in enumerate((8.0, 12.0)):
        run = RunFolder.create(theorem.arm_path(tmp_path, "kuhn", "mccfr", seed), replace(config, seed=seed))
        lines = [{"iteration": 1, "regret": [500.0, 400.0]}, {"iteration": 1_024, "regret": [last, 20 - last]}]
        run.metrics_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = read_theorem(tmp_path, "kuhn")
    (arm,) = result.arms
    assert (arm.seeds, arm.points[-1].regret.mean) == (2, 12.0)  # of each seed the player with more regret
    bound = 1000 * (1 + math.sqrt(2 / (0.05 * 100))) * 4 * 6 * math.sqrt(2 / 1_024)
    assert arm.points[-1].bound == pytest.approx(bound)
    text = theorem_page([result])
    assert f"| 2 | 1,024 | 12.0 ± 0.0 | {bound:,.0f} | 0 | {bound / 12:,.0f} |" in text
    assert "the bound holds at every point" in text
    assert "Missing: `mccfr-s2`: not run." in text
    assert "Missing: `deep-cfr-s0`: not run." in text
