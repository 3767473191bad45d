"""Convergence curves of runs, drawn from their metrics files."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deepcfr.errors import ConfigError
from deepcfr.files import write_atomically
from deepcfr.report.methods import FAMILIES, Method, methods_of
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics

Point = tuple[float, float, float]

TIME_AXIS = "wall time in seconds, exact evaluations included"
_COLOURS = {"deep": "Blues", "buckets": "Oranges", "lossless": "Greens", "full width": "Greys"}  # light to dark
_LIGHTEST, _DARKEST = 0.5, 0.95  # of a family's shades; lighter ones are lost on white
_HALF_WIDTH = 75  # letters of a label that fit into half of the picture
_MARKERS = "osD^vPX*"
STYLE: Any = {"svg.hashsalt": "deepcfr", "font.family": "DejaVu Sans", "font.size": 9}  # same lines, same bytes


@dataclass(frozen=True)
class Line:
    """One run on a chart; runs of one label look alike and share an entry of the legend."""

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
    """Draw exact NashConv against nodes touched and against wall time, one line a run, as SVG or PNG by `path`.

    Raises ConfigError if matplotlib is missing, if a run has no exact evaluation, or if the runs are of several games.
    """
    require_matplotlib()
    empty = [f"'{run.path}' has no exact evaluation to draw." for run in runs if not curve(run)]
    problems = empty + several_games(runs)
    if problems:
        raise ConfigError(problems)
    lines = [
        Line(f"{method.label}: {run.path.name}", method, curve(run))
        for run, method in zip(runs, methods_of(runs), strict=True)
    ]
    write_atomically(path, picture(lines, runs[0], path.suffix[1:]))


def require_matplotlib() -> None:
    """Raise ConfigError if charts cannot be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("Charts need matplotlib: pip install 'deepcfr[report]'.")


def several_games(runs: Sequence[RunFolder]) -> list[str]:
    """A sentence if the runs are not of one game."""
    games = {run.source for run in runs}
    names = sorted({game.name for game in games})
    if len(names) > 1:
        return [f"One chart shows one game, but the runs are of {', '.join(names)}."]
    if len(games) > 1:
        return [f"One chart shows one game, but the rules of {names[0]} are not the same in all runs."]
    return []


def picture(lines: Sequence[Line], run: RunFolder, kind: str) -> bytes:
    """The chart of `lines` as an image of the `kind` svg or png; `run` is any of them, for the game and its unit.

    The same lines give the same bytes.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        entries = _appearance(lines)
        columns = 2 if max(map(len, entries)) <= _HALF_WIDTH else 1
        rows = -(-len(entries) // columns)
        figure = Figure(figsize=(11, 4.6 + 0.2 * rows), layout="constrained", dpi=130)
        by_nodes, by_time = figure.subplots(1, 2, sharey=True)
        for line in lines:
            seconds, nodes, values = zip(*line.points, strict=True)
            by_nodes.plot(nodes, values, **entries[line.label])
            by_time.plot(seconds, values, **entries[line.label])
        _label_axes(by_nodes, by_time, lines, run.source.milli_unit)
        handles = [by_nodes.plot([], [], **entries[label])[0] for label in entries]
        figure.legend(handles, _legend(lines, list(entries)), loc="outside lower center", ncols=columns, frameon=False)
        figure.suptitle(f"Exact NashConv on {plain(run.source.name)}")
        image = io.BytesIO()
        figure.savefig(image, format=kind, metadata={"Date": None} if kind == "svg" else {})
    return image.getvalue()


def _label_axes(by_nodes: Any, by_time: Any, lines: Sequence[Line], unit: str) -> None:
    from matplotlib.ticker import LogFormatter

    counted = {line.method.nodes for line in lines}
    note = "\nnot comparable: sampled and full-width methods count different things" if len(counted) > 1 else ""
    by_nodes.set(xlabel=f"nodes touched{note}", xscale="log", yscale="log", ylabel=f"exact NashConv, {unit}")
    by_time.set(xlabel=TIME_AXIS, xscale="log")
    for axis in (by_nodes.yaxis, by_time.xaxis):
        axis.set_major_formatter(LogFormatter())
        axis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    for axes in (by_nodes, by_time):
        axes.grid(True, which="major", alpha=0.4)
        axes.grid(True, which="minor", alpha=0.15)


def _appearance(lines: Sequence[Line]) -> dict[str, dict[str, Any]]:
    """How each label is drawn: a family's colour in shades from light to dark, and a marker of its own."""
    import matplotlib as mpl

    shown: dict[str, dict[str, Any]] = {}
    for family in FAMILIES:
        labels = list(dict.fromkeys(line.label for line in lines if line.method.family == family))
        shades = mpl.colormaps[_COLOURS[family]](np.linspace(_DARKEST, _LIGHTEST, len(labels))[::-1])
        for place, label in enumerate(labels):
            marker = _MARKERS[(FAMILIES.index(family) + place) % len(_MARKERS)]
            shown[label] = {"color": shades[place], "marker": marker, "markersize": 4, "linewidth": 1.3}
    return shown


def _legend(lines: Sequence[Line], labels: Sequence[str]) -> list[str]:
    counts = [sum(line.label == label for line in lines) for label in labels]
    return [plain(label) + (f" ({n} runs)" if n > 1 else "") for label, n in zip(labels, counts, strict=True)]


def plain(text: str) -> str:
    """Text that is no formula to matplotlib, whatever a folder is called."""
    return text.replace("$", r"\$")
