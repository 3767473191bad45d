"""The report says what the run folders hold: means, intervals and verdicts worked out by hand, and what is missing."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from command_line import edit_settings, experiments, problem
from deepcfr.game.presets import load_rules
from deepcfr.run.folder import RunFolder
from experiments.filled import ROOT
from experiments.intervals import Interval, contrast, interval_of
from experiments.kept_runs import KEPT, keep
from experiments.reproduction.page import page_lines, write_reproduction
from experiments.reproduction.quick_game import count_infosets
from experiments.reproduction.results import (
    StudyResult,
    at_equal_nodes,
    at_nodes,
    common_nodes,
    final,
    jobs_of,
    read_study,
)
from experiments.reproduction.verdicts import judge, judge_statement
from experiments.studies import (
    STUDIES,
    Arm,
    Below,
    FewerNodes,
    Filled,
    LevelsOff,
    NotAbove,
    Plan,
    Published,
    Statement,
    Study,
    arm_config,
    arm_path,
    base_arm,
)
from experiments.studies.relatives import BEST_SIZES

# A study of Kuhn poker, whose runs are made up: what arms are called says nothing of what they would find.
TINY = {"game": "kuhn", "iterations": 4, "network.kind": "mlp", "network.width": 4, "evaluation.at": [1, 2]}
ARMS = (
    Arm("plain", "plain", TINY),
    Arm("few", "few steps", TINY | {"advantage.steps": 7}, Published("stated in the text", ratio=1.5)),
    Arm("window", "sliding | window", TINY | {"memory.kind": "window"}, Published("read off the curve", nash_conv=65)),
)
STATEMENTS = (
    Statement("Plain is better than few.", "section 6", (Below("plain", "few"),)),
    Statement("Windows are no worse.", "figure 4", (NotAbove("window", "plain"),)),
)
STUDY = Study("fig4-left", "4, left", "A tiny study", "About nothing.", {"quick": Plan({}, ARMS, "plain", STATEMENTS)})
NODES = {1: 100, 2: 200, 4: 400}


def made_up(root: Path, name: str, seed: int, values: Sequence[float], study: Study = STUDY) -> RunFolder:
    """A run folder that says it found `values` at iterations 1, 2 and 4."""
    (arm,) = [arm for arm in study.plans["quick"].arms if arm.name == name]
    run = RunFolder.create(arm_path(root, study, "quick", arm, seed), arm_config(root, study, "quick", arm, seed))
    environment = {"command": "deepcfr made-up", "commit": "0123456789abcdef", "processor": "abacus", "cores": 1}
    (run.path / "environment.json").write_text(json.dumps(environment | {"device": "cpu", "threads": 1}))
    lines = [
        {
            "iteration": iteration,
            "seconds": 30.0 * iteration,
            "total_nodes_touched": nodes,
            "advantage_samples": [nodes, nodes],
            "strategy_samples": 2 * nodes,
            "evaluation": {"nash_conv": value, "seconds": 0.5},
        }
        for (iteration, nodes), value in zip(NODES.items(), values, strict=False)
    ]
    run.metrics_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def read(root: Path, study: Study = STUDY) -> StudyResult:
    return read_study(root, study, "quick")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Finals: plain 10, 11, 12; few 20, 22, 24; window 10 and 13, and one that stopped."""
    for seed in range(3):
        made_up(tmp_path, "plain", seed, [40.0, 20.0, 10.0 + seed])
        made_up(tmp_path, "few", seed, [80.0, 40.0, 20.0 + 2 * seed])
    made_up(tmp_path, "window", 0, [40.0, 20.0, 10.0])
    made_up(tmp_path, "window", 1, [40.0, 20.0, 13.0])
    made_up(tmp_path, "window", 2, [40.0, 20.0])
    return tmp_path


# Statistics


def test_an_interval_is_worked_out_by_hand() -> None:
    found = interval_of([1.0, 2.0, 3.0])
    # sample deviation 1, three numbers, two degrees of freedom
    assert (found.mean, found.count) == (2.0, 3)
    assert found.half == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert interval_of([5.0]) == Interval(5.0, math.inf, 1)
    assert str(interval_of([5.0])) == "5.0 (one seed)"


def test_intervals_meet_where_they_touch_and_not_beyond() -> None:
    assert Interval(1.0, 1.0, 3).meets(Interval(3.0, 1.0, 3))
    assert not Interval(1.0, 1.0, 3).meets(Interval(3.1, 1.0, 3))


def test_a_contrast_is_welchs_interval() -> None:
    from scipy.stats import ttest_ind

    few, many = [1.0, 2.0, 4.0], [10.0, 11.0, 15.0, 19.0, 13.0]
    found = contrast((1, interval_of(few)), (-1, interval_of(many)))
    known = ttest_ind(few, many, equal_var=False).confidence_interval(0.95)
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx(known)
    assert contrast((1, interval_of([1.0])), (-1, interval_of(many))).half == math.inf
    assert contrast((2, Interval(3.0, 0.0, 4)), (1, Interval(1.0, 0.0, 4))) == Interval(7.0, 0.0, 4)


def test_an_interval_covers_the_truth_as_often_as_it_says() -> None:
    draws = np.random.default_rng(0).normal(3.0, 2.0, (4_000, 3))
    found = [interval_of([float(x) for x in row]) for row in draws]
    covered = np.mean([abs(one.mean - 3.0) <= one.half for one in found])
    assert 0.94 < covered < 0.96  # three standard errors of 4,000 draws


# Reading


def test_finished_runs_are_read_and_the_others_named(root: Path) -> None:
    result = read(root)
    assert {name: sorted(arm.runs) for name, arm in result.arms.items()} == {
        "plain": [0, 1, 2], "few": [0, 1, 2], "window": [0, 1],
    }  # fmt: skip
    assert result.arms["window"].missing == {2: "stopped at iteration 2 of 4"}
    assert final(result.arms["plain"]) == interval_of([10.0, 11.0, 12.0])
    shutil.rmtree(arm_path(root, STUDY, "quick", ARMS[1], 1))
    assert read(root).arms["few"].missing == {1: "not run"}


def test_a_run_of_other_settings_is_left_out_by_name(root: Path) -> None:
    run = arm_path(root, STUDY, "quick", ARMS[0], 1)
    path = run / "config.toml"
    edit_settings(run, "width = 4", "width = 5")
    assert read(root).arms["plain"].missing == {1: "of other settings: network.width is 5 there and 4 here"}
    path.write_text(re.sub(r"(?m)^at = .*", "at = [1, 3]", path.read_text().replace("width = 5", "width = 4")))
    assert read(root).arms["plain"].missing == {}  # evaluations change no run
    path.write_text(path.read_text().replace("keep_networks = 0", "keep_networks = 2"))
    assert "keep_networks = 2" in path.read_text()
    assert read(root).arms["plain"].missing == {}  # nor do snapshots
    path.write_text(
        re.sub("(?m)^minutes = .*", "minutes = 1.0", path.read_text().replace("iterations = 4", "iterations = 9"))
    )
    assert "iterations is 9 there and 4 here" in read(root).arms["plain"].missing[1]
    path.write_text("game = [")
    assert "cannot be read" in read(root).arms["plain"].missing[1]


def test_snapshots_count_where_they_are_what_is_evaluated(tmp_path: Path) -> None:
    kept = TINY | {"cfr.keep_networks": 2, "evaluation.at": [2]}
    arms = (Arm("plain", "plain", kept), Arm("sd-cfr", "SD-CFR", kept | {"evaluation.policy": "sd-cfr"}))
    study = dataclasses.replace(STUDY, plans={"quick": Plan({}, arms, "plain", ())})
    for name in ("plain", "sd-cfr"):
        edit_settings(
            made_up(tmp_path, name, 0, [40.0, 20.0, 10.0], study).path, "keep_networks = 2", "keep_networks = 1"
        )
    found = read(tmp_path, study).arms
    assert 0 not in found["plain"].missing
    assert found["sd-cfr"].missing[0] == "of other settings: cfr.keep_networks is 1 there and 2 here"


def test_a_run_whose_time_is_over_is_at_its_end_if_the_plan_limits_time(tmp_path: Path) -> None:
    timed = TINY | {"iterations": 9, "runtime.minutes": 1.0}
    for minutes, missing in ((1.0, {1: "not run", 2: "not run"}), (0.0, {0: "stopped at iteration 4 of 9"})):
        arms = (Arm("plain", "plain", timed | {"runtime.minutes": minutes}),)
        study = dataclasses.replace(STUDY, plans={"quick": Plan({}, arms, "plain", ())})
        if minutes:
            made_up(tmp_path, "plain", 0, [40.0, 20.0, 10.0], study)  # 120 seconds
        assert read(tmp_path, study).arms["plain"].missing == {1: "not run", 2: "not run"} | missing


def test_an_unfinished_run_of_a_growing_study_counts_as_far_as_it_was_evaluated(root: Path) -> None:
    growing = dataclasses.replace(STUDY, growing=True)
    window = read(root, growing).arms["window"]
    assert sorted(window.runs) == [0, 1, 2]
    assert window.runs[2].last == 20.0
    assert window.missing == {2: "stopped at iteration 2 of 4"}
    page = "\n".join(page_lines([read(root, growing)], root))
    assert "sliding | window, seed 2: stopped at iteration 2 of 4." in page
    assert "| arm | t = 1 | t = 2 | t = 4 |" in page
    assert cells(page, "plain")[1][1:] == ["40.0 ± 0.0", "20.0 ± 0.0", "11.0 ± 2.5"]
    assert "t = 1" not in "\n".join(page_lines([read(root)], root))


def test_runs_of_other_lengths_are_compared_where_all_were_and_only_the_furthest_is_shown(root: Path) -> None:
    growing = dataclasses.replace(STUDY, growing=True)
    for name, seed in [("plain", 0), ("plain", 2), ("few", 0), ("few", 1), ("few", 2)]:
        path = arm_path(root, STUDY, "quick", ARMS[name == "few"], seed)
        edit_settings(path, "iterations = 4", "iterations = 2")
        text, count = re.subn(r"\n.*\n$", "\n", (path / "metrics.jsonl").read_text(), count=1)
        (path / "metrics.jsonl").write_text(text)
        assert count == 1
    result = read(root, growing)
    plain, few = result.arms["plain"], result.arms["few"]
    assert plain.missing == dict.fromkeys((0, 2), "stopped at iteration 2 of 4")
    assert (len(plain.ended), len(few.ended)) == (1, 0)
    assert final(plain) == interval_of([11.0])
    assert final(few) == interval_of([40.0, 40.0, 40.0])
    assert common_nodes(plain, few) == 200
    from experiments.reproduction.figures import arm_curve

    assert [t for t, _, _ in arm_curve(plain)] == [1, 2, 4]
    assert "plain 20.0 ± 0.0, few steps 40.0 ± 0.0" in judge(Below("plain", "few", 2), result).words
    row = cells("\n".join(page_lines([result], root)), "few steps")[0]
    assert [row[i] for i in (1, 3, 6)] == ["3", "", "2"]


def test_kept_records_make_the_same_page_without_checkpoints(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kept = tmp_path_factory.mktemp("kept")
    long = made_up(root, "window", 3, [40.0, 20.0, 12.0])
    lines = long.metrics_path.read_text().splitlines(keepends=True)
    plain = {name: value for name, value in json.loads(lines[0]).items() if name != "evaluation"}
    long.metrics_path.write_text(lines[0] + 600 * (json.dumps(plain) + "\n") + "".join(lines[1:]))
    before = list(page_lines([read(root)], root))
    assert len(keep(root, kept)) == 10
    assert list(page_lines([read(kept)], kept)) == before
    assert len((kept / long.path.relative_to(root) / "metrics.jsonl").read_text().splitlines()) == 3


def test_further_seeds_are_expected_of_every_arm(root: Path) -> None:
    made_up(root, "few", 4, [80.0, 40.0, 20.0])
    result = read(root)
    assert result.arms["plain"].missing == {3: "not run", 4: "not run"}
    assert result.arms["few"].missing == {3: "not run"}


# Verdicts


def outcome(root: Path, test: Below | NotAbove | FewerNodes | LevelsOff) -> tuple[str, str]:
    return tuple(judge(test, read(root)))  # type: ignore[return-value]


def test_below_holds_outside_the_intervals_only(root: Path) -> None:
    found, words = outcome(root, Below("plain", "few"))
    assert found == "holds"  # 11 ± 2.5 and 22 ± 5.0
    assert words == "plain 11.0 ± 2.5, few steps 22.0 ± 5.0 mA/g at the end: the intervals do not overlap"
    assert outcome(root, Below("few", "plain"))[0] == "does not hold"
    found, words = outcome(root, Below("plain", "window"))  # 11 and 11.5
    assert found == "not shown"
    seeds = int(re.search(r"about (\d+) seeds of each would separate", words)[1])  # type: ignore[index]
    half = (1 + 1.5 * math.sqrt(2)) / math.sqrt(seeds)  # the two standard deviations
    assert half * 1.96 < 0.5 < half * 2.05
    found, words = outcome(root, Below("window", "plain"))
    assert found == "not shown"  # and not refuted, because the intervals overlap
    assert words.endswith("the means have the opposite order, but the intervals overlap")
    # at iteration 2 there is no scatter at all
    assert outcome(root, Below("plain", "few", 2))[0] == "holds"
    assert outcome(root, Below("plain", "few", 3)) == ("cannot be said", "no evaluations at iteration 3")


def test_one_seed_shows_nothing(tmp_path: Path) -> None:
    made_up(tmp_path, "plain", 0, [40.0, 20.0, 1.0])
    made_up(tmp_path, "few", 0, [40.0, 20.0, 100.0])
    found, words = outcome(tmp_path, Below("plain", "few"))
    assert found == "not shown"
    assert "no interval of one seed" in words
    assert outcome(tmp_path, Below("plain", "window"))[1] == "no finished run of sliding | window"


def test_not_above_takes_a_margin_and_the_whole_interval(root: Path, tmp_path: Path) -> None:
    assert outcome(root, NotAbove("plain", "few"))[0] == "holds"
    assert outcome(root, NotAbove("few", "plain"))[0] == "does not hold"
    found, words = outcome(root, NotAbove("window", "plain"))  # 5 % above, but by two seeds
    assert found == "not shown"
    assert "the difference is 0.5 ± " in words
    for seed in range(3):
        made_up(tmp_path / "close", "plain", seed, [40.0, 20.0, 10.0 + 0.01 * seed])
        made_up(tmp_path / "close", "few", seed, [40.0, 20.0, 10.5 + 0.01 * seed])
    assert outcome(tmp_path / "close", NotAbove("few", "plain"))[0] == "holds"
    assert outcome(tmp_path / "close", NotAbove("few", "plain", margin=0.02))[0] == "does not hold"
    made_up(tmp_path / "one", "plain", 0, [40.0, 20.0, 100.0])
    made_up(tmp_path / "one", "few", 0, [40.0, 20.0, 90.0])
    assert outcome(tmp_path / "one", NotAbove("few", "plain"))[0] == "not shown"


def test_fewer_nodes_compares_where_a_level_is_first_reached(root: Path) -> None:
    """few ends at 22.0 on average; plain is there between iterations 1 and 2, at 40 and 20."""
    found, words = outcome(root, FewerNodes("few", "plain"))
    assert found == "does not hold"
    share = math.log(40 / 22) / math.log(40 / 20)
    factor = NODES[1] * (NODES[2] / NODES[1]) ** share / NODES[4]
    assert (
        f"3 of 3 runs of plain reached that, and took or ended at {factor:,.2g} to {factor:,.2g} times as many" in words
    )
    assert outcome(root, FewerNodes("plain", "few"))[0] == "holds"  # few never comes down to 11
    assert outcome(root, FewerNodes("plain", "few", 2))[0] == "not shown"  # but its runs end before twice the nodes
    shutil.rmtree(arm_path(root, STUDY, "quick", ARMS[1], 1))
    shutil.rmtree(arm_path(root, STUDY, "quick", ARMS[1], 2))
    assert outcome(root, FewerNodes("plain", "few"))[0] == "not shown"  # one seed


def test_levelling_off_asks_for_less_than_the_steps_before(tmp_path: Path) -> None:
    def judged(small: float, middle: float, large: float, steps: int = 1, scatter: float = 0.01) -> str:
        shutil.rmtree(tmp_path / "fig4-left", ignore_errors=True)
        for seed in range(3):
            for name, value in (("few", small), ("window", middle), ("plain", large)):
                made_up(tmp_path, name, seed, [90.0, 90.0, value + scatter * seed])
        return outcome(tmp_path, LevelsOff("few", "window", "plain", steps))[0]

    assert judged(30, 20, 15) == "holds"
    assert judged(30, 20, 21) == "holds"
    assert judged(30, 20, 15, scatter=2) == "not shown"
    assert judged(30, 20, 5) == "does not hold"
    assert judged(20, 30, 29) == "does not hold"
    assert judged(400, 100, 0, steps=3) == "not shown"  # a straight line does not level off
    assert judged(400, 100, 50, steps=3) == "holds"


def test_what_is_about_full_memories_needs_them_full(tmp_path: Path) -> None:
    settings = TINY | {"memory.advantage_capacity": 200, "memory.strategy_capacity": 400}
    arms = (Arm("plain", "plain", settings), Arm("large", "large", TINY))
    study = Study("fig4-left", "4", "A study", "About nothing.", {"quick": Plan({}, arms, "plain", ())})
    for name in ("plain", "large"):
        for seed in range(2):
            made_up(tmp_path, name, seed, [40.0, 20.0, 10.0], study)
    result = read(tmp_path, study)
    assert judge(Filled("plain"), result) == ("holds", "the memories of plain were full from iteration 2 on")
    assert judge(Filled("large"), result) == ("cannot be said", "the memories of large were not full at the end")


def testat_equal_nodes_curves_are_read_between_evaluations(root: Path) -> None:
    result = read(root)
    plain, few = result.arms["plain"], result.arms["few"]
    assert common_nodes(plain, few) == 400
    # halfway between 100 and 200 on a logarithmic scale, and between 40 and 20
    found = at_nodes(plain, round(100 * math.sqrt(2)))
    assert found.mean == pytest.approx(40 / math.sqrt(2), rel=1e-2)
    run = arm_path(root, STUDY, "quick", ARMS[1], 0) / "metrics.jsonl"
    run.write_text(run.read_text().replace('"total_nodes_touched": 400', '"total_nodes_touched": 300'))
    assert common_nodes(*(read(root).arms[name] for name in ("plain", "few"))) == 300
    assert "at 300 nodes" in outcome(root, Below("plain", "few", "equal nodes"))[1]


def test_a_statement_is_as_good_as_its_worst_test(root: Path) -> None:
    both = Statement("Both.", "nowhere", (Below("plain", "few"), Below("plain", "window")))
    assert judge_statement(both, read(root)).outcome == "not shown"


# The page


def cells(page: str, first: str) -> list[list[str]]:
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in page.splitlines() if line.startswith(f"| {first} |")]
    return [[cell.strip() for cell in row] for row in rows]


def test_the_pages_and_figures_are_what_the_kept_records_give(tmp_path: Path) -> None:
    docs = ROOT / "docs"
    for page in docs.glob("reproduction*.md"):
        shutil.copy(page, tmp_path)  # whose sections without runs stay
    written = write_reproduction(KEPT, tmp_path)
    assert {path.name for path in written} >= {"reproduction.md", "reproduction-fhp.md", "reproduction-family.md"}
    for path in written:
        assert path.read_bytes() == (docs / path.relative_to(tmp_path)).read_bytes()


def test_infosets_are_counted_up_to_suits() -> None:
    assert count_infosets(load_rules("kuhn")) == 12
    assert count_infosets(load_rules("leduc")) == 6 * 3 + 30 * 15  # a board of one's own rank or suit, or of neither
    assert count_infosets(load_rules("fhp-mini")) == 543_400


def test_equal_nodes_are_those_of_the_shortest_run_of_single_hands(tmp_path: Path) -> None:
    from experiments.reproduction.figures import study_picture

    arms = (Arm("one", "One"), Arm("rcfr", "RCFR", {"advantage.steps": 7}), Arm("late", "Late", {"advantage.steps": 9}))
    study = Study("family", "", "On Leduc", "", {"quick": Plan({"iterations": 4}, arms, "one", ())})
    runs = [made_up(tmp_path, arm.name, 0, [40.0, 20.0, 10.0], study) for arm in arms]
    lines = [run.metrics_path.read_text().splitlines(keepends=True) for run in runs]
    runs[1].metrics_path.write_text("".join(line.replace("00,", ",") for line in lines[1]))  # 1, 2 and 4 nodes
    runs[2].metrics_path.write_text(lines[2][2].replace("400", "800"))  # first evaluated at 800 nodes
    nodes, equal = at_equal_nodes(read(tmp_path, study))
    assert (nodes, list(equal)) == (400, ["one"])
    assert equal["one"].mean == pytest.approx(10)
    assert "RCFR counts every hand" in study_picture(read(tmp_path, study)).decode()
    runs[0].metrics_path.write_text(lines[0][2])  # at its end only
    assert at_equal_nodes(read(tmp_path, study))[1] == {}


def test_the_table_of_three_minutes_has_the_sizes_that_the_search_found() -> None:
    found: dict[str, dict[float, float]] = {}
    for name, arm in read_study(KEPT, STUDIES["family-search"], "quick").arms.items():
        method, _, factor = name.rpartition("-x")
        found.setdefault(method, {})[float(factor)] = arm.runs[0].last
    lowest = {method: min(ends, key=ends.__getitem__) for method, ends in found.items()}
    assert lowest | {"sd-cfr": lowest["deep-cfr"]} == BEST_SIZES


def test_the_figure_shows_each_arm_with_its_seeds(root: Path) -> None:
    from experiments.reproduction.figures import arm_curve, study_picture

    result = read(root)
    curve = arm_curve(result.arms["few"])
    assert [(iteration, nodes, value.mean) for iteration, nodes, value in curve] == [
        (1, 100.0, 80.0), (2, 200.0, 40.0), (4, 400.0, 22.0),
    ]  # fmt: skip
    few = result.arms["few"]
    apart = {seed: dataclasses.replace(run, curve=run.curve[-1 - seed :][:1]) for seed, run in few.runs.items()}
    (end,) = arm_curve(dataclasses.replace(few, runs=apart))  # as of runs that end with their time
    assert (end[0], end[1], end[2].mean) == (2, pytest.approx(700 / 3), pytest.approx(140 / 3))
    svg = study_picture(result).decode()
    assert "few steps (3 seeds)" in svg
    assert "sliding | window (2 seeds)" in svg


# The studies of the paper


@pytest.mark.parametrize(("name", "budget"), [(name, budget) for name in STUDIES for budget in STUDIES[name].plans])
def test_every_arm_is_a_valid_configuration_that_differs_from_the_others(name: str, budget: str) -> None:
    study = STUDIES[name]  # type: ignore[index]
    plan = study.plans[budget]  # type: ignore[index]
    names = [arm.name for arm in plan.arms]
    assert len(set(names)) == len(names)
    assert plan.reference in names
    for statement in plan.statements:
        for test in statement.tests:
            assert {value for value in vars(test).values() if value in names}
            judge(test, read_study(Path("nowhere"), study, budget))  # type: ignore[arg-type]
    configs = [arm_config(Path("r"), study, budget, arm, 3) for arm in plan.arms]  # type: ignore[arg-type]
    assert len(set(map(repr, configs))) == len(configs)
    assert {config.seed for config in configs} == {3}
    games = {"v1": "fhp-pot", "family": "leduc", "family-leduc": "leduc", "family-fhp": "fhp", "family-kuhn": "kuhn"}
    assert {config.game for config in configs} == {"fhp" if budget == "paper" else games.get(name, "fhp-mini")}
    for arm, config in zip(plan.arms, configs, strict=True):
        assert config.tabular == arm.tabular


def test_evaluations_are_where_statements_look() -> None:
    for study in STUDIES.values():
        for budget, plan in study.plans.items():
            tests = [test for statement in plan.statements for test in statement.tests]
            for test in tests:
                if isinstance(test, Below) and isinstance(test.at, int):
                    for name in (test.better, test.worse):
                        (arm,) = [arm for arm in plan.arms if arm.name == name]
                        config = arm_config(Path("r"), study, budget, arm, 0)
                        assert test.at in (*config.evaluation.at, config.iterations)


def test_arms_can_be_picked() -> None:
    jobs = jobs_of(Path("r"), STUDIES["fig4-left"], "quick", 2, ("base", "fine-tune"))
    names = ["equilibrium-fhp-mini", "base-s0", "fine-tune-s0", "base-s1", "fine-tune-s1"]
    assert [job.path.name for job in jobs] == names


def test_the_arm_that_changes_nothing_is_run_once_for_all_studies() -> None:
    paths = {
        arm_path(Path("r"), study, "quick", arm, 0)
        for study in STUDIES.values()
        if "quick" in study.plans
        for arm in study.plans["quick"].arms
        if arm == base_arm(arm.label, published=arm.published)
    }
    assert paths == {Path("r/base/quick/base-s0")}


# The commands


def test_the_commands_refuse_what_cannot_be(tmp_path: Path) -> None:
    assert (
        problem(experiments("reproduce", "fig4-left", "--seeds", 0)) == "--seeds must be between 1 and 1,000, but is 0."
    )
    assert experiments("reproduce", "fig9").status == 2
    words = problem(experiments("reproduce", "fig4-right", "--arms", "reservoir", "windows"))
    assert words == "'windows' is no arm of fig4-right: reservoir, window are."
    assert problem(experiments("reproduce", "theorem1", "--arms", "mccfr")).startswith(
        "--arms is for the paper's figures"
    )
    report = ("report", "--studies", tmp_path, "--out", tmp_path / "docs")
    assert experiments(*report).status == 0
    assert "No study has been run yet." in (tmp_path / "docs" / "reproduction.md").read_text()
    assert "would be replaced by an empty page" in problem(experiments(*report))


def test_a_tiny_study_is_run_and_reported_by_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = TINY | {"sampling.traversals": 20, "advantage.steps": 4, "advantage.batch_size": 16, "average.steps": 4}
    small |= {"average.batch_size": 16, "memory.advantage_capacity": 500, "memory.strategy_capacity": 500}
    tabular = {"game": "kuhn", "solver": "linear-cfr", "iterations": 4, "runtime.threads": 1}
    arms = (Arm("plain", "plain", small), Arm("tables", "tables", tabular, tabular=True))
    study = Study("fig4-left", "4, left", "A tiny study", "About nothing.", {"quick": Plan({}, arms, "plain", ())})
    for module in ("__main__", "reproduction.page"):
        monkeypatch.setattr(f"experiments.{module}.STUDIES", {"fig4-left": study})
    monkeypatch.setattr("experiments.reproduction.quick_game._ITERATIONS", 3)
    command = ("reproduce", "fig4-left", "--seeds", 2, "--out", tmp_path / "runs", "--json")
    assert experiments(*command).json == {
        "study": "fig4-left", "budget": "quick", "seeds": 2, "jobs": 5, "ran": 5, "there": 0, "finished": True,
    }  # fmt: skip
    assert experiments(*command).json["there"] == 5
    experiments("report", "--studies", tmp_path / "runs", "--out", tmp_path / "docs")
    page = (tmp_path / "docs" / "reproduction.md").read_text()
    result = cells(page, "plain")[0]
    values = [
        json.loads((tmp_path / f"runs/fig4-left/quick/plain-s{seed}/metrics.jsonl").read_text().splitlines()[-1])
        for seed in (0, 1)
    ]
    assert result[2] == str(interval_of([line["evaluation"]["nash_conv"] for line in values]))
    assert "* plain, seed 2: not run." in page
    assert "After 3 iterations of discounted CFR in tables NashConv is " in page
