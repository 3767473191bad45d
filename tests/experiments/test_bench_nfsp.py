"""The benchmark of NFSP measures what it says; its speeds are not asserted."""

from __future__ import annotations

import pytest

from command_line import experiments
from deepcfr.config import NFSPConfig
from experiments.bench import nfsp as module


def test_matched_settings_learn_from_as_many_examples_of_an_episode() -> None:
    settings = NFSPConfig(episodes=100, batch_size=30)
    assert module.matched(settings, 6.0).q_steps == module.matched(settings, 6.0).policy_steps == 20
    assert module.matched(settings, 6.1).q_steps == 21  # never fewer


def test_both_sides_play_and_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspiel")
    monkeypatch.setattr(module, "_PEER_EPISODES", 40)
    monkeypatch.setattr(module, "_OUR_ITERATIONS", 1)
    outcome = experiments("bench", "nfsp", "--json")
    assert outcome.err.startswith("Measuring nfsp: ")
    facts = outcome.json
    assert facts["ratio"] == facts["ours"]["episodes_per_second"] / facts["peer"]["episodes_per_second"]
    for name, episodes in (("peer", 40), ("ours", 16_384), ("recipe", 16_384)):
        side = facts[name]
        assert side["episodes"] == episodes
        assert side["episodes_per_second"] == side["episodes"] / side["seconds"]
    # a player of Leduc acts once to four times in an episode, and an agent of OpenSpiel also steps at its end
    assert 2 * 2 <= facts["peer"]["examples_per_episode"] <= 2 * 5
    assert facts["ours"]["examples_per_episode"] >= facts["peer"]["examples_per_episode"]
