"""Policy gradients: the objective and advantage estimates against plain ones, and whole runs."""

from pathlib import Path

import numpy as np
import pytest
import torch

from command_line import deepcfr, problem
from deepcfr.cluster.ray_cluster import RayCluster
from deepcfr.core.errors import ConfigError
from deepcfr.core.types import Infosets, joined
from deepcfr.game.presets import load_game
from deepcfr.network.fit import masked_log_softmax
from deepcfr.run.folder import RunFolder
from deepcfr.solve import policy_gradient
from deepcfr.solve.policy_gradient import (
    PolicyGradient,
    PolicyObjective,
    entropy_weight,
    generalised_advantages,
    regularised_loss,
)
from tables import small_config

KUHN = load_game("kuhn")


def test_play_is_uniform_at_first_and_a_record_counts_what_was_done() -> None:
    solver = PolicyGradient(KUHN, small_config("mmd"))
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
    first, other = (PolicyGradient(KUHN, small_config(name)) for name in ("ppo", "mmd"))
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
    solver = PolicyGradient(KUHN, small_config("mmd"))
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


@pytest.mark.parametrize("solver", ["ppo", "nfsp"])
def test_the_command_trains_and_its_run_can_be_used(solver: str, tmp_path: Path) -> None:
    run, small = tmp_path / "run", ("--iterations", 4, f"--{solver}.episodes", 100, "--runtime.threads", 1)
    begun = ("train", "kuhn", "--solver", solver, "--out", run, *small, "--runtime.minutes", 0.00005, "--json")
    assert deepcfr(*begun).json["iterations"] < 4  # its time was over
    done = deepcfr("resume", run, "--minutes", 10, "--json").json
    assert done["iterations"] == 4
    assert deepcfr("exploitability", run, "--json").json["nash_conv"] == pytest.approx(done["nash_conv"])
    assert deepcfr("export", run, "--out", tmp_path / "export").status == 0
    again = deepcfr("exploitability", tmp_path / "export", "--json").json
    assert again["nash_conv"] == pytest.approx(done["nash_conv"])
    assert deepcfr("match", run, run, "--json").json["value"] == pytest.approx(0, abs=1e-6)
    assert deepcfr("exploitability", run, "--policy", "current", "--json").json["nash_conv"] > 0
    assert "not a run of Deep CFR" in problem(deepcfr("exploitability", run, "--policy", "sd-cfr"))
    assert "cannot go on" in problem(deepcfr("resume", tmp_path / "export"))
    if solver == "nfsp":
        return
    with pytest.raises(ConfigError, match="A run of PPO cannot go on past its last iteration"):
        RunFolder.open(run).extend(9)
    with pytest.raises(ConfigError, match=r"--ray is for Deep CFR, but .* is a run of PPO"):
        RunFolder.open(run).load_solver(pytest.fail, memories=True, cluster=RayCluster("", 1))
