"""The shipped models are what their cards and metrics say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.query import query
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import read_metrics

MODELS = Path(__file__).parents[1] / "models"


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
def test_a_model_is_as_exploitable_as_its_card_says(name: str) -> None:
    policy, solver = RunFolder.open(MODELS / name).load_policy("average", pytest.fail)
    last = read_metrics(MODELS / name / "metrics.jsonl")[-1]
    assert solver.iteration == last["iteration"]
    assert exploitability(policy).nash_conv == pytest.approx(last["evaluation"]["nash_conv"], abs=0.05)


@pytest.mark.parametrize("name", ["fhp", "fhp-cfr-d"])
def test_a_model_of_flop_holdem_plays_sensibly(name: str) -> None:
    policy, _ = RunFolder.open(MODELS / name).load_policy("average", pytest.fail)
    aces = query(policy, "As Ah").probabilities
    trash = query(policy, "7s 2h").probabilities
    assert aces["raise"] > 0.5
    assert aces["fold"] < 0.01 < trash["fold"]
    nuts = query(policy, "As Ah / r / Ad Ac 2c / r").probabilities  # four aces, facing a bet
    assert nuts["fold"] < 0.05


@pytest.mark.long  # makes the table of hand strengths on all boards, of 1.6 GB
def test_the_hulh_model_plays_sensibly() -> None:
    policy, _ = RunFolder.open(MODELS / "hulh").load_policy("average", pytest.fail)
    aces = query(policy, "As Ah").probabilities
    trash = query(policy, "7s 2h").probabilities
    assert aces["raise"] > 0.5
    assert aces["fold"] < 0.01 < trash["fold"]
    nuts = query(policy, "As Ah / c c / Ad Ac 2c / k k / 7d / k k / 9h / k b").probabilities  # four aces, facing a bet
    assert nuts["fold"] < 0.05


def test_the_hulh_card_states_what_was_measured() -> None:
    card = (MODELS / "hulh" / "card.md").read_text()
    found = json.loads((MODELS.parent / "experiments" / "results" / "hulh_model.json").read_text())
    assert found["matches"]
    for name, match in found["matches"].items():
        assert f"| gains against `{name}` | {match['mean']:+.1f} ± {match['interval']:.1f} mbb/g, " in card
        if name.startswith("scripted:"):
            assert match["mean"] - match["interval"] > 0
    bound = found["local_best_response"]
    assert f"| {bound['mean']:.1f} ± {bound['interval']:.1f} mbb/g a seat, {bound['boards']} runouts |" in card
    # two advantage networks and an average network of 0.70 million numbers each
    assert sum(file.stat().st_size for file in (MODELS / "hulh").rglob("*") if file.is_file()) < 9e6
