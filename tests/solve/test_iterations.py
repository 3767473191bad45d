"""Iterations of Deep CFR differ in all their chance, and averages weigh them as configured."""

import sys
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

from deepcfr.config import CFRConfig, FitConfig, SamplingConfig
from deepcfr.core.rng import key
from deepcfr.core.types import HandSamples, Infosets
from deepcfr.game.presets import load_game
from deepcfr.run.build import build_solver
from deepcfr.solve import data
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.memories import HandMemories, InfosetMemories, TraversalResult
from tables import changed, finished, small_config, tabular

LEDUC = load_game("leduc")
KUHN = load_game("kuhn")
EVERY = Infosets(  # the infosets of Kuhn
    torch.arange(4).repeat_interleave(3), torch.arange(3, dtype=torch.uint8).repeat(4)[:, None]
)
STILL = {"steps": 1, "batch_size": 32, "learning_rate": 1e-12}
SMALL = {"kind": "mlp", "width": 8, "layers": 1}
CONFIG = small_config(
    game="leduc", iterations=4, cfr=CFRConfig(), sampling=SamplingConfig(traversals=30), network=SMALL,
    advantage=STILL | {"refit": "fine-tune"}, average=STILL,
)  # fmt: skip
PANEL = changed(
    CONFIG,
    cfr={"first_round": "table", "keep_networks": 0},
    sampling=SamplingConfig(kind="public-chance", boards=2, samples=60, panel=True),
)
FEW = {"steps": 2, "batch_size": 8}


# Chance


@pytest.mark.parametrize("sampler", ["external", "outcome"])
def test_every_iteration_and_player_has_deals_and_actions_of_its_own(
    sampler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "traverse" if sampler == "external" else "traverse_outcomes"
    traverse, seen = getattr(data, name), []

    def watched(game: Any, deals: Any, traverser: int, strategies: Any, *rest: Any) -> Any:
        stream = rest[0] if sampler == "external" else rest[1]
        seen.append((deals.visible_cards.numpy().tobytes(), stream))
        return traverse(game, deals, traverser, strategies, *rest)

    monkeypatch.setattr(data, name, watched)
    monkeypatch.setattr(data, "_CHUNK", 15)
    finished(DeepCFR(LEDUC, changed(CONFIG, sampling={"kind": sampler})))
    deals, actions = zip(*seen, strict=True)
    assert len(seen) == len(set(deals)) == 2 * len(set(actions)) == 2 * 2 * 4  # two chunks of one stream of actions


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        replace(PANEL, sampling=replace(PANEL.sampling, panel=False)),
        *(
            small_config(name, sampling={"traversals": 20}, advantage=FEW, average=FEW, values=FEW)  # type: ignore[arg-type]
            for name in ("escher", "double-neural", "nfsp", "ppo")
        ),
        *(tabular("mccfr", sampler=sampler, traversals=9, game="leduc") for sampler in ("external", "outcome")),
    ],
    ids=["external", "boards", "escher", "double-neural", "nfsp", "ppo", "mccfr", "outcome mccfr"],
)
def test_no_stream_is_derived_twice_or_under_two_seeds(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So each depends on seed, purpose, iteration, player and chunk."""
    derived: Counter[tuple[int, ...]] = Counter()

    def watched(seed: int, *purpose: Any) -> int:
        derived[seed, *purpose] += seed in (3, 4)  # the others are derived from these
        return key(seed, *purpose)

    for module in list(sys.modules.values()):
        if getattr(module, "key", None) is key and module.__name__.startswith("deepcfr"):
            monkeypatch.setattr(module, "key", watched)
    for seed in (3, 4):
        solver = build_solver(load_game(config.game), replace(config, seed=seed))
        for _ in islice(solver.iterations(), 2):
            solver.fit_average()
    assert derived.total() >= 2 * 2 * 2 * 2  # deals and actions by seed, iteration and player
    twice = {tuple(purpose[:-2]) for (_, *purpose), times in derived.items() if times > 1}
    # a board's slot numbers are told apart by kind; the target networks of NFSP begin as copies
    assert twice <= {("slot", 1), ("slot", 2), ("nfsp", "network")}


# Weights


@pytest.mark.parametrize(
    ("weighting", "of_averages", "advantages", "strategies"),
    [("linear", "quadratic", 1, 2), ("uniform", "same", 0, 0)],
)
def test_a_panel_keeps_the_means_of_what_iterations_said_with_their_weights(
    weighting: Any, of_averages: Any, advantages: int, strategies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, said = HandMemories.add, defaultdict(list)

    def watched(self: HandMemories, player: int, found: TraversalResult) -> None:
        for name, batches in (("advantages", found.advantages), ("strategies", found.strategies)):
            for batch in batches:
                said[name, player, batch.round].append(batch.samples)
        add(self, player, found)

    monkeypatch.setattr(HandMemories, "add", watched)
    cfr = replace(PANEL.cfr, weighting=weighting, average_weighting=of_averages)
    solver = finished(DeepCFR(LEDUC, changed(PANEL, cfr=cfr, advantage={"steps": 10, "learning_rate": 1e-2})))
    assert len(said) == 4
    for (name, player, round_), samples in said.items():
        power = advantages if name == "advantages" else strategies
        weight = np.arange(1, 5) ** float(power)
        memory = getattr(solver.memories, name)[player, round_]
        kept = memory[slice(0, None)]
        assert len(samples) == 4
        for field in ("cards", "values", "reach"):
            if field == "cards":  # of the same hands, of both players
                assert all(
                    torch.equal(sample.cards, kept.cards) for sample in (*samples, *said[name, 1 - player, round_])
                )
                continue
            mean = weighted([getattr(sample, field) for sample in samples], weight)
            torch.testing.assert_close(getattr(kept, field), mean, rtol=1e-3, atol=1e-4)
        assert differ(samples)


def weighted(columns: list[torch.Tensor], weight: Any) -> torch.Tensor:
    return sum(float(w) * column for w, column in zip(weight, columns, strict=True)) / float(weight.sum())  # type: ignore[return-value]


def differ(samples: list[HandSamples]) -> bool:
    return float((samples[0].values - samples[-1].values).abs().max()) > 0.01


@pytest.mark.parametrize(
    ("weighting", "of_averages", "expected"),
    [("linear", "same", [1, 2, 3]), ("linear", "quadratic", [1, 4, 9])],
)
def test_the_average_network_is_fitted_with_the_weights_of_averages(
    weighting: Any, of_averages: Any, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    examples, asked = InfosetMemories.strategy_examples, []

    def watched(self: InfosetMemories, weights: Any, t: int, config: FitConfig) -> Any:
        asked.append(weights(torch.tensor([1, 2, 3]), 3))
        return examples(self, weights, t, config)

    monkeypatch.setattr(InfosetMemories, "strategy_examples", watched)
    cfr = replace(CONFIG.cfr, weighting=weighting, average_weighting=of_averages)
    finished(DeepCFR(LEDUC, replace(CONFIG, cfr=cfr))).fit_average()
    (weights,) = asked
    torch.testing.assert_close(weights / weights[0], torch.tensor(expected, dtype=torch.float32))


# Policies of snapshots


@pytest.mark.parametrize("fallback", ["highest", "uniform"])
def test_the_policy_of_snapshots_plays_the_configured_fallback(fallback: Any) -> None:
    """Where no advantage is positive: the highest one, or all actions alike."""
    cfr = replace(CONFIG.cfr, fallback=fallback, keep_networks=1)
    solver = finished(DeepCFR(KUHN, replace(CONFIG, game="kuhn", cfr=cfr)))
    bias = torch.tensor([-9.0, -8.0, -7.0])
    for iterate in solver.snapshots.kept:
        for weights in iterate.networks:
            weights["head.weight"].zero_()
            weights["head.bias"].copy_(bias)
    legal = KUHN.encoding.legal[EVERY.node]
    expected = legal / legal.sum(1, keepdim=True)
    if fallback == "highest":
        highest = torch.where(legal, bias, -torch.inf).argmax(1)
        expected = torch.nn.functional.one_hot(highest, 3)
    found = solver.policy("sd-cfr").probabilities(EVERY)
    torch.testing.assert_close(found.float(), expected.float(), atol=1e-5, rtol=0)
