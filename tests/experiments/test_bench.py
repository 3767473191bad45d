"""The benchmarks measure what they say; their speeds are not asserted."""

from __future__ import annotations

import pytest

from deepcfr.config import NFSPConfig
from experiments.bench import tabular as bench_tabular
from experiments.bench.nfsp import matched
from experiments.bench.tabular import Workload

TINY = Workload(
    repetitions=3,
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


def test_matched_settings_learn_from_as_many_examples_of_an_episode() -> None:
    settings = NFSPConfig(episodes=100, batch_size=30)
    assert matched(settings, 6.0).q_steps == matched(settings, 6.0).policy_steps == 20
    assert matched(settings, 6.1).q_steps == 21  # never fewer


def test_sides_take_turns_and_the_first_turn_does_not_count() -> None:
    turns: list[str] = []

    def side(name: str, rates: list[float]) -> bench_tabular.Rate:
        return lambda: (turns.append(name), rates.pop(0))[1]

    facts = bench_tabular._against(
        "x", side("ours", [1e9, 6.0, 5.0, 900.0]), side("theirs", [1e-9, 2.0, 3.0, 2.0]), TINY, lambda _: None
    )
    assert turns == ["ours", "theirs"] * 4
    assert facts["x_ratio"] == 3.0  # 6 over 2, the medians


def test_a_rate_counts_what_the_steps_are_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter((10.0, 12.0))
    monkeypatch.setattr(bench_tabular.time, "perf_counter", lambda: next(ticks))
    done: list[int] = []
    assert bench_tabular._rate(lambda: done.append(1), 3, worth=100)() == 150.0
    assert len(done) == 3
