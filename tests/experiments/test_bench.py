"""The benchmarks measure what they say; their speeds are not asserted."""

from __future__ import annotations

import pytest

from deepcfr.core.errors import ConfigError
from experiments.bench import deep_cfr as bench


def test_our_side_stops_at_the_first_evaluation_that_is_good_enough() -> None:
    facts = bench._run_ours(seed=0, target=1e9)
    assert facts["iterations"] == bench._EVALUATE_EVERY
    assert 0 < facts["exploitability"] < 2373.6  # better than uniform, exactly evaluated
    assert facts["traversals_per_second"] > 0
    assert facts["seconds"] > 0


def test_an_unreached_target_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_MOST_ITERATIONS", 1)
    with pytest.raises(ConfigError, match="did not reach"):
        bench._run_ours(seed=0, target=0.0)


def test_the_peer_is_timed_by_whole_traversals() -> None:
    facts = bench._run_openspiel(iterations=1, seed=0)
    assert facts["iterations"] == 1
    assert 0 < facts["exploitability"] < 3000
    assert facts["seconds"] > 2 * 375 / facts["traversals_per_second"]  # collection is a part of the whole
