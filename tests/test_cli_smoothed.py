"""--policy smoothed and evaluation.policy: what a run plays of its own, in commands, exports and refusals."""

from pathlib import Path

import numpy as np
import pytest
import torch

from command_line import deepcfr, problem
from deepcfr.evaluation.exploitability import exploitability
from deepcfr.policies.base import Policy
from deepcfr.policies.network import RegretMatchingPolicy
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics
from deepcfr.solvers.deep_cfr import DeepCFR
from test_cli_sd_cfr import TINY

KIND = "regret matching on the mean of the advantage networks of the later half of 5"
ARGUMENTS = ("train", "kuhn", "--json", "--cfr.iterations", 5, *TINY)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kuhn") / "run"
    assert deepcfr(*ARGUMENTS, "--out", path, "--evaluation.policy", "smoothed").status == 0
    return path


def loaded(path: Path, which: str) -> Policy:
    return RunFolder.open(path).load_policy(which, pytest.fail)[0]


def weights(path: Path, which: str) -> list[torch.Tensor]:
    policy = loaded(path, which)
    assert isinstance(policy, RegretMatchingPolicy)
    return [network.state_dict()["head.weight"] for network in policy.networks]


def test_its_weights_are_the_mean_of_those_of_the_later_half(run: Path) -> None:
    solver, _ = RunFolder.open(run).load_solver(pytest.fail, memories=False)
    assert isinstance(solver, DeepCFR)
    assert [iterate.iteration for iterate in solver.snapshots.kept] == [1, 2, 3, 4, 5]
    for player, found in enumerate(weights(run, "smoothed")):
        later = [iterate.networks[player]["head.weight"].float() for iterate in solver.snapshots.kept[2:]]
        torch.testing.assert_close(found, torch.stack(later).mean(0), atol=1e-3, rtol=0)
        assert not torch.allclose(found, later[-1], atol=1e-3)


def test_a_run_measures_and_plays_what_its_configuration_names(run: Path, tmp_path: Path) -> None:
    own = deepcfr("exploitability", run, "--json").json
    assert own["policy"] == KIND
    assert own["nash_conv"] == pytest.approx(exploitability(loaded(run, "smoothed")).nash_conv, abs=1e-6)
    network = deepcfr("exploitability", run, "--policy", "average", "--json").json
    assert network["nash_conv"] == pytest.approx(exploitability(loaded(run, "network")).nash_conv, abs=1e-6)
    assert network["nash_conv"] != pytest.approx(own["nash_conv"], abs=1e-3)
    last = read_metrics(run / "metrics.jsonl")[-1]
    assert last["evaluated_policy"] == "smoothed"
    assert last["evaluation"]["nash_conv"] == pytest.approx(own["nash_conv"], abs=1e-6)
    tables = tmp_path / "tables"
    assert deepcfr("solve", "kuhn", "--out", tables, "--iterations", 2, "--json").status == 0
    value = deepcfr("match", run, tables, "--json").json["value"]
    assert value != pytest.approx(
        deepcfr("match", run, tables, "--policy", "average", "--json").json["value"], abs=1e-6
    )


def test_an_export_without_networks_keeps_the_smoothed_ones(run: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    assert deepcfr("export", run, "--out", first, "--keep-networks", 0).status == 0
    assert deepcfr("export", first, "--out", second, "--keep-networks", 0).status == 0
    solver, _ = RunFolder.open(second).load_solver(pytest.fail, memories=False)
    assert isinstance(solver, DeepCFR)
    assert not solver.snapshots.kept
    for path in (first, second):
        np.testing.assert_array_equal(torch.cat(weights(path, "own")), torch.cat(weights(run, "own")))


def test_what_has_no_smoothed_policy_is_refused(run: Path, tmp_path: Path) -> None:
    scratch, bare = tmp_path / "scratch", tmp_path / "bare"
    assert deepcfr(*ARGUMENTS, "--out", scratch, "--advantage.refit", "scratch").status == 0
    assert "'advantage.refit' is scratch" in problem(deepcfr("exploitability", scratch, "--policy", "smoothed"))
    assert deepcfr("export", scratch, "--out", bare, "--keep-networks", 0).status == 0
    assert "has kept no networks for a smoothed policy" in problem(
        deepcfr("exploitability", bare, "--policy", "smoothed")
    )
    tables = tmp_path / "tables"
    assert deepcfr("solve", "kuhn", "--out", tables, "--iterations", 2, "--json").status == 0
    assert "a smoothed policy needs networks" in problem(
        deepcfr("match", tables, run, "--policy", "smoothed", "--json")
    )
