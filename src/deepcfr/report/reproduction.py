"""What the runs of a study say: means with 95 % intervals over seeds, and whether each statement of the paper holds.

Everything is read from run folders; nothing is measured or made here. Runs that are missing, unfinished or of other
settings are named and left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from deepcfr.errors import DeepCFRError
from deepcfr.evaluation.intervals import student_t_95
from deepcfr.games.presets import load_source
from deepcfr.report.methods import Method
from deepcfr.report.studies import (
    LEAST_SEEDS,
    Arm,
    Below,
    Budget,
    LevelsOff,
    NotAbove,
    Plan,
    Statement,
    Study,
    Test,
    arm_config,
    arm_path,
)
from deepcfr.report.table import Row, row
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics
from deepcfr.runs.study import Job, difference, is_complete

Warn = Callable[[str], None]
Outcome = Literal["holds", "not shown", "does not hold", "cannot be said"]
_WORST_FIRST: tuple[Outcome, ...] = ("cannot be said", "does not hold", "not shown", "holds")


class Point(NamedTuple):
    """An exact evaluation of a run."""

    iteration: int
    nodes: int
    nash_conv: float  # in the game's milli unit


@dataclass(frozen=True)
class SeedRun:
    """A finished run."""

    row: Row
    curve: tuple[Point, ...]

    @property
    def last(self) -> float:
        """NashConv at the end."""
        return self.curve[-1].nash_conv


@dataclass(frozen=True)
class ArmResult:
    """An arm's finished runs by seed, and why the others are not there."""

    arm: Arm
    runs: Mapping[int, SeedRun]
    missing: Mapping[int, str]


@dataclass(frozen=True)
class StudyResult:
    """A study at one budget as its folders have it."""

    study: Study
    budget: Budget
    plan: Plan
    game: str
    unit: str
    arms: Mapping[str, ArmResult]  # by name, in the plan's order

    @property
    def started(self) -> bool:
        """Whether any run is there that this study does not share with others."""
        own = [result for result in self.arms.values() if not result.arm.home or result.arm.home == self.study.name]
        return any(result.runs or any("stopped" in reason for reason in result.missing.values()) for result in own)


# Statistics


@dataclass(frozen=True)
class Interval:
    """A mean and half the width of its 95 % interval, infinite for a single number."""

    mean: float
    half: float
    count: int

    def meets(self, other: Interval) -> bool:
        """Whether the two intervals have a number in common."""
        return abs(self.mean - other.mean) <= self.half + other.half

    def __str__(self) -> str:
        return f"{self.mean:,.1f}" + (f" ± {self.half:,.1f}" if math.isfinite(self.half) else " (one seed)")


def interval_of(values: Sequence[float]) -> Interval:
    """The mean of independent numbers with Student's 95 % interval."""
    count = len(values)
    if count < 2:
        return Interval(values[0], math.inf, count)
    return Interval(
        float(np.mean(values)), student_t_95(count - 1) * float(np.std(values, ddof=1)) / math.sqrt(count), count
    )


# Running and reading


def jobs_of(root: Path, study: Study, budget: Budget, seeds: int) -> list[Job]:
    """The runs of a study: all arms of seed 0, then all of seed 1 and so on, so that arms can be compared early."""
    return [
        Job(arm_path(root, study, budget, arm, seed), arm_config(root, study, budget, arm, seed), arm.buckets)
        for seed in range(seeds)
        for arm in study.plans[budget].arms
    ]


def read_study(root: Path, study: Study, budget: Budget, warn: Warn) -> StudyResult:
    """A study's arms as the folders under `root` have them, for every seed that any of them has and three at least."""
    plan = study.plans[budget]
    seeds = range(max(LEAST_SEEDS, 1 + max((_newest_seed(root, study, budget, arm) for arm in plan.arms), default=0)))
    arms = {arm.name: _read_arm(root, study, budget, arm, seeds, warn) for arm in plan.arms}
    source = _game_of(study, budget)
    return StudyResult(study, budget, plan, source[0], source[1], arms)


def _game_of(study: Study, budget: Budget) -> tuple[str, str]:
    source = load_source(arm_config(Path(), study, budget, study.plans[budget].arms[0], 0).game)
    return source.name, source.milli_unit


def _newest_seed(root: Path, study: Study, budget: Budget, arm: Arm) -> int:
    found = arm_path(root, study, budget, arm, 0).parent.glob(f"{arm.name}-s*/config.toml")
    numbers = [path.parent.name.removeprefix(f"{arm.name}-s") for path in found]
    return max((int(number) for number in numbers if number.isdigit()), default=0)


def _read_arm(root: Path, study: Study, budget: Budget, arm: Arm, seeds: range, warn: Warn) -> ArmResult:
    runs, missing = {}, {}
    for seed in seeds:
        path = arm_path(root, study, budget, arm, seed)
        if not (path / "config.toml").is_file():
            missing[seed] = "not there"
            continue
        try:
            run = RunFolder.open(path)
            problem = difference(run.config, arm_config(root, study, budget, arm, seed))
        except DeepCFRError as error:
            missing[seed] = " ".join(error.problems)
            continue
        lines = read_metrics(run.metrics_path)
        if problem:
            missing[seed] = f"of other settings: {problem}"
        elif not is_complete(run):
            done = lines[-1]["iteration"] if lines else 0
            missing[seed] = f"stopped at iteration {done:,} of {run.config.iterations:,}"
        else:
            points = (
                Point(line["iteration"], line["total_nodes_touched"], line["evaluation"]["nash_conv"])
                for line in lines
                if "evaluation" in line
            )
            runs[seed] = SeedRun(row(run, Method(arm.label, "deep", 0, ""), warn), tuple(points))
    return ArmResult(arm, runs, missing)


# Values


def final(result: ArmResult) -> Interval | None:
    """NashConv at the end; None without a finished run."""
    return interval_of([run.last for run in result.runs.values()]) if result.runs else None


def at_iteration(result: ArmResult, iteration: int) -> Interval | None:
    """NashConv at an iteration; None without runs that were evaluated there."""
    values = [point.nash_conv for run in result.runs.values() for point in run.curve if point.iteration == iteration]
    return interval_of(values) if values else None


def common_nodes(first: ArmResult, second: ArmResult) -> int | None:
    """The most nodes that all runs of both arms have touched; None if a run of either was not evaluated by then."""
    runs = [*first.runs.values(), *second.runs.values()]
    if not first.runs or not second.runs:
        return None
    nodes = min(run.curve[-1].nodes for run in runs)
    return None if any(run.curve[0].nodes > nodes for run in runs) else nodes


def at_nodes(result: ArmResult, nodes: int) -> Interval:
    """NashConv after touching `nodes`, between evaluations by a straight line in logarithms of both."""
    values = []
    for run in result.runs.values():
        x, y = (np.log([getattr(point, name) for point in run.curve]) for name in ("nodes", "nash_conv"))
        values.append(float(np.exp(np.interp(math.log(nodes), x, y))))
    return interval_of(values)


# Verdicts


class Judgement(NamedTuple):
    """What is found of a test or a statement, in words."""

    outcome: Outcome
    words: str


def judge_statement(statement: Statement, result: StudyResult) -> Judgement:
    """A statement holds if all its tests do; its outcome is the worst of theirs."""
    found = [judge(test, result) for test in statement.tests]
    worst = min((one.outcome for one in found), key=_WORST_FIRST.index)
    return Judgement(worst, "; ".join(one.words for one in found))


def judge(test: Test, result: StudyResult) -> Judgement:
    """What the runs say of one test."""
    if isinstance(test, Below):
        return _judge_below(test, result)
    if isinstance(test, NotAbove):
        return _judge_not_above(test, result)
    return _judge_levels_off(test, result)


def arms_of(test: Test) -> tuple[str, ...]:
    """The names of the arms that a test looks at."""
    if isinstance(test, Below):
        return test.better, test.worse
    if isinstance(test, NotAbove):
        return test.arm, test.than
    return test.small, test.middle, test.large


def _judge_below(test: Below, result: StudyResult) -> Judgement:
    better, worse = result.arms[test.better], result.arms[test.worse]
    pair: tuple[Interval | None, Interval | None] = None, None
    if test.at == "equal nodes":
        nodes = common_nodes(better, worse)
        where = "at equal nodes" if nodes is None else f"at {nodes:,} nodes"
        if nodes is not None:
            pair = at_nodes(better, nodes), at_nodes(worse, nodes)
    elif test.at == "the end":
        pair, where = (final(better), final(worse)), "at the end"
    else:
        pair, where = (at_iteration(better, test.at), at_iteration(worse, test.at)), f"at iteration {test.at:,}"
    if pair[0] is None or pair[1] is None:
        return _unsaid(test, result, where)
    return _compare(pair[0], pair[1], (better.arm.label, worse.arm.label), f"{result.unit} {where}")


def _compare(low: Interval, high: Interval, labels: tuple[str, str], where: str) -> Judgement:
    """Whether `low` is below `high` outside their intervals."""
    figures = f"{labels[0]} {low}, {labels[1]} {high} {where}"
    if low.mean >= high.mean:
        how = "the intervals meet" if low.meets(high) else "the intervals do not meet"
        return Judgement("does not hold", f"{figures}: the means are the other way round, {how}")
    if min(low.count, high.count) < 2:
        return Judgement("not shown", f"{figures}: the order is as stated, but there is no interval of one seed")
    if low.meets(high):
        return Judgement("not shown", f"{figures}: the order is as stated, but the intervals meet")
    return Judgement("holds", f"{figures}: the intervals do not meet")


def _judge_not_above(test: NotAbove, result: StudyResult) -> Judgement:
    arm, than = result.arms[test.arm], result.arms[test.than]
    own, other = final(arm), final(than)
    if own is None or other is None:
        return _unsaid(test, result, "at the end")
    figures = f"{arm.arm.label} {own}, {than.arm.label} {other} {result.unit} at the end"
    if own.mean <= other.mean:
        return Judgement("holds", f"{figures}: it is not above")
    if not own.meets(other):
        return Judgement("does not hold", f"{figures}: it is above, and the intervals do not meet")
    more = 100 * (own.mean / other.mean - 1)
    if own.mean > (1 + test.margin) * other.mean:
        return Judgement("not shown", f"{figures}: the intervals meet, but it is {more:.0f} % above")
    if min(own.count, other.count) < 2:
        return Judgement("not shown", f"{figures}: it is {more:.0f} % above, and there is no interval of one seed")
    return Judgement("holds", f"{figures}: the intervals meet, and it is {more:.0f} % above")


def _judge_levels_off(test: LevelsOff, result: StudyResult) -> Judgement:
    small, middle, large = (final(result.arms[name]) for name in arms_of(test))
    if small is None or middle is None or large is None:
        return _unsaid(test, result, "at the end")
    labels = result.arms[test.middle].arm.label, result.arms[test.small].arm.label
    first = _compare(middle, small, labels, f"{result.unit} at the end")
    before, after = small.mean - middle.mean, middle.mean - large.mean
    words = (
        f"{first.words}; from {labels[1]} to {labels[0]} it gains {before:,.1f}, from there to "
        f"{result.arms[test.large].arm.label} {after:,.1f}"
    )
    if first.outcome == "holds" and after >= before:
        return Judgement("does not hold", f"{words}: it does not level off")
    return Judgement(first.outcome, words)


def _unsaid(test: Test, result: StudyResult, where: str) -> Judgement:
    empty = [result.arms[name].arm.label for name in arms_of(test) if not result.arms[name].runs]
    what = f"no finished run of {', '.join(empty)}" if empty else f"no evaluations {where}"
    return Judgement("cannot be said", what)


def arm_verdict(name: str, result: StudyResult) -> str:
    """An arm against the reference, in words, and what it does to the statements that it decides."""
    own, reference = final(result.arms[name]), final(result.arms[result.plan.reference])
    parts = []
    if name == result.plan.reference:
        parts.append("the reference")
    elif own is None or reference is None:
        parts.append("cannot be compared: runs are missing")
    elif own.meets(reference):
        parts.append("no difference from the reference shown: the intervals meet")
    else:
        parts.append(f"{'above' if own.mean > reference.mean else 'below'} the reference, the intervals do not meet")
    for number, statement in enumerate(result.plan.statements, start=1):
        if name != result.plan.reference and any(name in arms_of(test) for test in statement.tests):
            parts.append(f"statement {number} {judge_statement(statement, result).outcome}")
    return "; ".join(parts)
