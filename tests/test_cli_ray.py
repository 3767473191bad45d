"""The command line of runs on a cluster, up to where the cluster begins."""

import sys
from pathlib import Path

import pytest

from command_line import deepcfr
from deepcfr.cli import main, parse_command
from deepcfr.core.errors import ConfigError
from deepcfr.defaults import LOCAL_CLUSTER, default_config

OUT = ["--out", "runs/r"]


@pytest.mark.parametrize(
    "words, address",
    [
        (["--ray", *OUT], LOCAL_CLUSTER),
        ([*OUT, "--ray"], LOCAL_CLUSTER),
        (["--ray", "10.0.0.1:6379", *OUT], "10.0.0.1:6379"),
        (OUT, None),
    ],
)
def test_ray_has_an_address_or_is_on_this_machine(words: list[str], address: str | None) -> None:
    assert parse_command(["train", "leduc", *words]).ray == address


def test_resuming_takes_the_same_arguments() -> None:
    command = parse_command(["resume", "runs/r", "--ray", "--workers", "3"])
    assert (command.ray, command.workers) == (LOCAL_CLUSTER, 3)


@pytest.mark.parametrize("game", ["kuhn", "leduc", "fhp", "fhp-mini", "hulh", "hunl-pot", "hunl-200"])
def test_a_cluster_changes_no_setting(game: str) -> None:
    there = parse_command(["train", game, "--ray", "--workers", "12", *OUT])
    assert there.run_config() == parse_command(["train", game, *OUT]).run_config() == default_config(game)


def test_without_ray_a_sentence_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "deepcfr.cluster.ray_cluster", raising=False)
    monkeypatch.setattr(sys, "argv", ["deepcfr", "train", "leduc", "--ray", "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "pip install 'deepcfr[ray]'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("words", [["train", "leduc", *OUT], ["resume", "models/kuhn"]])
def test_workers_without_a_cluster_are_refused(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["deepcfr", *words, "--workers", "2"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "deepcfr: --workers is for runs on a Ray cluster: also give --ray.\n"


@pytest.mark.parametrize("solver", ["nfsp", "ppo"])
def test_solvers_without_traversals_are_refused(solver: str) -> None:
    with pytest.raises(ConfigError, match="--ray is for Deep CFR"):
        parse_command(["train", "leduc", "--solver", solver, "--ray", *OUT]).run_config()


def test_a_run_of_tables_is_not_resumed_on_a_cluster(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    run = tmp_path / "run"
    solve = deepcfr("solve", "kuhn", "--solver", "mccfr", "--iterations", "2", "--out", run)
    assert solve.status == 0, solve.err
    resumed = deepcfr("resume", run, "--iterations", "3", "--ray")
    assert resumed.status == 2
    assert "--ray is for Deep CFR, but" in resumed.err.splitlines()[-1]
