"""Results of the runs of a study: means with 95 % intervals over seeds.

All data are read from run folders. Runs that are missing, unfinished or of other settings are listed and omitted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from deepcfr.config import RunConfig
from deepcfr.core.errors import ConfigError
from deepcfr.game.presets import load_source
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import read_metrics
from experiments.grid import Job
from experiments.intervals import Interval, interval_of
from experiments.pages import NOT_THERE, STOPPED, asked_seeds, seeds_of, why_missing
from experiments.reproduction.quick_game import equilibrium_job
from experiments.studies import (
    Arm,
    Budget,
    Plan,
    Study,
    arm_config,
    arm_path,
)

WHOLE_BOARDS = "rcfr"  # the arm whose nodes are not comparable to those of single hands


class Point(NamedTuple):
    """An exact evaluation of a run."""

    iteration: int
    nodes: int
    nash_conv: float  # in the game's milli unit
    seconds: float = 0.0  # of the run until then, evaluations included


@dataclass(frozen=True)
class SeedRun:
    """A finished run, or one of a growing study that was evaluated at least once."""

    path: Path
    seconds: float  # exact evaluations included
    curve: tuple[Point, ...]
    full_from: int | None  # the first iteration after which all its memories were full; None if never
    fit_share: float  # share of fits in the time of the iterations that metrics have; 0 for tables

    @property
    def last(self) -> float:
        """NashConv at the last evaluation."""
        return self.curve[-1].nash_conv

    @property
    def since_full(self) -> list[Point]:
        """The evaluations with full memories."""
        return [point for point in self.curve if self.full_from is not None and point.iteration >= self.full_from]


@dataclass(frozen=True)
class ArmResult:
    """An arm's runs by seed, and the reasons why others, or the ends of these in a growing study, are missing."""

    arm: Arm
    runs: Mapping[int, SeedRun]
    missing: Mapping[int, str]

    @property
    def ended(self) -> list[SeedRun]:
        """The runs that are at their ends."""
        return [run for seed, run in self.runs.items() if seed not in self.missing]

    @property
    def furthest(self) -> list[SeedRun]:
        """The runs that are at their ends; without any, those that were evaluated at the latest iteration."""
        latest = max((run.curve[-1].iteration for run in self.runs.values()), default=0)
        return self.ended or [run for run in self.runs.values() if run.curve[-1].iteration == latest]


@dataclass(frozen=True)
class StudyResult:
    """The results of a study at one budget, from its folders."""

    study: Study
    budget: Budget
    plan: Plan
    game: str
    unit: str
    arms: Mapping[str, ArmResult]  # by name, in the plan's order

    @property
    def started(self) -> bool:
        """Whether the study has a run that it does not share with other studies."""
        own = [result for result in self.arms.values() if not result.arm.home or result.arm.home == self.study.name]
        return any(result.runs or any(reason != NOT_THERE for reason in result.missing.values()) for result in own)


# Running and reading


def jobs_of(root: Path, study: Study, budget: Budget, seeds: int, names: Sequence[str] = ()) -> list[Job]:
    """The runs of a study: all arms of seed 0, then all of seed 1 and so on, so that arms can be compared early.

    At the quick budget the first one is the run for the equilibrium of its game. `names` selects arms.
    Raises ConfigError for an unknown arm or budget.
    """
    if budget not in study.plans:
        raise ConfigError(f"{study.name} has no budget '{budget}', only {', '.join(study.plans)}.")
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


def read_study(root: Path, study: Study, budget: Budget) -> StudyResult:
    """Read a study's arms from the folders under `root`, for every seed of any arm, and at least three."""
    plan = study.plans[budget]
    found = (seeds_of(arm_path(root, study, budget, arm, 0).parent, arm.name) for arm in plan.arms)
    seeds = asked_seeds(chain.from_iterable(found))
    arms = {arm.name: _read_arm(root, study, budget, arm, seeds) for arm in plan.arms}
    source = _game_of(study, budget)
    return StudyResult(study, budget, plan, source[0], source[1], arms)


def _game_of(study: Study, budget: Budget) -> tuple[str, str]:
    source = load_source(arm_config(Path(), study, budget, study.plans[budget].arms[0], 0).game)
    return source.name, source.milli_unit


def _read_arm(root: Path, study: Study, budget: Budget, arm: Arm, seeds: range) -> ArmResult:
    runs, missing = {}, {}
    for seed in seeds:
        job = Job(arm_path(root, study, budget, arm, seed), arm_config(root, study, budget, arm, seed))
        if problem := why_missing(job):
            missing[seed] = problem
            if not (study.growing and problem.startswith(STOPPED)):
                continue
        run = RunFolder.open(job.path)
        lines = read_metrics(run.metrics_path)
        points = tuple(
            Point(line["iteration"], line["total_nodes_touched"], line["evaluation"]["nash_conv"], line["seconds"])
            for line in lines
            if "evaluation" in line
        )
        if points:
            full_from = _full_from(run.config, lines)
            runs[seed] = SeedRun(run.path, lines[-1]["seconds"], points, full_from, _fit_share(lines))
    return ArmResult(arm, runs, missing)


def _full_from(config: RunConfig, lines: Sequence[Mapping[str, Any]]) -> int | None:
    if config.solver != "deep-cfr":
        return None
    for line in lines:
        if min(*line["advantage_samples"], line["strategy_samples"]) >= config.memory.capacity:
            return int(line["iteration"])
    return None


def _fit_share(lines: Sequence[Mapping[str, Any]]) -> float:
    fits, rest = (
        sum(line.get(key, 0.0) for line in lines for key in keys)
        for keys in (("fit_seconds",), ("traversal_seconds", "play_seconds"))
    )
    return fits / (fits + rest) if fits else 0.0


# Values


def final(result: ArmResult) -> Interval | None:
    """NashConv at the last evaluation of the furthest runs; None without a run."""
    return interval_of([run.last for run in result.furthest]) if result.runs else None


def mean_when_full(result: ArmResult) -> Interval | None:
    """Each run's mean over its evaluations with full memories; None if the memories of a run were not full."""
    found = [run.since_full for run in result.runs.values()]
    return (
        interval_of([mean(point.nash_conv for point in points) for points in found]) if found and all(found) else None
    )


def at_iteration(result: ArmResult, iteration: int) -> Interval | None:
    """NashConv at an iteration; None if no run was evaluated there."""
    values = [point.nash_conv for run in result.runs.values() for point in run.curve if point.iteration == iteration]
    return interval_of(values) if values else None


def common_nodes(first: ArmResult, second: ArmResult) -> int | None:
    """The most nodes that the furthest runs of both arms have all touched; None if one was not evaluated before."""
    runs = [*first.furthest, *second.furthest]
    if not first.runs or not second.runs:
        return None
    nodes = min(run.curve[-1].nodes for run in runs)
    return None if any(run.curve[0].nodes > nodes for run in runs) else nodes


def at_nodes(result: ArmResult, nodes: int) -> Interval:
    """NashConv of the furthest runs after `nodes` nodes touched, by log-log interpolation between evaluations."""
    values = []
    for run in result.furthest:
        x, y = (np.log([getattr(point, name) for point in run.curve]) for name in ("nodes", "nash_conv"))
        values.append(float(np.exp(np.interp(math.log(nodes), x, y))))
    return interval_of(values)


def at_equal_nodes(result: StudyResult) -> tuple[int, dict[str, Interval]]:
    """The nodes of the shortest run, and NashConv there by arm; no arms if runs were only evaluated at their ends.

    An arm is left out if it was not evaluated before, and so is RCFR, whose nodes are those of whole boards.
    """
    arms = {name: arm for name, arm in result.arms.items() if name != WHOLE_BOARDS and arm.runs}
    nodes = min((run.curve[-1].nodes for arm in arms.values() for run in arm.furthest), default=0)
    early = {name: arm for name, arm in arms.items() if all(run.curve[0].nodes <= nodes for run in arm.furthest)}
    if all(len(run.curve) == 1 for arm in early.values() for run in arm.furthest):
        return nodes, {}
    return nodes, {name: at_nodes(arm, nodes) for name, arm in early.items()}


def nodes_to_reach(run: SeedRun, level: float) -> float | None:
    """The nodes touched when NashConv first is at most `level`, by log-log interpolation; None if it never is."""
    for before, point in zip([None, *run.curve], run.curve, strict=False):
        if point.nash_conv > level:
            continue
        if before is None or before.nash_conv <= point.nash_conv:
            return float(point.nodes)
        share = math.log(before.nash_conv / level) / math.log(before.nash_conv / point.nash_conv)
        return float(before.nodes * (point.nodes / before.nodes) ** share)
    return None
