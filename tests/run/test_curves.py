"""Curves come from the metrics of runs, and what cannot be drawn is said in a sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from command_line import deepcfr
from deepcfr.config import RunConfig, SamplingConfig
from deepcfr.core.errors import ConfigError
from deepcfr.core.files import signed_json
from deepcfr.defaults import default_config
from deepcfr.run.curves import draw_curves
from deepcfr.run.folder import RunFolder


def run_with(path: Path, config: RunConfig, values: list[float]) -> Path:
    run = RunFolder.create(path, config)
    lines = [{"iteration": 1, "seconds": 0.5, "total_nodes_touched": 9}]
    for number, value in enumerate(values):
        facts = {"seconds": 60.0 * (number + 1), "total_nodes_touched": 10 ** (number + 1)}
        lines.append({"iteration": number + 2, **facts, "evaluation": {"nash_conv": value}})
    run.metrics_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_picture_of_runs_that_count_nodes_differently_says_so(tmp_path: Path) -> None:
    external, public = (
        default_config("kuhn"),
        replace(default_config("kuhn"), sampling=SamplingConfig(kind="public-chance")),
    )
    named = {"external": external, "public": public, "again": public}
    runs = {name: run_with(tmp_path / name, config, [300.0, 100.0]) for name, config in named.items()}
    for names, mixed in ((["external", "public"], True), (["public", "again"], False)):
        draw_curves([runs[name] for name in names], tmp_path / "curve.svg")
        picture = (tmp_path / "curve.svg").read_bytes()
        assert (b"count different things as nodes" in picture) == mixed
        assert all(name.encode() in picture for name in names)


def test_what_cannot_be_drawn_is_said_all_at_once(tmp_path: Path) -> None:
    kuhn = run_with(tmp_path / "kuhn", default_config("kuhn"), [])
    leduc = run_with(tmp_path / "leduc", replace(default_config("leduc"), seed=1), [100.0])
    with pytest.raises(ConfigError) as caught:
        draw_curves([kuhn, leduc], tmp_path / "curve.svg")
    assert len(caught.value.problems) == 2
    assert "no exact evaluation" in caught.value.problems[0]
    assert "kuhn in mA/g, leduc in mA/g" in caught.value.problems[1]
    nothing = run_with(tmp_path / "nothing", default_config("leduc"), [0.0])
    with pytest.raises(ConfigError, match="no exact evaluation above 0"):
        draw_curves([nothing], tmp_path / "curve.svg")


def test_rules_that_differ_under_one_name_are_not_one_game(tmp_path: Path) -> None:
    first, other = (run_with(tmp_path / name, default_config("leduc"), [100.0]) for name in ("first", "other"))
    rules = json.loads((other / "game.json").read_text())
    (other / "game.json").write_text(signed_json(rules | {"raise_size": [2, 6]}).decode())
    with pytest.raises(ConfigError, match="the rules of leduc are not the same in all runs"):
        draw_curves([first, other], tmp_path / "curve.svg")


def test_the_command_draws_a_picture(tmp_path: Path) -> None:
    run, picture = run_with(tmp_path / "a", default_config("kuhn"), [300.0, 100.0]), tmp_path / "one.svg"
    assert deepcfr("report", run, "--out", picture).out == f"Wrote {picture}.\n"
    assert picture.read_bytes().startswith(b"<svg ")
