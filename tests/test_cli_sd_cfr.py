"""--policy sd-cfr in every command that takes a policy, as a run's own policy, and what is said where there is none."""

from pathlib import Path

import pytest

from command_line import deepcfr, problem
from deepcfr.measure.exploitability import exploitability
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import read_metrics

TINY = (
    "--sampling.traversals", "20", "--network.kind", "mlp", "--network.width", "8", "--network.layers", "1",
    "--advantage.steps", "4", "--advantage.batch-size", "16", "--average.steps", "4", "--average.batch-size", "16",
    "--memory.advantage-capacity", "100", "--memory.strategy-capacity", "100", "--runtime.threads", "1",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kuhn") / "run"
    assert deepcfr("train", "kuhn", "--out", path, "--json", "--iterations", 4, *TINY).status == 0
    return path


def test_every_command_takes_the_average_of_the_snapshots(run: Path) -> None:
    policy, _ = RunFolder.open(run).load_policy("sd-cfr", pytest.fail)
    measured = deepcfr("exploitability", run, "--policy", "sd-cfr", "--json").json
    assert measured["nash_conv"] == pytest.approx(exploitability(policy).nash_conv, abs=1e-6)
    assert measured["policy"] == "exact average of 4 snapshots up to 4 (SD-CFR)"
    answer = deepcfr("strategy", run, "Q", "--policy", "sd-cfr", "--json").json
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    against_itself = deepcfr("match", run, run, "--policy", "sd-cfr", "--json").json
    assert against_itself["value"] == pytest.approx(0, abs=1e-6)
    assert deepcfr("match", run, run, "--policy", "sd-cfr", "--hands", 50, "--json").json["hands"] == 50
    assert "Session: 2 hands" in deepcfr("play", run, "--hands", 2, "--policy", "sd-cfr", answers="c\n" * 9).out


def test_a_run_measures_and_plays_what_its_configuration_names(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "own"
    arguments = ("train", "kuhn", "--out", path, "--json", "--iterations", 4, *TINY)
    assert deepcfr(*arguments, "--evaluation.policy", "sd-cfr").status == 0
    own = deepcfr("exploitability", path, "--json").json
    assert own["nash_conv"] == deepcfr("exploitability", run, "--policy", "sd-cfr", "--json").json["nash_conv"]
    network = deepcfr("exploitability", path, "--policy", "average", "--json").json
    assert network["nash_conv"] != pytest.approx(own["nash_conv"], abs=1e-3)
    last = read_metrics(path / "metrics.jsonl")[-1]
    assert last["evaluated_policy"] == "sd-cfr"
    assert last["evaluation"]["nash_conv"] == pytest.approx(own["nash_conv"], abs=1e-6)
    value = deepcfr("match", path, run, "--json").json["value"]
    assert value != pytest.approx(deepcfr("match", path, run, "--policy", "average", "--json").json["value"], abs=1e-6)


def test_an_export_may_keep_fewer_networks(run: Path, tmp_path: Path) -> None:
    assert deepcfr("export", run, "--out", tmp_path / "half", "--keep-networks", 2).status == 0
    thinned = deepcfr("exploitability", tmp_path / "half", "--policy", "sd-cfr", "--json").json
    assert thinned["policy"] == "exact average of 2 snapshots up to 4 (SD-CFR)"
    refused = problem(deepcfr("export", run, "--out", tmp_path / "negative", "--keep-networks", -1))
    assert refused == "--keep-networks must be at least 0, but is -1."
    assert not (tmp_path / "negative").exists()


def test_runs_without_snapshots_are_refused(run: Path, tmp_path: Path) -> None:
    deepcfr("export", run, "--out", tmp_path / "none", "--keep-networks", 0)
    sentence = problem(deepcfr("exploitability", tmp_path / "none", "--policy", "sd-cfr", "--json"))
    assert "has kept no networks" in sentence
    assert deepcfr("solve", "kuhn", "--out", tmp_path / "tables", "--iterations", 2, "--json").status == 0
    sentence = problem(deepcfr("match", tmp_path / "tables", run, "--policy", "sd-cfr", "--json"))
    assert "is not a run of Deep CFR" in sentence
