"""Convergence curves of runs, drawn from their metrics files."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from deepcfr.errors import ConfigError
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics

Point = tuple[float, float, float]


def curve(run: RunFolder) -> list[Point]:
    """The exact evaluations of a run, oldest first: (seconds, nodes touched, NashConv in the milli unit)."""
    return [
        (line["seconds"], line["total_nodes_touched"], line["evaluation"]["nash_conv"])
        for line in read_metrics(run.metrics_path)
        if "evaluation" in line
    ]


def draw_curves(runs: list[RunFolder], path: Path) -> None:
    """Draw exact NashConv against wall time and against nodes touched, one line a run, as SVG or PNG by `path`.

    Raises ConfigError if matplotlib is missing, if a run has no exact evaluation, or if the runs are of several games.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("Charts need matplotlib: pip install 'deepcfr[report]'.")
    empty = [f"'{run.path}' has no exact evaluation to draw." for run in runs if not curve(run)]
    games = sorted({run.source.name for run in runs})
    if len(games) > 1:
        empty.append(f"One chart shows one game, but the runs are of {', '.join(games)}.")
    if empty:
        raise ConfigError(empty)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    by_time, by_nodes = figure.subplots(1, 2, sharey=True)
    for run in runs:
        seconds, nodes, values = zip(*curve(run), strict=True)
        by_time.plot([s / 60 for s in seconds], values, marker="o", label=run.path.name)
        by_nodes.plot(nodes, values, marker="o", label=run.path.name)
    by_time.set(
        xlabel="minutes, evaluations included", ylabel=f"exact NashConv, {runs[0].source.milli_unit}", yscale="log"
    )
    by_nodes.set(xlabel="nodes touched", xscale="log")
    for axes in (by_time, by_nodes):
        axes.grid(True, which="both", alpha=0.3)
    by_time.legend(frameon=False)
    figure.suptitle(f"Deep CFR on {games[0]}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
