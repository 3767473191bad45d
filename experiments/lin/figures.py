"""The figures of Lin's experiments: means with 95 % intervals over seeds, and Lin's numbers beside them."""

from __future__ import annotations

from deepcfr.evaluation.intervals import Interval, interval_of
from deepcfr.policies.styles import STYLES
from deepcfr.report.charts import Mark, rows
from experiments.lin.page import LinResult, bot_gains, exact_values, gain, labels_of
from experiments.studies.lin import PROFITS, WIN_RATES


def _mark(label: str, value: Interval, published: float | None = None) -> Mark:
    return Mark(label, value.mean, value.half if value.count > 1 else 0.0, published)


def dots(result: LinResult) -> list[Mark]:
    """The marks of the study's figure, from top to bottom."""
    if result.study.kind == "exact":
        values = exact_values(result)
        return [_mark(label, values[arm]) for arm, label in labels_of(result).items() if arm in values]
    if result.study.kind == "shapes":
        shown = [
            (f"{own} against {other}", gain(result, (own, other)), 1000 * lin) for (own, other), lin in PROFITS.items()
        ]
        return [_mark(label, value, lin) for label, value, lin in shown if value]
    if result.study.kind == "ensemble":
        return [
            _mark(style, value, 1000 * WIN_RATES[style] if style in WIN_RATES else None)
            for style in STYLES
            if (value := gain(result, (style,)))
        ]
    return [_mark(s, interval_of([one["value"] for one in own])) for s in STYLES if (own := bot_gains(result, s))]


def lin_picture(result: LinResult) -> bytes:
    """Means with 95 % intervals over seeds, and Lin's numbers hollow beside them."""
    shown = dots(result)
    exact = result.study.kind == "exact"
    x = f"exact NashConv, {result.unit}" if exact else f"gain, {result.unit} (hollow: Lin)"
    return rows(f"{result.study.title}, on {result.game}", x, shown, shown[0].value if exact else 0.0)
