"""Regret beside its bound: terms worked out by hand, regret against its definition, and a table of what was measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from deepcfr.config import RunConfig
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_rules
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import UniformPolicy
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.mccfr import MCCFR
from experiments.theorem1.runs import (
    Constants,
    approximation_bound,
    arm_config,
    average_regrets,
    excess_losses,
    sampling_bound,
    snapshot,
)
from experiments.theorem1.tables import canonical_hands
from tables import finished

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


def test_the_excess_loss_is_the_loss_less_the_least_loss() -> None:
    config = arm_config("kuhn", "deep-cfr", 0)
    assert isinstance(config, RunConfig)
    solver = finished(DeepCFR(KUHN, replace(config, iterations=2)))
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
