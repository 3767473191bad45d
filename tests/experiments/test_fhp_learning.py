"""The figures of docs/fhp.md: runs become rows, rows become tables, and the pages show what was recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import deepcfr
from deepcfr.config import RunConfig, config_from_table, config_to_toml, load_config
from deepcfr.runs.folder import RunFolder
from experiments import fhp_learning as learning
from experiments import fhp_rows as rows

ROOT = Path(__file__).parents[2]
HANDS = config_from_table(
    {
        "cfr": {"iterations": 3, "first_round": "table"},
        "sampling": {"kind": "public-chance", "panel": True},
        "evaluation": {"at": [1]},
        "runtime": {"threads": 1},
    }
)
# ten seconds of training an iteration, 5 of every policy fit and 20 of every exact evaluation
LINES: list[dict[str, Any]] = [
    {
        "iteration": t,
        "evaluated": 1_000 * t,
        "trained": 256,
        "total_nodes_touched": 50_000 * t,
        "seconds": 10.0 * t + 25.0 * done,
        **(
            {
                "average_examples": 640,
                "average_fit_seconds": 5.0,
                "evaluation": {"seconds": 20.0, "nash_conv": 100.0 / t, "boards_used": "all"},
            }
            if t != 2
            else {}
        ),
    }
    for t, done in ((1, 1), (2, 1), (3, 2))
]


def make_run(path: Path, config: RunConfig, lines: list[dict[str, Any]] = LINES) -> Path:
    """A run folder as training leaves it, but for checkpoints."""
    RunFolder.create(path, config)
    made = json.loads((path / "environment.json").read_text())
    made |= {"commit": "c" * 40, "command": "deepcfr train fhp", "processor": "Abacus", "cores": 2}
    made["versions"]["torch"] = "2.0"
    (path / "environment.json").write_text(json.dumps(made))
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def row(setting: str, t: int, nash_conv: float, **others: Any) -> dict[str, Any]:
    """A recorded row."""
    return {
        "setting": setting, "recipe": "aa", "hardware": "Abacus, 1 of 2 cores", "seed": 0, "commit": "c" * 40,
        "command": "deepcfr train fhp", "torch": "2.0", "note": "", "t": t, "nodes_touched": 12_340_001,
        "evaluated": 5_600_000, "sgd_samples": 78_900_000, "seconds": 90.0, "nash_conv": nash_conv, **others,
    }  # fmt: skip


# Runs to rows


def test_a_run_becomes_a_row_for_each_evaluation(tmp_path: Path) -> None:
    found = rows.rows_of("faithful+", make_run(tmp_path / "run", HANDS), "alone", None, None)
    assert [one["t"] for one in found] == [1, 3]
    assert [one["nodes_touched"] for one in found] == [50_000, 150_000]
    assert [one["evaluated"] for one in found] == [1_000, 6_000]
    # a hand has 35 decisions of its player on the flop; the policy is fitted to hands of both players
    assert [one["sgd_samples"] for one in found] == [256 * 35 + 640 * 70, 3 * 256 * 35 + 640 * 70]
    # of the second row, two evaluations and the first policy fit are left out
    assert [one["seconds"] for one in found] == [15.0, 35.0]
    assert [one["nash_conv"] for one in found] == [100.0, 100.0 / 3]
    assert {one["hardware"] for one in found} == {"Abacus, 1 of 2 cores"}
    assert {(one["commit"], one["torch"], one["note"], one["seed"]) for one in found} == {("c" * 40, "2.0", "alone", 0)}


def test_the_decisions_of_a_first_round_without_a_table_count(tmp_path: Path) -> None:
    network = replace(HANDS, cfr=replace(HANDS.cfr, first_round="network"))  # 4 decisions before the flop
    assert rows.decisions(RunFolder.open(make_run(tmp_path / "network", network))) == (4 + 35, 2 * (4 + 35))


def test_infosets_count_once_each(tmp_path: Path) -> None:
    config = config_from_table({"cfr": {"iterations": 3}})
    found = rows.rows_of("faithful+", make_run(tmp_path / "run", config), "", None, None)
    assert [one["sgd_samples"] for one in found] == [256 + 640, 3 * 256 + 640]


def test_the_recipe_is_all_but_seed_length_and_runtime() -> None:
    name = rows.recipe(HANDS)
    longer = replace(HANDS, seed=1, cfr=replace(HANDS.cfr, iterations=9), runtime=replace(HANDS.runtime, threads=2))
    assert rows.recipe(longer) == name
    assert rows.recipe(replace(HANDS, advantage=replace(HANDS.advantage, steps=5))) != name


def test_later_versions_give_the_recorded_recipe_of_a_configuration_the_same_name() -> None:
    recorded = json.loads((ROOT / "experiments" / "results" / "fhp_learning.json").read_text())
    shipped = rows.recipe(load_config(ROOT / "models" / "fhp" / "config.toml"))
    assert {row["seed"] for row in recorded if row["recipe"] == shipped} == {0, 1, 2}


def test_settings_are_never_mixed(tmp_path: Path) -> None:
    assert rows.misfits("paper", load_config("fhp-paper")) == []
    assert len(rows.misfits("paper", HANDS)) >= 3
    strong = replace(HANDS, network=replace(HANDS.network, strength=True))
    assert rows.misfits("strength", strong) == rows.misfits("faithful+", HANDS) == []
    for setting, config, problem in (
        ("faithful+", strong, "network.strength = False, and the run has True"),
        ("strength", HANDS, "network.strength = True, and the run has False"),
        ("quick", HANDS, "'quick' is not a setting"),
        ("faithful+", replace(HANDS, game="leduc"), "is not a run of Deep CFR on flop hold'em"),
    ):
        path = make_run(tmp_path / f"{setting}-{config.game}", config)
        with pytest.raises(SystemExit, match=problem):
            rows.rows_of(setting, path, "", None, None)


def test_metrics_that_lack_something_are_refused(tmp_path: Path) -> None:
    for name in ("trained", "average_examples"):
        lines = [{key: value for key, value in line.items() if key != name} for line in LINES]
        with pytest.raises(SystemExit, match="lack"):
            rows.rows_of("faithful+", make_run(tmp_path / name, HANDS, lines), "", None, None)


def test_a_gpu_must_be_named() -> None:
    made = {"device": "cuda", "processor": "Abacus", "threads": 2, "cores": 4}
    with pytest.raises(SystemExit, match="--hardware"):
        rows.hardware(made, None)
    assert rows.hardware(made, "a GPU") == "a GPU"


def test_the_average_of_sd_cfr_is_what_the_command_measures(tmp_path: Path) -> None:
    config = config_from_table(
        {
            "game": "leduc",
            "cfr": {"iterations": 4},
            "sampling": {"traversals": 40},
            "memory": {"advantage_capacity": 2_000, "strategy_capacity": 2_000},
            "network": {"kind": "mlp", "width": 8, "layers": 1},
            "advantage": {"steps": 10, "batch_size": 32},
            "average": {"steps": 10, "batch_size": 32},
            "runtime": {"threads": 1},
        }
    )
    (tmp_path / "config.toml").write_text(config_to_toml(config))
    assert deepcfr("train", "leduc", "--config", tmp_path / "config.toml", "--out", tmp_path / "run").status == 0
    run = RunFolder.open(tmp_path / "run")
    iteration, facts = rows.sd_cfr(run, 1)
    printed = json.loads(deepcfr("exploitability", run.path, "--policy", "sd-cfr", "--json").out)
    assert (iteration, facts["sd_cfr_networks"], facts["sd_cfr_threads"]) == (4, 4, 1)
    assert facts["sd_cfr_nash_conv"] == pytest.approx(printed["nash_conv"], abs=1e-6)


def test_rows_replace_those_of_the_same_commit_and_keep_their_sd_cfr() -> None:
    known = [row("strength", 20, 60.0, sd_cfr_nash_conv=50.0), row("strength", 40, 40.0)]
    again, other = row("strength", 20, 61.0), row("strength", 20, 62.0, commit="d" * 40)
    found = rows.merged(known, [again, other])
    assert found == [known[1], again | {"sd_cfr_nash_conv": 50.0}, other]


# Rows to pages


def test_seeds_of_one_recipe_are_averaged_and_other_recipes_are_not() -> None:
    seeds = [row("strength", 40, nash_conv, seed=seed) for seed, nash_conv in enumerate((30.0, 33.0, 36.0))]
    slow = row("strength", 40, 20.0, recipe="bb", seconds=600.0)
    first, second = learning.learning_table([*seeds, slow])[2:4]
    assert first.startswith("| strength (1), 3 seeds | 40 |")
    assert first.endswith("| 33.00 (30.00 to 36.00) | – |")
    assert second.startswith("| strength (2) | 40 |")
    assert "| 10.0 | Abacus, 1 of 2 cores | 20.00 |" in second


def test_of_a_seed_measured_at_two_commits_the_newest_counts() -> None:
    old = [row("strength", 20, 60.0), row("strength", 40, 50.0)]
    new = row("strength", 40, 45.0, commit="d" * 40)
    lines = learning.learning_table([*old, new])
    assert [line for line in lines if line.startswith("| strength")] == [
        "| strength | 40 | 12.4 | 5.6 | 78.9 | 1.5 | Abacus, 1 of 2 cores | 45.00 | – |"
    ]
    assert "commit dddddddddd;" in lines[-1]


def test_an_error_budget_is_told_by_the_average_of_its_run() -> None:
    budget = {"unit": "mbb/g", "iterations": 40, "parts": [{"name": "average", "nash_conv": 30.0}]}
    recorded = [row("faithful+", 40, 60.0), row("strength", 40, 30.0, seed=2), row("strength", 20, 30.0, seed=2)]
    assert learning.owner(budget, recorded) == "strength, seed 2"
    with pytest.raises(SystemExit, match=r"No run in the table has 30\.000 mbb/g at t = 40"):
        learning.owner(budget, recorded[:1])


def test_the_pages_show_what_is_recorded() -> None:
    for path, text in learning.pages(ROOT / "docs").items():
        assert path.read_text(encoding="utf-8") == text


def test_a_page_without_its_markers_is_not_written() -> None:
    with pytest.raises(ValueError, match="unpack"):
        learning.replaced("a page", learning.BEGIN, learning.END, ["a line"])
    page = f"before {learning.BEGIN}\nold\n{learning.END} after"
    assert learning.replaced(page, learning.BEGIN, learning.END, ["new"]) == (
        f"before {learning.BEGIN}\nnew\n{learning.END} after"
    )
