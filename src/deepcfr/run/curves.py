"""The curves of runs: quantities of their metrics, x axes and units; and exact NashConv as a picture for documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from deepcfr.core.errors import ConfigError
from deepcfr.core.files import write_atomically
from deepcfr.run.chart import Chart, Curve, beside
from deepcfr.run.metrics import nash_conv, number
from deepcfr.run.record import RunData, read_run

Pick = Callable[[dict[str, Any]], float | None]


@dataclass(frozen=True)
class Measure:
    """A quantity of the metrics; its parts share a chart of one run, and have separate charts for several runs."""

    title: str
    y: str  # the unit; {unit} is the game's milli unit
    parts: tuple[tuple[str, Pick], ...]
    x: str = "iteration"
    log: bool = False
    dots: bool = False  # not measured in every iteration
    kept: tuple[str, ...] = ()  # families of solvers whose pages show the chart before its first value
    since: bool = False  # whether older runs lack it; not drawn if lines lack it

    def waits(self, run: RunData) -> bool:
        """Whether the page of a run shows the chart before its first value."""
        return run.config.family in self.kept and not (self.since and run.lines)


def _key(key: str, index: int | None = None) -> Pick:
    return lambda line: number(line, key, index)


def _pair(key: str) -> tuple[tuple[str, Pick], ...]:
    return ("player 0", _key(key, 0)), ("player 1", _key(key, 1))


def _rate(line: dict[str, Any]) -> float | None:
    """Nodes touched per second of traversals, without fits and evaluations."""
    nodes = number(line, "nodes_touched")
    for key in ("traversal_seconds", "play_seconds", "iteration_seconds"):
        seconds = number(line, key)
        if nodes is not None and seconds:
            return nodes / seconds
    return None


def _gigabytes(key: str) -> Pick:
    def pick(line: dict[str, Any]) -> float | None:
        size = number(line, key)
        return None if size is None else size / 1e9

    return pick


ALL = ("deep-cfr", "nfsp", "ppo", "tabular")
MEASURES = (
    Measure("Exact NashConv over time", "{unit}", (("NashConv", nash_conv),), "seconds", True, True, ALL),
    Measure("Exact NashConv over nodes", "{unit}", (("NashConv", nash_conv),), "total_nodes_touched", True, True, ALL),
    Measure("Loss of advantage fits", "loss", _pair("advantage_loss"), log=True, kept=("deep-cfr",)),
    Measure("Loss of Q fits", "squared payoff", _pair("q_loss"), log=True, kept=("nfsp",)),
    Measure("Loss of policy fits", "cross-entropy", _pair("policy_loss"), log=True, kept=("nfsp",)),
    Measure("Loss of values", "squared payoff", _pair("value_loss"), log=True, kept=("ppo",)),
    Measure("Nodes touched per second of traversals", "nodes/s", (("nodes/s", _rate),), kept=ALL),
    Measure(
        "Time of an iteration",
        "s",
        (
            ("traversals", _key("traversal_seconds")),
            ("play", _key("play_seconds")),
            ("fits", _key("fit_seconds")),
            ("whole", _key("iteration_seconds")),
        ),
        kept=ALL,
    ),
    Measure(
        "Samples in memories",
        "samples",
        (
            ("advantage 0", _key("advantage_samples", 0)),
            ("advantage 1", _key("advantage_samples", 1)),
            ("strategy", _key("strategy_samples")),
            ("replay 0", _key("replay_samples", 0)),
            ("replay 1", _key("replay_samples", 1)),
            ("reservoir 0", _key("reservoir_samples", 0)),
            ("reservoir 1", _key("reservoir_samples", 1)),
        ),
        kept=("deep-cfr", "nfsp"),
    ),
    Measure("Memory of the process", "GB", (("resident", _gigabytes("resident_bytes")),), kept=ALL, since=True),
    Measure(
        "Loss of average networks",
        "loss",
        (("average", _key("average_loss")),),
        log=True,
        dots=True,
        kept=("deep-cfr",),
    ),
)
_INCOMPARABLE = (
    "Runs on sampled histories and runs of public-chance or full-width passes count different things as nodes: compare "
    "them by time."
)
_TIMES = (
    (3 * 3600, "h", 3600.0),
    (600, "min", 60.0),
    (0, "s", 1.0),
)  # least seconds for a unit, its name and its length


def charts(runs: Sequence[RunData]) -> list[Chart]:
    """The charts of a run, or of several runs with a line for each in every one."""
    found: list[Chart] = []
    for measure in MEASURES:
        if len(runs) == 1:
            found += _of_one(measure, runs[0])
        else:
            found += (chart for part in measure.parts for chart in _of_several(measure, part, runs))
    return found


def letter(index: int) -> str:
    """The letter at the end of the lines of one of several runs."""
    return ascii_uppercase[index]


def _of_one(measure: Measure, run: RunData) -> list[Chart]:
    all_parts = [(label, _points(measure, pick, run)) for label, pick in measure.parts]
    parts = [(label, points) for label, points in all_parts if points]
    if not parts and not measure.waits(run):
        return []
    name, scale = _across(measure, [run])
    alone = len(parts) == 1
    curves = [
        Curve(label, "" if alone else label, look, tuple((x / scale, y) for x, y in points))
        for look, (label, points) in enumerate(parts)
    ]
    return [_chart(measure, measure.title, name, run.unit, curves, "")]


def _of_several(measure: Measure, part: tuple[str, Pick], runs: Sequence[RunData]) -> list[Chart]:
    label, pick = part
    name, scale = _across(measure, runs)
    curves = [
        Curve(run.name, letter(look), look, tuple((x / scale, y) for x, y in _points(measure, pick, run)))
        for look, run in enumerate(runs)
    ]
    kept = len(measure.parts) == 1 and any(measure.waits(run) for run in runs)
    if not kept and not any(curve.points for curve in curves):
        return []
    title = measure.title if len(measure.parts) == 1 else f"{measure.title}, {label}"
    counts_nodes = measure.x == "total_nodes_touched" or measure.y == "nodes/s"
    mixed = counts_nodes and len({run.config.plays_all_hands for run in runs}) > 1
    return [_chart(measure, title, name, runs[0].unit, curves, _INCOMPARABLE if mixed else "")]


def _chart(measure: Measure, title: str, x: str, unit: str, curves: Sequence[Curve], note: str) -> Chart:
    return Chart(
        title=title,
        x=x,
        y=measure.y.format(unit=unit),
        curves=tuple(curves),
        log_x=measure.x != "iteration",
        log_y=measure.log,
        dots=measure.dots,
        note=note,
        empty="no exact evaluation yet" if measure.dots else "no iteration is recorded yet",
    )


def _points(measure: Measure, pick: Pick, run: RunData) -> list[tuple[float, float]]:
    pairs = ((number(line, measure.x), pick(line)) for line in run.lines)
    return [(x, y) for x, y in pairs if x is not None and y is not None]


def _across(measure: Measure, runs: Sequence[RunData]) -> tuple[str, float]:
    """The title of the x axis, and the divisor of its numbers."""
    if measure.x == "iteration":
        return "iteration", 1.0
    if measure.x == "total_nodes_touched":
        return "nodes touched", 1.0
    longest = max((number(line, "seconds") or 0.0 for run in runs for line in run.lines[-1:]), default=0.0)
    unit, size = next((unit, size) for least, unit, size in _TIMES if longest >= least)
    return f"wall time, {unit}", size


def several_games(runs: Sequence[RunData]) -> list[str]:
    """A sentence if the runs are not of one game, so that their values cannot be compared."""
    names = sorted({f"{run.game} in {run.unit}" for run in runs})
    if len(names) > 1:
        return [f"Only runs of one game share charts, but these are of {', '.join(names)}."]
    if len({run.source for run in runs}) > 1:
        return [f"Only runs of one game share charts, but the rules of {runs[0].game} are not the same in all runs."]
    return []


def draw_curves(paths: Sequence[Path], target: Path) -> None:
    """Draw exact NashConv against nodes touched and against wall time, one line a run, as an SVG file.

    Raises ConfigError if a run has no exact evaluation above 0, or if the runs are of several games, and the errors of
    reading runs and of writing a file.
    """
    runs = [read_run(path, path.resolve().name) for path in paths]
    empty = [
        f"'{path}' has no exact evaluation above 0 to draw."
        for path, run in zip(paths, runs, strict=True)
        if not any((nash_conv(line) or 0) > 0 for line in run.evaluated)
    ]
    if problems := empty + several_games(runs):
        raise ConfigError(problems)
    labelled = [replace(run, name=f"{run.config.method}: {run.name}") for run in runs]
    drawn = [chart for measure in MEASURES[1::-1] for chart in _of_several(measure, measure.parts[0], labelled)]
    write_atomically(target, beside(f"Exact NashConv on {runs[0].game}", drawn))
