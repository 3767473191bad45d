"""Policy gradients: the objective and advantage estimates against plain ones, whole runs, resuming, and bad input."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from command_line import deepcfr
from deepcfr.cluster.ray_cluster import RayCluster
from deepcfr.config import NamedSolver, RunConfig, config_problems, unread_settings
from deepcfr.core.errors import ConfigError, NoPolicy
from deepcfr.core.types import Infosets, joined
from deepcfr.defaults import default_config
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.presets import load_game, load_rules
from deepcfr.measure.exploitability import exploitability
from deepcfr.network.fit import masked_log_softmax
from deepcfr.run.build import build_solver
from deepcfr.run.folder import RunFolder
from deepcfr.solve import policy_gradient
from deepcfr.solve.base import SavedState
from deepcfr.solve.policy_gradient import (
    PolicyGradient,
    PolicyObjective,
    entropy_weight,
    generalised_advantages,
    regularised_loss,
)

KUHN = load_game("kuhn")


def brief(name: NamedSolver = "mmd", **changes: float) -> RunConfig:
    """A short run on Kuhn."""
    config = default_config("kuhn", name)
    small: dict[str, Any] = {"episodes": 300, **changes}
    iterations, network = small.pop("iterations", 3), replace(config.network, width=32, layers=2)
    return replace(config, iterations=iterations, ppo=replace(config.ppo, **small), network=network)


def solved(config: RunConfig) -> PolicyGradient:
    solver = build_solver(KUHN, config)
    assert isinstance(solver, PolicyGradient)
    for _ in solver.iterations():
        pass
    return solver


@pytest.mark.parametrize(("name", "method"), [("ppo", "PPO"), ("mmd", "MMD")])
def test_a_run_is_far_less_exploitable_than_uniform_play(
    name: NamedSolver, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_gradient, "_BATCH", 1_024)
    config = default_config("kuhn", name)
    config = replace(config, iterations=80, ppo=replace(config.ppo, episodes=4_096))
    assert config.method == method
    solver = solved(config)
    assert exploitability(solver.policy("average")).nash_conv < 350  # uniform play has 917
    assert solver.describe().startswith(f"{method} on kuhn: 80 iterations of 4,096 episodes")


def test_play_is_uniform_at_first_and_a_record_counts_what_was_done() -> None:
    solver = PolicyGradient(KUHN, brief())
    infosets = Infosets(torch.tensor([0, 0, 1]), torch.tensor([[0], [2], [1]], dtype=torch.uint8))
    legal = KUHN.encoding.legal[infosets.node]
    rows = solver.policy("current").probabilities(infosets)
    torch.testing.assert_close(rows, legal / legal.sum(1, keepdim=True), check_dtype=False)
    record = next(solver.iterations())
    assert record.episodes == 300
    assert record.evaluated >= 2 * 300
    assert record.trained == 4_096 * 2 * (8 + 8)
    assert solver.nodes_touched == record.nodes_touched > record.evaluated


def test_both_methods_begin_with_the_same_networks_and_games() -> None:
    """Play is uniform at first, so runs of one seed differ by their updates only."""
    first, other = (PolicyGradient(KUHN, brief(name)) for name in ("ppo", "mmd"))
    for mine, its in zip((*first.policies, *first.values), (*other.policies, *other.values), strict=True):
        assert all(
            torch.equal(weight, its.network.state_dict()[name]) for name, weight in mine.network.state_dict().items()
        )
    assert next(first.iterations()).nodes_touched == next(other.iterations()).nodes_touched


def test_advantages_are_sums_of_errors_along_a_game() -> None:
    """GAE by a plain recursion over games of 1 to 4 decisions."""
    rng = np.random.default_rng(1)
    lengths = [3, 1, 4, 2, 1]
    terminal = torch.tensor([i == n - 1 for n in lengths for i in range(n)])
    reward = torch.tensor(rng.normal(size=len(terminal))).float().masked_fill(~terminal, 0.0)
    value = torch.tensor(rng.normal(size=len(terminal))).float()
    for trace in (0.0, 0.9, 1.0):
        expected, first = [], 0
        for n in lengths:
            later, game = 0.0, []
            for i in reversed(range(first, first + n)):
                following = 0.0 if i == first + n - 1 else float(value[i + 1])
                later = float(reward[i]) + following - float(value[i]) + trace * later
                game.append(later)
            expected += game[::-1]
            first += n
        torch.testing.assert_close(generalised_advantages(reward, value, terminal, trace), torch.tensor(expected))


def test_values_are_fitted_to_payoffs_where_nothing_is_bootstrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """With lambda = 1 the target of V at every decision is the payoff of its game, in the unit of the first episodes."""
    monkeypatch.setattr(policy_gradient, "_TRACE", 1.0)
    solver = PolicyGradient(KUHN, brief())
    found = list(solver._play(1))
    next(solver.iterations())  # the same episodes
    for player in (0, 1):
        steps = [episodes.transitions[player] for episodes in found]
        reward, terminal = (torch.cat([getattr(part, name) for part in steps]) for name in ("reward", "terminal"))
        payoff = reward[terminal]
        unit = float(solver.values[player].network.scale)
        assert unit == pytest.approx(float(payoff.square().mean().sqrt()), rel=1e-5)
        game = terminal.long().cumsum(0) - terminal.long()  # of each decision
        returns = solver._experience(player, joined(steps)).returns
        torch.testing.assert_close(returns * unit, payoff[game], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("clip_ratio", "kl"), [(0.2, 0.0), (0.0, 2.0), (0.2, 0.5)])
def test_the_objective_is_that_of_ppo_and_of_mirror_descent(clip_ratio: float, kl: float) -> None:
    rng = torch.Generator().manual_seed(2)
    legal = torch.tensor([[True, True, True], [True, False, True], [True, True, False], [True, True, True]])
    old, new = (masked_log_softmax(torch.randn(4, 3, generator=rng), legal) for _ in range(2))
    action, advantage = torch.tensor([0, 2, 1, 1]), torch.tensor([1.5, -2.0, 0.5, -0.1])
    expected = 0.0
    for i in range(4):
        ratio = float((new[i, action[i]] - old[i, action[i]]).exp())
        gain = ratio * float(advantage[i])
        if clip_ratio:
            gain = min(gain, float(np.clip(ratio, 1 - clip_ratio, 1 + clip_ratio)) * float(advantage[i]))
        p, q = (row[i][legal[i]].exp().numpy() for row in (new, old))
        assert p.sum() == pytest.approx(1, abs=1e-5)
        entropy, divergence = -(p * np.log(p)).sum(), (p * np.log(p / q)).sum()
        expected += (-gain - 0.3 * entropy + kl * divergence) / 4
    objective = PolicyObjective(steps=1, learning_rate=0.1, entropy=0.3, clip_ratio=clip_ratio, kl=kl)
    assert float(regularised_loss(new, old, action, advantage, objective, 0.3, legal)) == pytest.approx(
        expected, abs=1e-5
    )


def test_the_weight_of_entropy_falls_by_a_constant_factor() -> None:
    assert [entropy_weight(0.2, t, 3) for t in (1, 2, 3)] == pytest.approx([0.2, 0.1, 0.05])
    assert entropy_weight(0.2, 1, 1) == 0.2


@pytest.mark.parametrize("name", ["ppo", "mmd"])
def test_a_run_goes_on_bit_for_bit_from_its_saved_state(name: NamedSolver) -> None:
    straight = solved(brief(name))
    half = PolicyGradient(KUHN, brief(name))
    next(half.iterations())
    state = half.state(memories=True)
    assert not state.arrays
    again = PolicyGradient(KUHN, brief(name))
    tensors = {k: v.clone() for k, v in state.tensors.items()}
    again.restore(SavedState(state.facts, tensors, dict(state.arrays).__getitem__), memories=True)
    for _ in again.iterations():
        pass
    assert again.nodes_touched == straight.nodes_touched
    for key, tensor in straight.state(memories=False).tensors.items():
        assert torch.equal(tensor, again.state(memories=False).tensors[key]), key


def test_games_of_openspiel_are_learnt_too() -> None:
    game = load_openspiel_game("kuhn_poker")
    config = replace(brief(iterations=30, episodes=2_000), game="openspiel:kuhn_poker")
    solver = PolicyGradient(game, config)
    for _ in solver.iterations():
        pass
    assert exploitability(solver.policy("current")).nash_conv < 600


def test_the_command_trains_and_its_run_can_be_used(tmp_path: Path) -> None:
    run = tmp_path / "run"
    small = ("--iterations", 4, "--ppo.episodes", 200, "--runtime.threads", 1)
    done = deepcfr("train", "leduc", "--solver", "ppo", "--out", run, *small)
    assert done.status == 0, done
    assert "memories take" not in done.out + done.err
    assert deepcfr("exploitability", run).status == 0
    assert deepcfr("export", run, "--out", tmp_path / "export").status == 0
    before = deepcfr("exploitability", run, "--json").json["nash_conv"]
    assert deepcfr("exploitability", tmp_path / "export", "--json").json["nash_conv"] == before
    refused = deepcfr("resume", tmp_path / "export")
    assert refused.status == 2
    assert "cannot go on" in refused.err
    with pytest.raises(ConfigError, match="A run of PPO cannot go on past its last iteration"):
        RunFolder.open(run).extend(9)
    with pytest.raises(ConfigError, match=r"--ray is for Deep CFR, but .* is a run of PPO"):
        RunFolder.open(run).load_solver(pytest.fail, memories=True, cluster=RayCluster("", 1))


def test_a_run_whose_time_was_over_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    small = ("--iterations", 20, "--ppo.episodes", 200, "--runtime.threads", 1)
    done = deepcfr("train", "kuhn", "--solver", "mmd", "--out", run, *small, "--runtime.minutes", 0.0005, "--json").json
    assert done["iterations"] < 20
    again = deepcfr("resume", run, "--minutes", 10, "--json").json
    assert again["iterations"] == 20


def test_a_checkpoint_belongs_to_its_solver(tmp_path: Path) -> None:
    config = brief()
    runs = [RunFolder(tmp_path, replace(config, solver=solver), load_rules("kuhn")) for solver in ("ppo", "deep-cfr")]
    assert runs[0].fingerprint != runs[1].fingerprint


def test_snapshots_are_refused() -> None:
    with pytest.raises(NoPolicy, match="is not a run of Deep CFR"):
        PolicyGradient(KUHN, brief()).policy("sd-cfr")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"episodes": 0}, "'ppo.episodes' must be between"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, float], sentence: str) -> None:
    assert any(sentence in problem for problem in config_problems(brief("mmd", **changes)))


def test_settings_of_other_solvers_are_said_to_be_ignored() -> None:
    config = brief()
    changed = replace(config, nfsp=replace(config.nfsp, episodes=5))
    assert any("nfsp.episodes: ignored, because 'solver' is mmd" in note for note in unread_settings(changed))
