"""The tabular benchmarks measure what they say; their speeds are not asserted."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import numpy as np
import pytest

from deepcfr.buckets.buckets import lossless
from deepcfr.game.presets import load_rules
from experiments.bench import tabular as bench_tabular
from experiments.bench.tabular import Workload, measure_full_width, random_abstraction

TINY = Workload(
    repetitions=2,
    traversals=50,
    peer_traversals=20,
    leduc_iterations=3,
    peer_leduc_iterations=1,
    tree_iterations=2,
    peer_tree_iterations=1,
    flop_game="leduc",
    limit_game="leduc",
    full_width_iterations=1,
    buckets=5,
    hold_em_traversals=20,
    hold_em_iterations=2,
    threads=1,
)
ASKED = {
    "mccfr_leduc_ratio",
    "cfr_plus_leduc_ratio",
    "fhp_linear_cfr_seconds_per_iteration",
    "fhp_mccfr_nodes_per_second",
    "fhp_linear_cfr_memory_gb",
    "fhp_linear_cfr_int16_memory_gb",
    "hulh_mccfr_nodes_per_second",
    "liars_dice_cfr_ratio",
    "goofspiel_cfr_ratio",
}


def test_every_figure_is_there_and_said() -> None:
    said: list[str] = []
    facts = bench_tabular.bench_tabular(3, said.append, TINY)
    assert set(facts) >= ASKED | {"environment", "seed", "unit", "hulh_mccfr_abstraction"}
    assert facts["seed"] == 3
    assert "5 buckets" in facts["hulh_mccfr_abstraction"]
    numbers = {name: value for name, value in facts.items() if isinstance(value, float)}
    assert set(numbers) >= ASKED
    assert all(value > 0 and isfinite(value) for value in numbers.values())
    ratios = [name.removesuffix("_ratio") for name in facts if name.endswith("_ratio")]
    for name in ratios:
        ours, theirs = (facts[f"{name}{side}_iterations_per_second"] for side in ("", "_openspiel"))
        assert facts[f"{name}_ratio"] == ours / theirs
        assert any(line.startswith(f"{name}: ") for line in said)
    assert len(said) == len(ratios) + 4  # two precisions, two games of Monte Carlo CFR


def test_sides_take_turns_and_the_first_turn_does_not_count() -> None:
    turns: list[str] = []

    def side(name: str, rates: list[float]) -> bench_tabular.Rate:
        return lambda: (turns.append(name), rates.pop(0))[1]

    load = replace(TINY, repetitions=3)
    facts = bench_tabular._against(
        "x", side("ours", [1e9, 6.0, 5.0, 900.0]), side("theirs", [1e-9, 2.0, 3.0, 2.0]), load, lambda _: None
    )
    assert turns == ["ours", "theirs"] * 4
    assert facts["x_ratio"] == 3.0  # 6 over 2, the medians


def test_a_rate_counts_what_the_steps_are_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter((10.0, 12.0))
    monkeypatch.setattr(bench_tabular.time, "perf_counter", lambda: next(ticks))
    done: list[int] = []
    assert bench_tabular._rate(lambda: done.append(1), 3, worth=100)() == 150.0
    assert len(done) == 3


def test_full_width_memory_and_time_are_of_this_process() -> None:
    seconds, memory = measure_full_width("leduc", "float32", 1, 1)
    assert seconds > 0
    assert 0.05 < memory < 100  # numpy and numba alone take more than the least


def test_a_random_abstraction_has_the_shape_of_a_real_one() -> None:
    rules = load_rules("leduc")
    real, random = lossless(rules), random_abstraction(rules, 5, seed=1)
    assert random.counts == (real.counts[0], 5)
    assert [table.shape for table in random.tables] == [table.shape for table in real.tables]
    assert set(np.unique(random.tables[1])) == {*range(5), 255}
    assert ((random.tables[1] == 255) == (real.tables[1] == np.iinfo(real.tables[1].dtype).max)).all()
    assert (random.tables[1] == random_abstraction(rules, 5, seed=1).tables[1]).all()
    assert (random.tables[1] != random_abstraction(rules, 5, seed=2).tables[1]).any()
