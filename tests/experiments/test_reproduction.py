"""The report says what the run folders hold: means, intervals and verdicts worked out by hand, and what is missing."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from command_line import edit_settings, experiments
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import environment
from experiments.filled import ROOT
from experiments.intervals import Interval, contrast, interval_of
from experiments.kept_runs import KEPT
from experiments.reproduction.page import write_reproduction
from experiments.reproduction.results import (
    StudyResult,
    at_nodes,
    common_nodes,
    final,
    mean_when_full,
    read_study,
)
from experiments.reproduction.verdicts import judge, judge_statement
from experiments.studies import (
    STUDIES,
    Arm,
    Below,
    FewerNodes,
    LevelsOff,
    MostlyFits,
    Moves,
    NotAbove,
    Plan,
    Published,
    Statement,
    Study,
    arm_config,
    arm_path,
)

# A study of Kuhn poker, whose runs are made up: what arms are called says nothing of what they would find.
TINY = {"game": "kuhn", "iterations": 4, "network.kind": "mlp", "network.width": 4, "evaluation.at": [1, 2]}
ARMS = (
    Arm("plain", "plain", TINY),
    Arm("few", "few steps", TINY | {"advantage.steps": 7}, Published("stated in the text", ratio=1.5)),
    Arm("window", "sliding | window", TINY | {"memory.kind": "window"}, Published("read off the curve", nash_conv=65)),
)
STUDY = Study("fig4-left", "4, left", "A tiny study", "About nothing.", {"quick": Plan({}, ARMS, "plain", ())})
NODES = {1: 100, 2: 200, 4: 400}


def made_up(root: Path, name: str, seed: int, values: Sequence[float], study: Study = STUDY) -> RunFolder:
    """A run folder that says it found `values` at iterations 1, 2 and 4."""
    (arm,) = [arm for arm in study.plans["quick"].arms if arm.name == name]
    run = RunFolder.create(arm_path(root, study, "quick", arm, seed), arm_config(root, study, "quick", arm, seed))
    environment = {"command": "deepcfr made-up", "commit": "0123456789abcdef", "processor": "abacus", "cores": 1}
    (run.path / "environment.json").write_text(json.dumps(environment | {"device": "cpu", "threads": 1}))
    find(run, values)
    return run


def find(run: RunFolder, values: Sequence[float]) -> None:
    """Write into a made-up run what it found."""
    lines = [
        {
            "iteration": iteration,
            "seconds": 30.0 * iteration,
            "total_nodes_touched": nodes,
            "traversal_seconds": 20.0,
            "fit_seconds": value,
            "advantage_samples": [nodes, nodes],
            "strategy_samples": 2 * nodes,
            "evaluation": {"nash_conv": value, "seconds": 0.5},
        }
        for (iteration, nodes), value in zip(NODES.items(), values, strict=False)
    ]
    run.metrics_path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture(autouse=True, scope="module")
def one_environment() -> Iterator[None]:
    """All runs are begun in the same environment, because git takes longer than all else."""
    found = environment("cpu", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deepcfr.run.folder.environment", lambda _device, _threads: found)
        yield


def read(root: Path, study: Study = STUDY) -> StudyResult:
    return read_study(root, study, "quick")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finals: plain 10, 11, 12; few 20, 22, 24; window 10, 13 and 11.5, and one that stopped."""
    path = tmp_path_factory.mktemp("made")
    for seed in range(3):
        made_up(path, "plain", seed, [40.0, 20.0, 10.0 + seed])
        made_up(path, "few", seed, [80.0, 40.0, 20.0 + 2 * seed])
    made_up(path, "window", 0, [40.0, 20.0, 10.0])
    made_up(path, "window", 1, [40.0, 20.0, 13.0])
    made_up(path, "window", 2, [40.0, 20.0])
    made_up(path, "window", 3, [40.0, 20.0, 11.5])
    return path


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy of the runs, which may be changed."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
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
        "plain": [0, 1, 2], "few": [0, 1, 2], "window": [0, 1, 3],
    }  # fmt: skip
    assert result.arms["window"].missing == {2: "stopped at iteration 2 of 4"}
    assert final(result.arms["plain"]) == interval_of([10.0, 11.0, 12.0])
    shutil.rmtree(arm_path(root, STUDY, "quick", ARMS[1], 1))
    assert read(root).arms["few"].missing[1] == "not run"


def test_a_run_of_other_settings_is_left_out_by_name(root: Path) -> None:
    run = arm_path(root, STUDY, "quick", ARMS[0], 1)
    path = run / "config.toml"
    edit_settings(run, "width = 4", "width = 5")
    assert read(root).arms["plain"].missing[1] == "of other settings: network.width is 5 there and 4 here"
    path.write_text(re.sub(r"(?m)^at = .*", "at = [1, 3]", path.read_text().replace("width = 5", "width = 4")))
    assert 1 not in read(root).arms["plain"].missing  # evaluations change no run
    path.write_text(path.read_text().replace("keep_networks = 0", "keep_networks = 2"))
    assert "keep_networks = 2" in path.read_text()
    assert 1 not in read(root).arms["plain"].missing  # nor do snapshots
    path.write_text(
        re.sub("(?m)^minutes = .*", "minutes = 1.0", path.read_text().replace("iterations = 4", "iterations = 9"))
    )
    assert "iterations is 9 there and 4 here" in read(root).arms["plain"].missing[1]
    path.write_text("game = [")
    assert "cannot be read" in read(root).arms["plain"].missing[1]


# Verdicts


def outcome(root: Path, test: Below | NotAbove | FewerNodes | LevelsOff) -> tuple[str, str]:
    return tuple(judge(test, read(root)))  # type: ignore[return-value]


def test_below_holds_outside_the_intervals_only(root: Path) -> None:
    found, words = outcome(root, Below("plain", "few"))
    assert found == "holds"  # 11 ± 2.5 and 22 ± 5.0
    assert words == "plain 11.0 ± 2.5, few steps 22.0 ± 5.0 mA/g at the end"
    assert outcome(root, Below("few", "plain"))[0] == "does not hold"
    found, words = outcome(root, Below("plain", "window"))  # 11 and 11.5
    assert found == "not shown"
    seeds = int(re.search(r"about (\d+) seeds of each would separate", words)[1])  # type: ignore[index]
    half = (1 + 1.5) / math.sqrt(seeds)  # the two standard deviations
    assert half * 1.96 < 0.5 < half * 2.05
    found, words = outcome(root, Below("window", "plain"))
    assert found == "not shown"  # and not refuted, because the intervals overlap
    assert words.endswith("opposite order, but the intervals overlap")
    # at iteration 2 there is no scatter at all
    assert outcome(root, Below("plain", "few", 2))[0] == "holds"
    assert outcome(root, Below("plain", "few", 3)) == ("cannot be said", "no evaluations at iteration 3")


def test_one_seed_shows_nothing(tmp_path: Path) -> None:
    made_up(tmp_path, "plain", 0, [40.0, 20.0, 1.0])
    made_up(tmp_path, "few", 0, [40.0, 20.0, 100.0])
    found, words = outcome(tmp_path, Below("plain", "few"))
    assert found == "not shown"
    assert "fewer than 3 seeds show nothing" in words
    assert outcome(tmp_path, Below("plain", "window"))[1] == "no finished run of sliding | window"


def test_pairs_are_judged_seed_by_seed(tmp_path: Path) -> None:
    for seed, more in enumerate((0.0, 30.0, 10.0)):  # the arms overlap, and one is lower for every seed
        made_up(tmp_path, "plain", seed, [90.0, 90.0, 50.0 + more])
        made_up(tmp_path, "few", seed, [90.0, 90.0, 52.0 + more + 0.1 * seed])
    assert outcome(tmp_path, Below("plain", "few"))[0] == "not shown"
    found, words = outcome(tmp_path, Below("plain", "few", paired=True))
    assert (found, words) == ("holds", "plain less few steps is -2.1 ± 0.2 mA/g at the end, seed by seed")
    assert outcome(tmp_path, Below("few", "plain", paired=True))[0] == "does not hold"
    shutil.rmtree(tmp_path / "fig4-left")
    made_up(tmp_path, "plain", 0, [90.0, 90.0, 50.0])
    assert outcome(tmp_path, Below("plain", "few", paired=True))[0] == "cannot be said"
    made_up(tmp_path, "few", 0, [90.0, 90.0, 60.0])
    assert outcome(tmp_path, Below("plain", "few", paired=True))[0] == "not shown"


def test_not_above_takes_a_margin_and_the_whole_interval(root: Path, tmp_path: Path) -> None:
    assert outcome(root, NotAbove("plain", "few"))[0] == "holds"
    assert outcome(root, NotAbove("few", "plain"))[0] == "does not hold"
    found, words = outcome(root, NotAbove("window", "plain"))  # 5 % above, and they scatter
    assert found == "not shown"
    assert "difference 0.5 ± " in words
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
    found, words = outcome(root, FewerNodes("plain", "few", at=1))  # 40, where few is at iteration 2
    assert found == "holds"
    assert f"plain has 40.0 mA/g after {NODES[1]:,} nodes; 3 of 3 runs" in words
    assert f" {NODES[2] / NODES[1]:,.2g} to {NODES[2] / NODES[1]:,.2g} times" in words
    assert outcome(root, FewerNodes("few", "plain", at=2))[0] == "does not hold"
    assert outcome(root, FewerNodes("few", "plain", at=3)) == ("cannot be said", "no evaluations at iteration 3")
    shutil.rmtree(arm_path(root, STUDY, "quick", ARMS[1], 1))
    shutil.rmtree(arm_path(root, STUDY, "quick", ARMS[1], 2))
    assert outcome(root, FewerNodes("plain", "few"))[0] == "not shown"  # one seed


def test_levelling_off_asks_for_less_than_the_steps_before(root: Path) -> None:
    def judged(small: float, middle: float, large: float, steps: int = 1, scatter: float = 0.01) -> str:
        shutil.rmtree(arm_path(root, STUDY, "quick", ARMS[2], 3), ignore_errors=True)
        for arm, value in zip(ARMS, (large, small, middle), strict=True):
            for seed in range(3):
                run = RunFolder.open(arm_path(root, STUDY, "quick", arm, seed))
                find(run, [90.0, 90.0, value + scatter * seed])
        return outcome(root, LevelsOff("few", "window", "plain", steps))[0]

    assert judged(30, 20, 15) == "holds"
    assert judged(30, 20, 21) == "holds"
    assert judged(30, 20, 15, scatter=2) == "not shown"
    assert judged(30, 20, 5) == "does not hold"
    assert judged(20, 30, 29) == "does not hold"
    assert judged(400, 100, 0, steps=3) == "not shown"  # a straight line does not level off
    assert judged(400, 100, 50, steps=3) == "holds"


def test_what_is_about_full_memories_needs_them_full(tmp_path: Path) -> None:
    settings = TINY | {"memory.capacity": 200}
    arms = (Arm("plain", "plain", settings), Arm("large", "large", TINY))
    study = Study("fig4-left", "4", "A study", "About nothing.", {"quick": Plan({}, arms, "plain", ())})
    for name in ("plain", "large"):
        for seed in range(3):
            made_up(tmp_path, name, seed, [40.0, 20.0, 10.0 + seed], study)
    result = read(tmp_path, study)
    change = "plain changes by -9.0 ± 2.5 mA/g from iteration 2 to the end, seed by seed"  # full from there on
    assert judge(Moves("plain"), result) == ("holds", change)
    assert judge(Moves("plain", rises=True), result) == ("does not hold", change)
    assert judge(Moves("large"), result)[0] == "cannot be said"
    mean = mean_when_full(result.arms["plain"])
    assert mean is not None
    assert (mean.mean, mean.count) == (15.5, 3)
    assert judge(Below("plain", "plain", "full memories"), result)[0] == "not shown"
    assert judge(Below("plain", "large", "full memories"), result)[0] == "cannot be said"
    shutil.rmtree(arm_path(tmp_path, study, "quick", arms[0], 2))
    assert judge(Moves("plain"), read(tmp_path, study))[0] == "not shown"  # two seeds
    made_up(tmp_path, "plain", 2, [40.0, 20.0], study)  # stopped: a run that has not got there is none to leave out
    growing = replace(study, growing=True)
    assert judge(Moves("plain"), read(tmp_path, growing))[0] == "cannot be said"


def test_fits_take_most_of_the_time_if_they_do_in_every_run(root: Path) -> None:
    words = "fits take 54% to 55% of the time of plain"  # 70 to 72 of 130 to 132 seconds
    assert judge(MostlyFits("plain"), read(root)) == ("holds", words)
    for seed, outcome in enumerate(("not shown", "not shown", "does not hold")):
        find(RunFolder.open(arm_path(root, STUDY, "quick", ARMS[0], seed)), [10.0, 10.0, 10.0])
        assert judge(MostlyFits("plain"), read(root))[0] == outcome
    shutil.rmtree(arm_path(root, STUDY, "quick", ARMS[1], 2))
    assert judge(MostlyFits("few"), read(root))[0] == "not shown"  # two seeds, 70 % and more


def test_at_equal_nodes_curves_are_read_between_evaluations(root: Path) -> None:
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
    wrong = Statement("Wrong.", "nowhere", (Below("few", "plain"),))
    assert judge_statement(wrong, read(root)).outcome == "does not hold"
    assert judge_statement(replace(wrong, otherwise="Too small."), read(root)).outcome == "not shown"


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


# The studies of the paper


def test_a_tiny_study_is_run_and_reported_by_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = TINY | {"sampling.traversals": 20, "advantage.steps": 4, "advantage.batch_size": 16, "average.steps": 4}
    small |= {"average.batch_size": 16, "memory.capacity": 500}
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
    assert "* seed 2 not run: plain; tables." in page
    assert "After 3 iterations of discounted CFR in tables NashConv is " in page


@pytest.mark.parametrize("name", STUDIES)
def test_every_arm_is_a_valid_configuration_that_differs_from_the_others(name: str) -> None:
    study = STUDIES[name]  # type: ignore[index]
    for budget, plan in study.plans.items():
        names = [arm.name for arm in plan.arms]
        assert len(set(names)) == len(names)
        assert plan.reference in names
        for statement in plan.statements:
            for test in statement.tests:
                assert {value for value in vars(test).values() if value in names}
                judge(test, read_study(Path("nowhere"), study, budget))
        configs = [arm_config(Path("r"), study, budget, arm, 3) for arm in plan.arms]
        assert len(set(map(repr, configs))) == len(configs)
        assert {config.seed for config in configs} == {3}
