"""Convergence curves of runs from their metrics files, with labels from their configurations, as one SVG picture.

Pictures for documents have charts side by side with one legend, and numbers with intervals in rows. They use the axes and
lines of `report.chart`, a white background and their own style. The same data give the same bytes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Literal

from deepcfr.abstraction.buckets import read_description, round_classes
from deepcfr.config import (
    NetworkConfig,
    RunConfig,
    TabularConfig,
    settings_by_name,
)
from deepcfr.errors import ConfigError
from deepcfr.files import write_atomically
from deepcfr.games.betting import build_tree
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.report.chart import HEIGHT, LETTER, WIDTH, Chart, Curve, axis, dashes, panel, series, tick_labels
from deepcfr.rng import generator, key
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics
from deepcfr.sampling.traversal_tree import table_layout
from deepcfr.training.networks import build_network

Family = Literal["deep", "buckets", "lossless", "full width"]
FAMILIES: tuple[Family, ...] = ("deep", "buckets", "lossless", "full width")  # order of charts and tables

SAMPLED = "histories that sampled traversals visited, at decisions and at the end, and the deals on the way"
SWEPT = (
    "decisions and ends of every visited board, once for every distinct hand there and each traversing player; "
    "each stands for many histories at once"
)
_LISTED = "all histories of the game, once for each traversing player"


@dataclass(frozen=True)
class Method:
    """The description of a run's method."""

    label: str
    family: Family
    nodes: str  # definition of its nodes touched


def method_of(run: RunFolder) -> Method:
    """The method of a run; sizes are computed for poker games only, from their rules.

    Raises CheckpointError if the run's abstraction cannot be read.
    """
    rules = run.source if isinstance(run.source, PokerRules) else None
    if isinstance(run.config, RunConfig):
        size = _parameters(rules, run.config.network) if rules else 0
        nodes = SWEPT if run.config.plays_all_hands else SAMPLED
        name = run.config.method
        return Method(f"{name}, {size:,} parameters" if size else name, "deep", nodes)
    solve = run.config.solve
    if solve.algorithm == "mccfr":
        return _monte_carlo(run, solve, rules)
    bits = "" if solve.precision == "float32" or rules is None else f", {solve.precision}"
    label = f"{run.config.method}, full width{bits}"
    return Method(label, "full width", SWEPT if rules else _LISTED)


def _monte_carlo(run: RunFolder, solve: TabularConfig, rules: PokerRules | None) -> Method:
    name = "Linear MCCFR" if solve.weighting == "linear" else "MCCFR"
    if solve.sampler == "outcome":
        name += " by outcome sampling"
    if rules is None:
        return Method(name, "lossless", SAMPLED)
    path = run.abstraction_path
    whole = tuple(round_classes(rules, round_) for round_ in range(rules.num_rounds))
    counts = whole if path is None else tuple(read_description(path)["counts"])
    size = table_layout(build_tree(rules), counts).size
    what = "lossless" if path is None else _buckets(counts, whole)
    return Method(f"{name}, {what} ({size:,} infoset-actions)", "buckets" if path else "lossless", SAMPLED)


def _buckets(counts: tuple[int, ...], whole: tuple[int, ...]) -> str:
    """The numbers of buckets by round, without lossless rounds such as the first one of FHP."""
    merged = [f"{count:,}" for count, all_of_them in zip(counts, whole, strict=True) if count < all_of_them]
    return f"{' + '.join(merged)} buckets" if merged else "buckets without loss"


@lru_cache
def _parameters(rules: PokerRules, config: NetworkConfig) -> int:
    encoding = PokerGame(rules, config.suits).encoding
    network = build_network(encoding, config, generator(key(0, "report")))
    return sum(weights.numel() for weights in network.parameters())


def methods_of(runs: Sequence[RunFolder]) -> list[Method]:
    """The methods of several runs. Runs that differ only by seed, length, threads and evaluations have the same label.

    If other settings differ between runs of one label, the label names them.
    """
    methods = [method_of(run) for run in runs]
    settings = [_settings(run) for run in runs]
    labelled = []
    for method, own in zip(methods, settings, strict=True):
        rivals = [other for m, other in zip(methods, settings, strict=True) if m.label == method.label]
        differing = [name for name in own if any(other.get(name) != own[name] for other in rivals)]
        said = ", ".join(f"{name} = {own[name]}" for name in differing)
        labelled.append(dataclasses.replace(method, label=f"{method.label}; {said}") if said else method)
    return labelled


def _settings(run: RunFolder) -> dict[str, object]:
    """The settings that determine a run's curve, without the seed, by their names in configuration files."""
    return {
        name: value
        for name, value in settings_by_name(run.config).items()
        if "." in name and not name.startswith(("evaluation.", "runtime.")) and not name.endswith(".iterations")
    }


_COLOURS = ("#0072b2", "#b8500b", "#007a5a", "#a0417e", "#7a6a00", "#3f4a9a")
_TITLE, _ROW, _SAMPLE = 24, 18, 36  # height of a title, height of a row, width of a legend's line
_STYLE = (
    ".figure text{font:11.5px system-ui,sans-serif;fill:#1a211d}.figure .title{font-size:14px;font-weight:600}"
    ".figure .tick,.figure .name{fill:#57615b}"
    ".figure .rule{stroke:#dde2df;fill:none}.figure .axis{stroke:#57615b;fill:none}"
    ".figure .curve{stroke:currentColor;stroke-width:1.6;fill:none;stroke-linejoin:round}.figure .dot{fill:currentColor}"
    ".figure .hollow{fill:#fff;stroke:currentColor}.figure .band{fill:currentColor;opacity:.16}"
    + "".join(f".figure .series-{number}{{color:{colour}}}" for number, colour in enumerate(_COLOURS, start=1))
)


@dataclass(frozen=True)
class Mark:
    """A number with the half-width of its interval, and the published number."""

    label: str
    value: float
    half: float = 0.0
    published: float | None = None


def beside(title: str, charts: Sequence[Chart]) -> bytes:
    """Charts in one row with one legend for their labelled curves. Raises ValueError if a chart is empty."""
    curves = {curve.label: curve for chart in charts for curve in chart.curves if curve.label}
    longest = max((len(label) for label in curves), default=0)
    width = max(WIDTH * len(charts), _SAMPLE + 32 + LETTER * longest, 20 + 1.4 * LETTER * len(title))
    panels = (
        f'<g transform="translate({WIDTH * place} {_TITLE})">{panel(chart)}{_figure_note(chart)}</g>'
        for place, chart in enumerate(charts)
    )
    columns = 2 if _SAMPLE + 20 + LETTER * longest < width / 2 else 1
    top = _TITLE + HEIGHT + (_ROW if any(chart.note for chart in charts) else 0)
    legend = (
        _legend(curve, 12 + (place % columns) * width / 2, top + _ROW * (place // columns) + 12)
        for place, curve in enumerate(curves.values())
    )
    return _picture(title, width, top + _ROW * -(-len(curves) // columns) + 8, [*panels, *legend])


def rows(title: str, x: str, marks: Sequence[Mark], reference: float) -> bytes:
    """Numbers with intervals in rows, published ones hollow; a dashed line marks the reference."""
    left, width = 16 + LETTER * max(len(mark.label) for mark in marks), 2 * WIDTH
    ends = [mark.value + sign * mark.half for mark in marks for sign in (-1, 1)]
    others = [mark.published for mark in marks if mark.published is not None]
    across = axis([*ends, *others, reference], False, left, width - 20)
    bottom = _TITLE + 10 + _ROW * len(marks)
    parts = []
    for tick, label in zip(across.ticks, tick_labels(across.ticks), strict=True):
        at = across.place(tick)
        parts.append(f'<path class="rule" d="M{at:.1f} {_TITLE}V{bottom}"/>')
        parts.append(f'<text class="tick" x="{at:.1f}" y="{bottom + 15}" text-anchor="middle">{label}</text>')
    at = across.place(reference)
    parts.append(f'<path class="axis" stroke-dasharray="5 3" d="M{at:.1f} {_TITLE}V{bottom}"/>')
    for place, mark in enumerate(marks):
        y = _TITLE + 10 + _ROW * (place + 0.5)
        low, middle, high = (across.place(mark.value + sign * mark.half) for sign in (-1, 0, 1))
        parts.append(f'<text x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(mark.label)}</text>')
        parts.append(
            f'<g class="series-1"><path class="curve" d="M{low:.1f} {y:.1f}H{high:.1f}"/>'
            f'<circle class="dot" cx="{middle:.1f}" cy="{y:.1f}" r="3.2"/></g>'
        )
        if mark.published is not None:
            at = across.place(mark.published)
            parts.append(f'<circle class="hollow series-2" cx="{at:.1f}" cy="{y:.1f}" r="3.6"/>')
    middle = (left + width) / 2
    parts.append(f'<text class="name" x="{middle:.1f}" y="{bottom + 34}" text-anchor="middle">{escape(x)}</text>')
    return _picture(title, width, bottom + 44, parts)


def positive_band(low: float, high: float, value: float) -> tuple[float, float]:
    """An interval for a logarithmic axis: its lower end is at least a hundredth of the value."""
    return (max(low, value / 100), high) if math.isfinite(high) else (value, value)


def _figure_note(chart: Chart) -> str:
    return f'<text class="name" x="4" y="{HEIGHT + 8}">{escape(chart.note)}</text>' if chart.note else ""


def _legend(curve: Curve, x: float, y: float) -> str:
    dash = ' stroke-dasharray="1 3"' if curve.hollow else dashes(curve.look)
    kind = "hollow" if curve.hollow else "dot"
    return (
        f'<g class="{series(curve.look)}"><path class="curve" d="M{x:.1f} {y:.1f}h{_SAMPLE}"{dash}/>'
        f'<circle class="{kind}" cx="{x + _SAMPLE / 2:.1f}" cy="{y:.1f}" r="2.6"/></g>'
        f'<text x="{x + _SAMPLE + 8:.1f}" y="{y + 4:.1f}">{escape(curve.label)}</text>'
    )


def _picture(title: str, width: float, height: float, parts: Sequence[str]) -> bytes:
    return "\n".join(_lines(title, width, height, parts)).encode()


def _lines(title: str, width: float, height: float, parts: Sequence[str]) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escape(title)}">'
    )
    yield f"<style>{_STYLE}</style>"
    yield f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>'
    yield f'<text class="title" x="{width / 2:g}" y="16" text-anchor="middle">{escape(title)}</text>'
    yield from parts
    yield "</svg>\n"


CurvePoint = tuple[float, float, float]

TIME_AXIS = "wall time in seconds, exact evaluations included"
_INCOMPARABLE = "not comparable: sampled histories and public-chance or full-width passes count different things"


@dataclass(frozen=True)
class Line:
    """One run on a chart; runs with the same label share colour, dashes and an entry of the legend."""

    label: str
    method: Method
    points: list[CurvePoint]


def curve(run: RunFolder) -> list[CurvePoint]:
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
