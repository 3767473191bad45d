"""What the runs of a study found: means with 95 % intervals over seeds.

Everything is read from run folders; nothing is measured or made here. Runs that are missing, unfinished or of other
settings are named and left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deepcfr.config import AnyConfig, RunConfig
from deepcfr.errors import ConfigError, DeepCFRError
from deepcfr.evaluation.intervals import Interval, interval_of
from deepcfr.games.presets import load_source
from deepcfr.report.methods import Method
from deepcfr.report.reproduction.quick_game import equilibrium_job
from deepcfr.report.studies import (
    LEAST_SEEDS,
    Arm,
    Budget,
    Plan,
    Study,
    arm_config,
    arm_path,
)
from deepcfr.report.table import Row, row
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics
from deepcfr.runs.study import Job, difference, is_complete

Warn = Callable[[str], None]
_NOT_THERE = "not there"


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
    full_from: int | None  # the first iteration after which all its memories were full; None if one never was

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
        return any(result.runs or any(reason != _NOT_THERE for reason in result.missing.values()) for result in own)


# Running and reading


def jobs_of(root: Path, study: Study, budget: Budget, seeds: int, names: Sequence[str] = ()) -> list[Job]:
    """The runs of a study: all arms of seed 0, then all of seed 1 and so on, so that arms can be compared early.

    Before them, at the quick budget, the one that gives the equilibrium of its game. `names` picks arms.
    Raises ConfigError for a name that is no arm's.
    """
    arms = study.plans[budget].arms
    known = {arm.name: arm for arm in arms}
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(f"'{unknown[0]}' is no arm of {study.name}: {', '.join(known)} are.")
    return [equilibrium_job(root)] * (budget == "quick") + [
        Job(arm_path(root, study, budget, arm, seed), arm_config(root, study, budget, arm, seed), arm.buckets)
        for seed in range(seeds)
        for arm in arms
        if not names or arm.name in names
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
            missing[seed] = _NOT_THERE
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
            about = row(run, Method(arm.label, "deep", 0, ""), warn)
            runs[seed] = SeedRun(about, tuple(points), _full_from(run.config, lines))
    return ArmResult(arm, runs, missing)


def _full_from(config: AnyConfig, lines: Sequence[Mapping[str, Any]]) -> int | None:
    if not isinstance(config, RunConfig) or config.solver != "deep-cfr":
        return None
    most = config.memory
    for line in lines:
        if (
            min(line["advantage_samples"]) >= most.advantage_capacity
            and line["strategy_samples"] >= most.strategy_capacity
        ):
            return int(line["iteration"])
    return None


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
