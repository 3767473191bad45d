"""`deepcfr runs` lists the runs of a folder with the command that goes on with each."""

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from command_line import deepcfr, edit_settings
from deepcfr.run.listing import age

SOLVE = ("solve", "kuhn", "--iterations", "4", "--json", "--out")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs: whole, with a time, not finished, of NFSP, without memories, without a checkpoint, and damaged."""
    root = tmp_path_factory.mktemp("runs")
    deepcfr(*SOLVE, root / "whole")
    deepcfr(*SOLVE, root / "timed", "--iterations", "100000000", "--runtime.minutes", "0.001")
    deepcfr(*SOLVE, root / "unhurried", "--runtime.minutes", "5")  # its iterations were over first
    deepcfr(*SOLVE, root / "deep er" / "part")
    edit_settings(root / "deep er" / "part", "iterations = 4", "iterations = 1004")
    deepcfr("train", "kuhn", "--solver", "nfsp", "--iterations", "2", "--json", "--out", root / "nfsp")
    deepcfr("export", root / "whole", "--out", root / "small")
    deepcfr(*SOLVE, root / "cut off")
    shutil.rmtree(root / "cut off" / "checkpoints")
    (root / "cut off" / "metrics.jsonl").write_text("")
    deepcfr(*SOLVE, root / "damaged")
    (root / "damaged" / "game.json").write_text("{")
    return root


@pytest.fixture(scope="module")
def listed(folder: Path) -> dict[str, dict[str, Any]]:
    return {Path(facts["run"]).name: facts for facts in deepcfr("runs", folder, "--json").json["runs"]}


def test_every_run_is_listed_once_newest_first(folder: Path) -> None:
    os.utime(folder / "whole" / "metrics.jsonl", (0, 0))
    os.utime(folder / "whole" / "config.toml", (0, 0))
    listed = deepcfr("runs", folder, "--json").json["runs"]
    assert sorted(Path(facts["run"]).name for facts in listed) == [
        "cut off", "damaged", "nfsp", "part", "small", "timed", "unhurried", "whole",
    ]  # fmt: skip
    ages = [facts["age"] for facts in listed]
    assert ages == sorted(ages)
    assert Path(listed[-1]["run"]).name == "whole"
    assert ages[-1] > 1e9


def test_state_and_result_are_those_of_the_run(listed: dict[str, dict[str, Any]]) -> None:
    assert {name: facts["state"] for name, facts in listed.items()} == {
        "whole": "finished", "timed": "finished", "unhurried": "finished", "part": "unfinished", "nfsp": "finished",
        "small": "finished", "damaged": "damaged", "cut off": "unfinished",
    }  # fmt: skip
    part = listed["part"]
    assert (part["iteration"], part["iterations"], part["game"], part["method"]) == (4, 1004, "kuhn", "Linear CFR")
    assert part["nash_conv"] == pytest.approx(listed["whole"]["nash_conv"])
    assert part["nash_conv"] > 0
    assert part["unit"] == "mA/g"


def test_the_command_goes_on_with_the_run(listed: dict[str, dict[str, Any]]) -> None:
    follow = {name: shlex.split(facts["next"])[1:] for name, facts in listed.items() if name != "damaged"}
    path = {name: listed[name]["run"] for name in follow}
    used = json.loads((Path(path["timed"]) / "metrics.jsonl").read_text().splitlines()[-1])["seconds"] / 60
    assert follow == {
        "whole": ["resume", path["whole"], "--iterations", "8"],
        "unhurried": ["resume", path["unhurried"], "--iterations", "8"],
        "timed": ["resume", path["timed"], "--minutes", f"{2 * max(used, 0.001):g}"],
        "part": ["resume", path["part"]],
        "nfsp": ["play", path["nfsp"]],
        "small": ["play", path["small"]],
        "cut off": [
            "solve", "kuhn", "--config", f"{path['cut off']}/config.toml", "--out", f"{path['cut off']}-again",
        ],
    }  # fmt: skip
    assert deepcfr(*follow["cut off"], "--json").json["iterations"] == 4
    assert deepcfr(*follow["part"], "--json").json["iterations"] == 1004
    assert deepcfr(*follow["timed"], "--json").json["finished"]
    assert "game.json" in listed["damaged"]["next"]


def test_the_table_names_every_run_and_command(folder: Path) -> None:
    shown = deepcfr("runs", folder).out
    assert "damaged" in shown
    assert f"deepcfr play {folder / 'small'}" in shown
    assert "s ago" in shown


def test_ages_have_their_largest_unit() -> None:
    assert [age(seconds) for seconds in (3, 59.9, 60, 3_599, 5_400, 86_399, 86_400 * 2.6)] == [
        "3 s ago", "59 s ago", "1 min ago", "59 min ago", "1 h ago", "23 h ago", "2 d ago",
    ]  # fmt: skip
