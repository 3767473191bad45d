"""The command line of runs on a cluster, up to where the cluster begins."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from deepcfr.cli import main, parse_command
from deepcfr.config import ExternalSampling
from deepcfr.defaults import LOCAL_CLUSTER, cluster_notes, default_cluster_config, default_config
from deepcfr.errors import ConfigError

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
    command = parse_command(["resume", "runs/r", "--ray", "--workers", "3", "--learners", "1"])
    assert (command.ray, command.workers, command.learners) == (LOCAL_CLUSTER, 3, 1)


@pytest.mark.parametrize("game", ["kuhn", "leduc", "fhp", "fhp-mini", "fhp-pot", "hulh", "hunl-pot", "hunl-200"])
def test_every_game_starts_from_settings_that_shards_offer(game: str) -> None:
    config = parse_command(["train", game, "--ray", *OUT]).run_config()
    assert config.memory.shards > 1
    assert config.sampling.kind == "external"
    assert config.game == game
    assert config.network == default_cluster_config(game).network
    assert config.network.card_embedding is (game in ("hulh", "hunl-pot", "hunl-200", "fhp-mini"))


@pytest.mark.parametrize("game", ["kuhn", "leduc", "fhp", "hulh", "hunl-pot", "hunl-200", "openspiel:liars_dice"])
def test_a_cluster_changes_no_setting_without_a_sentence(game: str) -> None:
    usual, there = default_config(game), default_cluster_config(game)
    notes = cluster_notes(game)
    assert bool(notes) == (usual != there) == (game in ("leduc", "fhp", "hulh", "hunl-pot", "hunl-200"))
    assert all("external" in note for note in notes)


def test_games_of_four_rounds_sample_histories_on_a_cluster_as_before_boards_were_drawn() -> None:
    limit = default_cluster_config("hulh")
    assert (limit.cfr.iterations, limit.sampling, limit.advantage.target) == (
        120,
        ExternalSampling(traversals=30_000),
        "mean",
    )
    assert all(replace(default_cluster_config(name), game="hulh") == limit for name in ("hunl-pot", "hunl-200"))


@pytest.mark.parametrize("workers, shards", [(2, 8), (12, 12)])
def test_there_are_shards_for_all_workers(workers: int, shards: int) -> None:
    command = parse_command(["train", "leduc", "--ray", "--workers", str(workers), *OUT])
    assert command.run_config().memory.shards == shards


def test_shards_that_were_asked_for_stay() -> None:
    assert parse_command(["train", "leduc", "--ray", "--memory.shards", "3", *OUT]).run_config().memory.shards == 3


def test_settings_that_need_one_process_are_refused() -> None:
    command = parse_command(["train", "fhp", "--ray", "--sampling.kind", "public-chance", *OUT])
    with pytest.raises(ConfigError, match=r"sampling\.kind"):
        command.run_config()


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


@pytest.mark.parametrize("words", [["train", "leduc", *OUT], ["solve", "leduc", *OUT], ["resume", "models/kuhn"]])
def test_workers_without_a_cluster_are_refused(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["deepcfr", *words, "--workers", "2"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "deepcfr: --workers is for runs on a Ray cluster: also give --ray.\n"


def test_monte_carlo_cfr_has_a_part_for_every_worker() -> None:
    solve = ["solve", "leduc", "--algorithm", "mccfr", "--ray", "--workers", "3", *OUT]
    assert parse_command(solve).run_config().solve.parts == 3
    assert parse_command([*solve, "--parts", "6"]).run_config().solve.parts == 6


@pytest.mark.parametrize(
    "words, reason",
    [
        (["solve", "leduc", "--algorithm", "linear-cfr"], "--ray is for mccfr"),
        (["train", "leduc", "--solver", "nfsp"], "--ray is for Deep CFR"),
    ],
)
def test_solvers_without_traversals_are_refused(words: list[str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_command([*words, "--ray", *OUT]).run_config()
