"""SVG pictures for documents: charts side by side with one legend, and numbers with intervals in rows.

They use the axes and lines of `report.chart`, a white background and their own style. The same data give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from deepcfr.report.chart import HEIGHT, LETTER, WIDTH, Chart, Curve, axis, dashes, panel, series, tick_labels

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
        f'<g transform="translate({WIDTH * place} {_TITLE})">{panel(chart)}{_note(chart)}</g>'
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


def _note(chart: Chart) -> str:
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
