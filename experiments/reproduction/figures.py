"""The figures of the reproduction report: curves of a study's arms with intervals over seeds, and regret with its bound.

They show iterations and nodes touched, but no times, so the same runs give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deepcfr.run.chart import Chart, Curve, beside
from experiments.grid import flat_settings
from experiments.intervals import Interval, interval_of
from experiments.reproduction.results import WHOLE_BOARDS, ArmResult, StudyResult, final
from experiments.studies import arm_config
from experiments.theorem1.page import TheoremResult

PUBLISHED_GAME = "fhp"  # the game of the paper's curves
Evaluations = list[tuple[int, float, Interval]]  # iteration, mean nodes, NashConv


def arm_curve(result: ArmResult) -> Evaluations:
    """The evaluations that all of an arm's furthest runs have, oldest first; of runs without any in common their ends."""
    runs = result.furthest
    if not runs:
        return []
    shared = sorted(set.intersection(*({point.iteration for point in run.curve} for run in runs)))
    groups = [[point for run in runs for point in run.curve if point.iteration == iteration] for iteration in shared]
    curve = []
    for points in groups or [[run.curve[-1] for run in runs]]:
        iteration, nodes = np.mean([(point.iteration, point.nodes) for point in points], axis=0).tolist()
        curve.append((round(iteration), nodes, interval_of([point.nash_conv for point in points])))
    return curve


def study_picture(result: StudyResult) -> bytes:
    """A study's curves against iterations, and against nodes touched or the swept setting, with 95 % intervals over seeds.

    Points read off the paper's curves are hollow; they are drawn only for the paper's game.
    """
    shown = [(arm, curve) for arm in result.arms.values() if (curve := arm_curve(arm))]
    by_iteration, by_nodes = [], []
    for look, (arm, curve) in enumerate(shown):
        label = f"{arm.arm.label} ({_seeds(len(arm.furthest))})"
        by_iteration.append(_line(label, look, [(float(t), value) for t, _, value in curve]))
        by_nodes.append(_line(label, look, [(nodes, value) for _, nodes, value in curve]))
        curves = arm.arm.published.curves if arm.arm.published and result.game == PUBLISHED_GAME else ()
        for number, read in enumerate(curves, start=len(shown)):
            nodes = sum(read.nodes) / 2
            by_iteration.append(Curve(read.label, "", number, read.points, hollow=True))
            if nodes:
                by_nodes.append(
                    Curve(read.label, "", number, tuple((t * nodes, y) for t, y in read.points), hollow=True)
                )
    second = _sweep(result) if result.study.swept else _chart(_nodes_label(result), result.unit, by_nodes)
    first = _chart("CFR iterations, or batches of episodes", result.unit, by_iteration)
    figure = f"{result.study.figure}: " if result.study.figure else ""
    return beside(
        f"{'Figure ' if figure[:1].isdigit() else ''}{figure}{result.study.title}, on {result.game}", (first, second)
    )


def _nodes_label(result: StudyResult) -> str:
    full_width = [arm for arm in result.arms.values() if arm.arm.tabular and arm.arm.changes.get("solver") != "mccfr"]
    if any(arm.arm.name == WHOLE_BOARDS and arm.runs for arm in result.arms.values()):
        return "nodes touched (RCFR counts every hand on a board)"
    return "nodes touched" + (" (full-width solvers count every hand on every board)" if full_width else "")


def _sweep(result: StudyResult) -> Chart:
    """The last NashConv over the swept setting, with an interval where there are several seeds."""
    points = []
    for arm in result.arms.values():
        value = final(arm)
        if value is not None:
            settings = flat_settings(arm_config(Path(), result.study, result.budget, arm.arm, 0))
            points.append((float(settings[result.study.swept]), value))
    points.sort(key=lambda point: point[0])
    return _chart(f"{result.study.swept}, at the last iteration", result.unit, [_line("", 0, points)])


def theorem_picture(result: TheoremResult) -> bytes:
    """Measured average regret and its bound, if known, of the player whose regret is larger."""
    curves = []
    for look, arm in enumerate(result.arms):
        label = f"{arm.label}: measured ({_seeds(arm.seeds)})"
        curves.append(_line(label, look, [(float(point.iteration), point.regret) for point in arm.points]))
        bound = tuple((float(point.iteration), point.bound) for point in arm.points if point.bound is not None)
        if bound:
            curves.append(Curve(f"{arm.label}: bound", "", look, bound, hollow=True))
    chart = Chart("", "iterations T", f"average regret R / T, {result.unit}", tuple(curves), True, True, dots=True)
    return beside(f"Average regret on {result.game} and the bound of Theorem 1", (chart,))


def _chart(x: str, unit: str, curves: Sequence[Curve]) -> Chart:
    return Chart("", x, f"exact NashConv, {unit}", tuple(curves), log_x=True, log_y=True, dots=True)


def _line(label: str, look: int, points: Sequence[tuple[float, Interval]]) -> Curve:
    """A line with its band; a single seed has no band."""
    several = all(math.isfinite(value.half) for _, value in points)
    band = tuple(_positive(v.mean - v.half, v.mean + v.half, v.mean) for _, v in points) if several else ()
    return Curve(label, "", look, tuple((x, value.mean) for x, value in points), band)


def _positive(low: float, high: float, value: float) -> tuple[float, float]:
    """An interval for a logarithmic axis: its lower end is at least a hundredth of the value."""
    return (max(low, value / 100), high) if math.isfinite(high) else (value, value)


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count != 1 else ''}"
