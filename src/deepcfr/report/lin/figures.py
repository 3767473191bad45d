"""The figures of Lin's experiments: means with 95 % intervals over seeds, and Lin's numbers beside them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Literal

from deepcfr.evaluation.intervals import Interval, interval_of
from deepcfr.policies.styles import STYLES
from deepcfr.report.charts import STYLE, plain
from deepcfr.report.lin.page import LinResult, bot_gains, exact_values, gain, labels_of
from deepcfr.report.studies.lin import PROFITS, WIN_RATES

Kind = Literal["svg", "png"]


@dataclass(frozen=True)
class Dot:
    """A number with its interval for the figure, and what Lin has in its place."""

    label: str
    value: Interval
    published: float | None = None


def dots(result: LinResult) -> list[Dot]:
    """What the study's figure shows, from top to bottom."""
    if result.study.name == "lin-exact":
        values = exact_values(result)
        return [Dot(label, values[arm]) for arm, label in labels_of(result).items() if arm in values]
    if result.study.name == "lin-fig5":
        shown = [
            (f"{own} against {other}", gain(result, (own, other)), 1000 * lin) for (own, other), lin in PROFITS.items()
        ]
        return [Dot(label, value, lin) for label, value, lin in shown if value]
    if result.study.name == "lin-fig7":
        return [
            Dot(style, value, 1000 * WIN_RATES[style] if style in WIN_RATES else None)
            for style in STYLES
            if (value := gain(result, (style,)))
        ]
    return [Dot(s, interval_of([one["value"] for one in own])) for s in STYLES if (own := bot_gains(result, s))]


def lin_picture(result: LinResult, kind: Kind) -> bytes:
    """Means with 95 % intervals over seeds, and Lin's numbers hollow beside them."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = dots(result)
    exact = result.study.name == "lin-exact"
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 1.6 + 0.36 * len(shown)), layout="constrained", dpi=130)
        axes = figure.subplots()
        for place, dot in enumerate(shown):
            half = dot.value.half if dot.value.count > 1 else 0.0
            axes.errorbar(dot.value.mean, place, xerr=half, fmt="o", color="C0", capsize=3, markersize=4)
            if dot.published is not None:
                axes.plot(dot.published, place, marker="D", markerfacecolor="none", color="C1", linestyle="none")
        axes.set_yticks(range(len(shown)), [plain(dot.label) for dot in shown])
        axes.invert_yaxis()
        axes.set_xlabel(f"exact NashConv, {result.unit}" if exact else f"gain, {result.unit} (hollow: Lin)")
        axes.axvline(shown[0].value.mean if exact else 0.0, color="0.6", linewidth=0.8, linestyle="--")
        axes.grid(True, axis="x", alpha=0.4)
        figure.suptitle(plain(f"{result.study.title}, on {result.game}"))
        image = io.BytesIO()
        figure.savefig(image, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return image.getvalue()
