"""The figures of the reproduction report: curves of a study's arms with intervals over seeds, and regret beside its bound.

They show iterations and nodes touched, never time, so the same runs give the same bytes.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from deepcfr.evaluation.intervals import Interval, interval_of
from deepcfr.report.charts import STYLE, plain
from deepcfr.report.reproduction.results import ArmResult, StudyResult, at_iteration, final
from deepcfr.report.studies import Published, arm_config
from deepcfr.report.theorem1.page import TheoremResult
from deepcfr.runs.study import flat_settings

Kind = Literal["svg", "png"]
PUBLISHED_GAME = "fhp"  # of the paper's curves
_MARKERS = "osD^vPX*"
Curve = list[tuple[int, float, Interval]]  # iteration, mean nodes, NashConv


def arm_curve(result: ArmResult) -> Curve:
    """The evaluations that all of an arm's finished runs have, oldest first."""
    runs = list(result.runs.values())
    if not runs:
        return []
    shared = sorted(set.intersection(*({point.iteration for point in run.curve} for run in runs)))
    curve = []
    for iteration in shared:
        nodes = [point.nodes for run in runs for point in run.curve if point.iteration == iteration]
        value = at_iteration(result, iteration)
        assert value is not None
        curve.append((iteration, interval_of([float(n) for n in nodes]).mean, value))
    return curve


def study_picture(result: StudyResult, kind: Kind) -> bytes:
    """A study's curves against iterations, and against nodes touched or what it sweeps, with 95 % intervals over seeds.

    Points read off the paper's curves are drawn hollow, on the game that they are of.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = [(arm, arm_curve(arm)) for arm in result.arms.values()]
    shown = [(arm, curve) for arm, curve in shown if curve]
    colours = mpl.colormaps["viridis"]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 4.6 + 0.2 * -(-len(shown) // 2)), layout="constrained", dpi=130)
        panels = figure.subplots(1, 2, sharey=True)
        curves = panels[:1] if result.study.swept else panels
        handles = []
        for place, (arm, curve) in enumerate(shown):
            colour = colours(0.92 * place / max(1, len(shown) - 1))
            look = {"color": colour, "marker": _MARKERS[place % len(_MARKERS)], "markersize": 4, "linewidth": 1.3}
            for axis, panel in enumerate(curves):
                handle = _draw(panel, [((point[0], point[1])[axis], point[2]) for point in curve], look)
            handles.append((handle, f"{plain(arm.arm.label)} ({_seeds(len(arm.runs))})"))
            if arm.arm.published and arm.arm.published.curve and result.game == PUBLISHED_GAME:
                handles.append(
                    (_draw_published(panels[0], arm.arm.published, colour), f"{plain(arm.arm.label)}, the paper")
                )
        _label(panels[0], "CFR iterations, or batches of episodes", f"exact NashConv, {result.unit}")
        if result.study.swept:
            _draw_sweep(panels[1], result)
        else:
            _label(panels[1], _nodes_label(result), "")
            _millions(panels[1].xaxis)
        figure.legend(*zip(*handles, strict=True), loc="outside lower center", ncols=2, frameon=False)
        figure.suptitle(plain(f"Figure {result.study.figure}: {result.study.title}, on {result.game}"))
        return _saved(figure, kind)


def _millions(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e6:,g} M"))
    axis.set_minor_formatter(NullFormatter())


def _nodes_label(result: StudyResult) -> str:
    full_width = [
        arm for arm in result.arms.values() if arm.arm.tabular and arm.arm.changes.get("solve.algorithm") != "mccfr"
    ]
    return "nodes touched" + (" (full-width solvers count every hand on every board)" if full_width else "")


def _draw_published(axes: Any, published: Published, colour: Any) -> Any:
    x, y = zip(*published.curve, strict=True)
    (handle,) = axes.plot(
        x, y, color=colour, marker="o", markersize=5, markerfacecolor="none", linestyle=":", linewidth=1
    )
    return handle


def _draw_sweep(axes: Any, result: StudyResult) -> None:
    """The last NashConv over the swept setting, a point with its interval for each arm that has one."""
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    points = []
    for arm in result.arms.values():
        value = final(arm)
        if value is not None:
            settings = flat_settings(arm_config(Path(), result.study, result.budget, arm.arm, 0))
            points.append((settings[result.study.swept], value))
    x, values = zip(*sorted(points, key=lambda point: point[0]), strict=True)
    halves = [value.half if math.isfinite(value.half) else 0.0 for value in values]
    axes.errorbar(
        x, [value.mean for value in values], halves, color="black", marker="o", markersize=4, capsize=3, linewidth=1.1
    )
    _label(axes, f"{result.study.swept}, at the last iteration", "")
    axes.set_xticks(x)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())


def theorem_picture(result: TheoremResult, kind: Kind) -> bytes:
    """Measured average regret, and its bound where there is one, both of the player whose regret is larger."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    colours = mpl.colormaps["viridis"]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 5.4), layout="constrained", dpi=130)
        axes = figure.subplots()
        for place, arm in enumerate(result.arms):
            colour = colours(0.8 * place / max(1, len(result.arms) - 1))
            look = {"color": colour, "marker": _MARKERS[place], "markersize": 4, "linewidth": 1.3}
            handle = _draw(axes, [(point.iteration, point.regret) for point in arm.points], look)
            handle.set_label(f"{plain(arm.label)}: measured ({_seeds(arm.seeds)})")
            if arm.points[0].bound is not None:
                x, y = zip(*[(point.iteration, point.bound) for point in arm.points], strict=True)
                axes.plot(x, y, color=colour, linestyle="--", linewidth=1.1, label=f"{plain(arm.label)}: bound")
        _label(axes, "iterations T", f"average regret R / T, {result.unit}")
        figure.legend(loc="outside lower center", ncols=1, frameon=False)
        figure.suptitle(plain(f"Average regret on {result.game} and the bound of Theorem 1"))
        return _saved(figure, kind)


def _draw(axes: Any, points: Sequence[tuple[float, Interval]], look: dict[str, Any]) -> Any:
    """A line with its band, which a single seed has not; the part of a band below 0 cannot be drawn."""
    x = [place for place, _ in points]
    means = [value.mean for _, value in points]
    (handle,) = axes.plot(x, means, **look)
    if all(math.isfinite(value.half) for _, value in points):
        low = [max(value.mean - value.half, value.mean / 100) for _, value in points]
        high = [value.mean + value.half for _, value in points]
        axes.fill_between(x, low, high, color=look["color"], alpha=0.18, linewidth=0)
    return handle


def _label(axes: Any, xlabel: str, ylabel: str) -> None:
    from matplotlib.ticker import LogFormatter

    axes.set(xlabel=xlabel, xscale="log", yscale="log", ylabel=ylabel)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(LogFormatter())
        axis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    axes.grid(True, which="major", alpha=0.4)
    axes.grid(True, which="minor", alpha=0.15)


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count != 1 else ''}"


def _saved(figure: Any, kind: Kind) -> bytes:
    image = io.BytesIO()
    figure.savefig(image, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return image.getvalue()
