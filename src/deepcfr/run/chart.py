"""Draw curves as SVG that needs no script: axes with units, labelled lines, values under the pointer.

`draw` makes a chart of a page, whose colours are classes of `static/run.css`; `beside` makes a picture for documents, with
a legend, a white background and its own style. Lines also differ by dashes and labels, not only by colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise

WIDTH, HEIGHT = 400, 250  # size of the drawing in its own units; pages scale it
LOOKS = 6  # number of colours and dashes
_LEFT, _TOP, _BOTTOM = 46, 26, 206  # margins of the plot; the right one depends on labels
LETTER = 6.4  # approximate width of a letter
_LINE = 13  # distance of lines of text
_MOST_POINTS = 400  # most points of a line
_STOPS = 40  # most places on the x axis with a tooltip
_LOG_FROM = 5.0  # an axis is logarithmic from this ratio of largest to smallest value
_SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_DOTTED = ' stroke-dasharray="1 3"'
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "13 4", "5 2 2 2 2 2")

Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """One line: `tag` is the text at its end, `label` its name in tooltips; `look` is its colour and dashes."""

    label: str
    tag: str
    look: int
    points: tuple[Point, ...]
    band: tuple[Point, ...] = ()  # lower and upper ends of each point's interval
    hollow: bool = False  # dotted with hollow dots: published values


@dataclass(frozen=True)
class Chart:
    """Curves over two axes; `note` is a remark on how to compare them."""

    title: str
    x: str  # the quantity with its unit
    y: str
    curves: tuple[Curve, ...]
    log_x: bool = False  # logarithmic if the values span enough
    log_y: bool = False
    dots: bool = False  # whether points are drawn as single measurements
    note: str = ""
    empty: str = "nothing to draw yet"


@dataclass(frozen=True)
class Axis:
    """A map from values to coordinates: `low` is at `start` and `high` at `end`."""

    low: float
    high: float
    log: bool
    start: float
    end: float
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        """The coordinate of a value."""
        low, high, at = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (at - low) / (high - low)


def axis(values: Sequence[float], log: bool, start: float, end: float) -> Axis:
    """The axis for finite `values` (positive if `log`); a linear axis starts at 0 unless all values are far from 0."""
    low, high = min(values), max(values)
    if log and high / low >= _LOG_FROM:
        margin = (high / low) ** 0.04
        low, high = low / margin, high * margin
        return Axis(low, high, True, start, end, log_ticks(low, high))
    wide = high - low > 1e-9 * abs(high)
    if low >= 0 and (low < 0.6 * high or not wide):
        low, wide = 0.0, high > 0
    margin = 0.05 * ((high - low) if wide else abs(high) or 20.0)
    low, high = (low if low == 0 else low - margin), high + margin
    return Axis(low, high, False, start, end, linear_ticks(low, high))


def linear_ticks(low: float, high: float) -> tuple[float, ...]:
    """Three to six round numbers within the range."""
    step = 10.0 ** math.floor(math.log10((high - low) / 3))
    step *= max(factor for factor in (1, 2, 5) if factor * step <= (high - low) / 3 * (1 + 1e-9))
    first = math.ceil(low / step - 1e-9)
    return tuple(step * i for i in range(first, math.floor(high / step + 1e-9) + 1))


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Powers of ten within the range: only some of many, and with 2 and 5 between few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, math.ceil((last - first) / 6))
    factors = (1.0,) if last - first > 3 else (1.0, 2.0, 5.0)
    ticks = (factor * 10.0**power for power in range(first, last + 1, every) for factor in factors)
    return tuple(tick for tick in ticks if low <= tick <= high)


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Labels of ticks, with enough digits to be distinct and correct."""
    apart = min((b - a for a, b in pairwise(ticks)), default=0.0)
    digits = next((n for n in range(1, 15) if all(abs(float(f"{t:.{n}g}") - t) <= 1e-6 * apart for t in ticks)), 15)
    return [short(tick, digits) for tick in ticks]


def short(value: float, digits: int) -> str:
    """A short text of a number: 20k, 1.5M, 0.01, 2e-5."""
    size, letter = next(((s, c) for s, c in _SIZES if abs(value) >= s), (1.0, ""))
    if value == 0 or 0.001 <= abs(value) < 1e15:
        text = f"{value / size:.{max(digits, 3)}g}"
        return (f"{float(text):.0f}" if "e" in text else text) + letter
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(power)}"


def figure(value: float) -> str:
    """A number for running text, with four or more digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def thinned(points: Sequence[Point], most: int = _MOST_POINTS) -> tuple[Point, ...]:
    """About `most` of the points at most, evenly spaced, with the last one."""
    every = max(1, -(-len(points) // most))
    kept = tuple(points[::every])
    return kept if not points or kept[-1] == points[-1] else (*kept, points[-1])


def draw(chart: Chart, focusable: bool = False) -> str:
    """The chart as an SVG element; with `focusable` its values can be reached by keyboard."""
    shown = [curve for curve in (_drawable(chart, curve) for curve in chart.curves) if curve.points]
    if not shown:
        return _frame(chart, f'<text class="none" x="{WIDTH / 2:g}" y="{HEIGHT / 2:g}">{escape(chart.empty)}</text>')
    right = WIDTH - 12 - LETTER * max((len(curve.tag) for curve in shown if curve.tag), default=0)
    parts, placed = _plot(chart, shown, right)
    parts += _tags(shown, placed, right)
    parts += _stops(chart, shown, placed, right, focusable)
    return _frame(chart, "\n".join(parts))


def panel(chart: Chart) -> str:
    """The chart without tags and tooltips, for a picture with a legend. Raises ValueError if nothing can be drawn."""
    shown = [curve for curve in (_drawable(chart, curve) for curve in chart.curves) if curve.points]
    return "\n".join(_plot(chart, shown, WIDTH - 12)[0])


def _plot(chart: Chart, shown: Sequence[Curve], right: float) -> tuple[list[str], list[list[Point]]]:
    """Draw axes and lines; returns also the coordinates of each line's points."""
    every = [point for curve in shown for point in curve.points]
    reached = [value for curve in shown for ends in curve.band for value in ends]
    across = axis([x for x, _ in every], chart.log_x, _LEFT, right)
    up = axis([*(y for _, y in every), *reached], chart.log_y, _BOTTOM, _TOP)
    placed = [[(across.place(x), up.place(y)) for x, y in curve.points] for curve in shown]
    bands = (_band(curve, places, up) for curve, places in zip(shown, placed, strict=True) if curve.band)
    lines = (_line(chart, curve, places) for curve, places in zip(shown, placed, strict=True))
    return [*_axes(chart, across, up), *bands, *lines], placed


def _band(curve: Curve, places: Sequence[Point], up: Axis) -> str:
    ends = [(x, up.place(low), up.place(high)) for (x, _), (low, high) in zip(places, curve.band, strict=True)]
    there, back = [f"{x:.1f} {high:.1f}" for x, _, high in ends], [f"{x:.1f} {low:.1f}" for x, low, _ in ends[::-1]]
    return f'<path class="band {series(curve.look)}" d="M{"L".join(there + back)}Z"/>'


def dashes(look: int) -> str:
    """The SVG attribute of a line's dashes."""
    drawn = _DASHES[(look + look // LOOKS) % LOOKS]  # other dashes when colours repeat
    return f' stroke-dasharray="{drawn}"' if drawn else ""


def series(look: int) -> str:
    """The CSS class of a line's colour."""
    return f"series-{look % LOOKS + 1}"


def describe(chart: Chart) -> str:
    """The chart as a sentence, for screen readers."""
    ends = [f"{curve.label}, {figure(curve.points[-1][1])} at the end" for curve in chart.curves if curve.points]
    return f"{chart.title}: {chart.y}, over {chart.x}. {'; '.join(ends) or chart.empty}."


def _drawable(chart: Chart, curve: Curve) -> Curve:
    """The points of a curve that can be drawn: finite, and positive on an axis that may be logarithmic."""
    fit = [i for i, (x, y) in enumerate(curve.points) if _fits(x, chart.log_x) and _fits(y, chart.log_y)]
    points = [(_plain(x), _plain(y)) for x, y in (curve.points[i] for i in fit)]
    if curve.band:
        return replace(curve, points=tuple(points), band=tuple(curve.band[i] for i in fit))
    return replace(curve, points=thinned(points))


def _plain(value: float) -> float:
    """The value, or 0 if a third of it may underflow."""
    return value if abs(value) > 1e-100 else 0.0


def _fits(value: float, positive: bool) -> bool:
    return (1e-100 if positive else -1e100) < value < 1e100


def _frame(chart: Chart, inside: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{escape(describe(chart))}">\n'
        f"{inside}\n</svg>"
    )


def _axes(chart: Chart, across: Axis, up: Axis) -> Iterator[str]:
    """Grid lines with their numbers, and the titles of the axes."""
    for tick, label in zip(up.ticks, tick_labels(up.ticks), strict=True):
        y = up.place(tick)
        yield f'<path class="rule" d="M{_LEFT} {y:.1f}H{across.end:.1f}"/>'
        yield f'<text class="tick" x="{_LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    free = -math.inf
    for tick, label in zip(across.ticks, tick_labels(across.ticks), strict=True):
        x, half = across.place(tick), len(label) * LETTER / 2
        yield f'<path class="rule" d="M{x:.1f} {_TOP}V{_BOTTOM}"/>'
        if x - half > free:
            free = x + half + 4
            yield f'<text class="tick" x="{x:.1f}" y="{_BOTTOM + 15}" text-anchor="middle">{label}</text>'
    yield f'<path class="axis" d="M{_LEFT} {_TOP}V{_BOTTOM}H{across.end:.1f}"/>'
    scales = ("", ", log scale")
    middle = (across.start + across.end) / 2
    yield f'<text class="name" x="4" y="12">{escape(chart.y)}{scales[up.log]}</text>'
    yield (
        f'<text class="name" x="{middle:.1f}" y="{_BOTTOM + 34}" text-anchor="middle">'
        f"{escape(chart.x)}{scales[across.log]}</text>"
    )


def _line(chart: Chart, curve: Curve, places: Sequence[Point]) -> str:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    drawn = f'<path class="curve" d="M{path}"{_DOTTED if curve.hollow else dashes(curve.look)}/>'
    if chart.dots or len(places) == 1:
        kind = "hollow" if curve.hollow else "dot"
        drawn += "".join(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.6"/>' for x, y in places)
    return f'<g class="{series(curve.look)}">{drawn}</g>'


def _tags(curves: Sequence[Curve], placed: Sequence[Sequence[Point]], right: float) -> Iterator[str]:
    """The labels at the ends of lines, moved apart if they would overlap."""
    order = sorted((index for index, curve in enumerate(curves) if curve.tag), key=lambda index: placed[index][-1][1])
    heights = spread([placed[index][-1][1] for index in order], _LINE, _TOP, _BOTTOM)
    for index, y in zip(order, heights, strict=True):
        tag = escape(curves[index].tag)
        yield f'<text class="tag {series(curves[index].look)}" x="{right + 6:.1f}" y="{y + 4:.1f}">{tag}</text>'


def spread(heights: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Move ascending heights so that neighbours are at least `apart`, within low and high if there is room."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + apart) if moved else max(height, low))
    limit = high
    for index in reversed(range(len(moved))):
        moved[index] = min(moved[index], limit)
        limit = moved[index] - apart
    return moved


def _stops(
    chart: Chart, curves: Sequence[Curve], placed: Sequence[Sequence[Point]], right: float, focusable: bool
) -> Iterator[str]:
    """Vertical strips that show the values of all lines at the pointer or the focus."""
    apart = (right - _LEFT) / _STOPS
    stops: list[float] = []
    for x in sorted({x for places in placed for x, _ in places}, reverse=True):  # keeps the last ones
        if not stops or stops[-1] - x >= apart:
            stops.append(x)
    stops.reverse()
    edges = [float(_LEFT), *((a + b) / 2 for a, b in pairwise(stops)), right]
    for index, x in enumerate(stops):
        near = [_nearest(places, x, apart) for places in placed]
        read = [
            (curve, curve.points[at], places[at])
            for curve, places, at in zip(curves, placed, near, strict=True)
            if at is not None
        ]
        strip = f'<rect class="hit" x="{edges[index]:.1f}" y="{_TOP}" width="{edges[index + 1] - edges[index]:.1f}" '
        strip += f'height="{_BOTTOM - _TOP}"/><path class="cursor" d="M{x:.1f} {_TOP}V{_BOTTOM}"/>'
        for curve, _, (cx, cy) in read:
            strip += f'<circle class="mark {series(curve.look)}" cx="{cx:.1f}" cy="{cy:.1f}" r="4"/>'
        words = _words(chart, [(curve, point) for curve, point, _ in read])
        label = escape("; ".join(words))
        reached = f' tabindex="0" role="img" aria-label="{label}"' if focusable else ""
        yield f'<g class="stop"{reached}>{strip}{_tip(words, x, right)}</g>'


def _nearest(places: Sequence[Point], x: float, within: float) -> int | None:
    """The index of the place nearest to `x`; None if none is near enough."""
    best = min(range(len(places)), key=lambda index: abs(places[index][0] - x))
    return best if abs(places[best][0] - x) < within else None


def _words(chart: Chart, read: Sequence[tuple[Curve, Point]]) -> list[str]:
    """The text of one place: its x value and each line's value."""
    where = sorted({point[0] for _, point in read})
    span = figure(where[0]) if figure(where[0]) == figure(where[-1]) else f"{figure(where[0])} to {figure(where[-1])}"
    return [f"{chart.x} {span}", *(f"{curve.label}: {figure(point[1])}" for curve, point in read)]


def _tip(words: Sequence[str], x: float, right: float) -> str:
    """The text beside the cursor, on the side with room."""
    anchor, at = ("start", x + 8) if x < (_LEFT + right) / 2 else ("end", x - 8)
    lines = "".join(
        f'<tspan x="{at:.1f}" y="{_TOP + 12 + _LINE * row}">{escape(text)}</tspan>' for row, text in enumerate(words)
    )
    return f'<text class="tip" text-anchor="{anchor}">{lines}</text>'


# Pictures for documents

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
    height = top + _ROW * -(-len(curves) // columns) + 8
    lines = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escape(title)}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
        f'<text class="title" x="{width / 2:g}" y="16" text-anchor="middle">{escape(title)}</text>',
        *panels,
        *legend,
        "</svg>\n",
    )
    return "\n".join(lines).encode()


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
