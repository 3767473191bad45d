"""Convergence curves of runs, drawn from their metrics files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deepcfr.errors import ConfigError
from deepcfr.files import write_atomically
from deepcfr.report.chart import Chart, Curve
from deepcfr.report.figure import beside
from deepcfr.report.methods import FAMILIES, Method, methods_of
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics

Point = tuple[float, float, float]

TIME_AXIS = "wall time in seconds, exact evaluations included"
_INCOMPARABLE = "not comparable: sampled histories and public-chance or full-width passes count different things"


@dataclass(frozen=True)
class Line:
    """One run on a chart; runs with the same label share colour, dashes and an entry of the legend."""

    label: str
    method: Method
    points: list[Point]


def curve(run: RunFolder) -> list[Point]:
    """The exact evaluations of a run, oldest first: (seconds, nodes touched, NashConv in the milli unit)."""
    return [
        (line["seconds"], line["total_nodes_touched"], line["evaluation"]["nash_conv"])
        for line in read_metrics(run.metrics_path)
        if "evaluation" in line
    ]


def draw_curves(runs: list[RunFolder], path: Path) -> None:
    """Draw exact NashConv against nodes touched and against wall time, one line a run, as SVG.

    Raises ConfigError if a run has no exact evaluation above 0, or if the runs are of several games.
    """
    empty = [
        f"'{run.path}' has no exact evaluation above 0 to draw."
        for run in runs
        if not any(y > 0 for *_, y in curve(run))
    ]
    problems = empty + several_games(runs)
    if problems:
        raise ConfigError(problems)
    lines = [
        Line(f"{method.label}: {run.path.name}", method, curve(run))
        for run, method in zip(runs, methods_of(runs), strict=True)
    ]
    write_atomically(path, picture(lines, runs[0]))


def several_games(runs: Sequence[RunFolder]) -> list[str]:
    """A sentence if the runs are not of one game."""
    games = {run.source for run in runs}
    names = sorted({game.name for game in games})
    if len(names) > 1:
        return [f"One chart shows one game, but the runs are of {', '.join(names)}."]
    if len(games) > 1:
        return [f"One chart shows one game, but the rules of {names[0]} are not the same in all runs."]
    return []


def picture(lines: Sequence[Line], run: RunFolder) -> bytes:
    """The chart of `lines` as SVG; `run` is one of them, for the game and its unit. The same lines give the same bytes."""
    labels = list(
        dict.fromkeys(line.label for line in sorted(lines, key=lambda line: FAMILIES.index(line.method.family)))
    )
    unit = f"exact NashConv, {run.source.milli_unit}"
    charts = (
        Chart(
            "", "nodes touched", unit, _curves(lines, labels, 1), log_x=True, log_y=True, dots=True, note=_note(lines)
        ),
        Chart("", TIME_AXIS, unit, _curves(lines, labels, 0), log_x=True, log_y=True, dots=True),
    )
    return beside(f"Exact NashConv on {run.source.name}", charts)


def _curves(lines: Sequence[Line], labels: Sequence[str], across: int) -> tuple[Curve, ...]:
    counts = {label: sum(line.label == label for line in lines) for label in labels}
    return tuple(
        Curve(
            line.label + (f" ({counts[line.label]} runs)" if counts[line.label] > 1 else ""),
            "",
            labels.index(line.label),
            tuple((point[across], point[2]) for point in line.points),
        )
        for line in lines
    )


def _note(lines: Sequence[Line]) -> str:
    counted = {line.method.nodes for line in lines}
    return _INCOMPARABLE if len(counted) > 1 else ""
