"""The page of one run, or of several on common charts: curves, exact evaluations, settings, environment.

From `RunData` to HTML without the libraries of the web application, so that every run has a `report.html`, the
self-contained page that is written during and after it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from rich.console import Console

from deepcfr.config import settings_by_name
from deepcfr.core.errors import ConfigError, DeepCFRError, GameError
from deepcfr.core.files import write_atomically
from deepcfr.defaults import default_config
from deepcfr.measure.exploitability import Exploitability
from deepcfr.network.fit import FitResult
from deepcfr.run.chart import LOOKS, dashes, draw, figure
from deepcfr.run.curves import MEASURES, charts, letter, several_games
from deepcfr.run.folder import RunFolder
from deepcfr.run.live import LiveObserver
from deepcfr.run.metrics import nash_conv, number
from deepcfr.run.record import RunData, read_run
from deepcfr.solve.base import Record, Solver

REPORT = "report.html"
STATIC = Path(__file__).parent / "static"
_ROWS = 15  # rows of the table of the curves' numbers
_UNKNOWN = "not recorded"
_SHARE = 0.02  # most of a run's time for reports before its end
_STYLES = ("style.css", "run.css")


def require_comparable(runs: Sequence[RunData]) -> None:
    """Raise ConfigError for more runs than a chart can distinguish, and for runs of several games."""
    if len(runs) > LOOKS:
        raise ConfigError(f"At most {LOOKS} runs share a page, but {len(runs)} were requested.")
    if problems := several_games(runs):
        raise ConfigError(problems)


def title(runs: Sequence[RunData]) -> str:
    """The title of the page."""
    return ", ".join(run.name for run in runs)


@cache
def templates(folder: Path) -> Environment:
    """The templates of a folder, which escape all values."""
    loader = FileSystemLoader(folder)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def fill(template: str, **values: Any) -> Markup:
    """A part of a page from a template of this room."""
    return Markup(templates(STATIC.with_name("templates")).get_template(template).render(values))


def body(runs: Sequence[RunData]) -> Markup:
    """The page below its heading; elements with `data-live` are updated while a run goes on."""
    return fill(
        "run.html",
        runs=runs,
        letters=[letter(index) for index in range(len(runs))],
        figures=_figures,
        dashes=lambda index: Markup(dashes(index)),
        charts=[(chart, Markup(draw(chart, not place))) for place, chart in enumerate(charts(runs))],
        every=max(run.every for run in runs),
        evaluations=[(run.name, *_evaluation(line)) for run in runs for line in run.evaluated],
        numbers=[_number_table(run) for run in runs if run.lines],
        environments=[(run.name, list(_sittings(run))) for run in runs],
        shown=_shown,
        **_settings(runs),
    )


def _figures(run: RunData) -> dict[str, str]:
    """The figures of a run so far, as texts."""
    last = run.lines[-1] if run.lines else {}
    measured = [(value, line["iteration"]) for line in run.lines if (value := nash_conv(line)) is not None]
    nodes = number(last, "total_nodes_touched")
    return {
        "progress": run.progress,
        "nodes": "–" if nodes is None else f"{nodes:,.0f}",
        "time": _time(number(last, "seconds")),
        "nash_conv": value_text(run.nash_conv),
        "best": f"{figure(min(measured)[0])} at {min(measured)[1]:,}" if measured else "–",
    }


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 600:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min" if seconds >= 7200 else f"{seconds / 60:.0f} min"


def _evaluation(line: dict[str, Any]) -> tuple[list[str], str]:
    """The numbers of a line with an exact evaluation, and the policy that was measured."""
    found, seconds, nodes = line["evaluation"], number(line, "seconds"), number(line, "total_nodes_touched")
    best = [number(found, "best_response_values", player) for player in (0, 1)]
    values = number(found, "nash_conv"), number(found, "exploitability"), *best, number(found, "value")
    spent, touched = "–" if seconds is None else f"{seconds:,.1f}", "–" if nodes is None else f"{nodes:,.0f}"
    texts = map(value_text, (*values, number(found, "seconds")))
    return [f"{line['iteration']:,}", spent, touched, *texts], str(found.get("policy", "–"))


def _number_table(run: RunData) -> tuple[str, list[str], list[list[str]]]:
    """The curves of a run as numbers at a few iterations, for readers without a pointer: its name, heads and rows."""
    chosen = run.lines[:: -max(1, -(-len(run.lines) // _ROWS))][::-1]
    columns = {
        f"{measure.title}, {label}" if len(measure.parts) > 1 else measure.title: pick
        for measure in MEASURES
        if measure.x != "total_nodes_touched"
        for label, pick in measure.parts
        if any(pick(line) is not None for line in chosen)
    }
    rows = [
        [
            f"{line['iteration']:,}",
            *map(value_text, (number(line, "seconds"), *(pick(line) for pick in columns.values()))),
        ]
        for line in chosen
    ]
    return run.name, ["iteration", "seconds", *columns], rows


def default_settings(run: RunData) -> dict[str, Any]:
    """The default settings of the run's game and solver; its own settings if the game cannot be made here."""
    config = run.config
    try:
        plain = default_config(config.game, config.solver, run.source)
    except (ConfigError, GameError):  # such as OpenSpiel, which is not installed
        plain = config
    return settings_by_name(dataclasses.replace(plain, game=config.game))


def _settings(runs: Sequence[RunData]) -> dict[str, Any]:
    """The settings of each run, or of one and the defaults, by title; all their names, and those that differ."""
    columns = {f"{letter(index)} {run.name}": settings_by_name(run.config) for index, run in enumerate(runs)}
    if len(runs) == 1:
        columns = {"this run": settings_by_name(runs[0].config), "default": default_settings(runs[0])}
    keys = list(dict.fromkeys(key for column in columns.values() for key in column))
    differing = [key for key in keys if len({repr(column.get(key)) for column in columns.values()}) > 1]
    return {"columns": columns, "keys": keys, "differing": differing}


def _shown(value: Any) -> str:
    """A setting in a form like TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ", ".join(map(_shown, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _sittings(run: RunData) -> Iterator[list[tuple[str, str]]]:
    """The environment of a run as pairs of texts, and each other environment in which it was resumed."""
    resumed = run.environment.get("resumed")
    for found in [run.environment, *(resumed if isinstance(resumed, list) else ())]:
        if not isinstance(found, dict):
            continue
        versions, pairs = found.get("versions"), [("environment", _UNKNOWN)]
        if found:
            libraries = (
                (f"{name} {version}" for name, version in versions.items()) if isinstance(versions, dict) else ()
            )
            pairs = [
                ("command", str(found.get("command") or _UNKNOWN)),
                ("commit", str(found.get("commit") or _UNKNOWN)),
                ("hardware", f"{found.get('processor') or 'processor unknown'}, {found.get('cores')} cores"),
                ("used", f"{found.get('device')}, {found.get('threads')} threads"),
                ("system", f"{found.get('platform')}, Python {found.get('python')}"),
                ("libraries", ", ".join(libraries) or _UNKNOWN),
            ]
        yield [("from", f"iteration {found['iteration']} on"), *pairs] if "iteration" in found else pairs


def value_text(value: float | None) -> str:
    """A number for running text, or a dash."""
    return "–" if value is None else figure(value)


def report(runs: Sequence[RunData]) -> str:
    """The page of some runs as one self-contained HTML file. Raises ConfigError for runs that cannot share a page."""
    require_comparable(runs)
    return whole_page(title(runs), body(runs))


def whole_page(title: str, body: Markup, script: str = "") -> str:
    """A self-contained page with a title, a body and, if it needs one, the file of its script."""
    style, code = (
        "\n".join((STATIC / name).read_text(encoding="utf-8") for name in names)
        for names in (_STYLES, (script,) if script else ())
    )
    return fill("report.html", title=title, style=Markup(style), body=body, script=Markup(code))


def write_report(path: Path) -> Path:
    """Write the report of a run into its folder. Raises the errors of reading the run and of writing a file."""
    folder = RunFolder.open(path).path
    return write_comparison([folder], folder / REPORT)


def write_comparison(paths: Sequence[Path], target: Path) -> Path:
    """Write a page of several runs on common charts. Raises the errors of `report`, of reading runs and of writing."""
    write_atomically(target, report([read_run(path, path.resolve().name) for path in paths]).encode())
    return target


class ReportingObserver(LiveObserver):
    """Updates the run's report after evaluations, if that takes little time, and at the end, also after an error."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._run: Path | None = None
        self._due = False
        self._spent = 0.0
        self._started = time.monotonic()

    def start(self, run: RunFolder, solver: Solver, notes: Iterable[str]) -> None:
        super().start(run, solver, notes)
        self._run = run.path

    def evaluated(self, iteration: int, fit: FitResult | None, result: Exploitability | None) -> None:
        super().evaluated(iteration, fit, result)
        self._due = True

    def iteration(self, record: Record, seconds: float) -> None:
        super().iteration(record, seconds)
        # an evaluation's metrics are written after `evaluated`, so its report is written in the next iteration
        if self._due and self._spent <= _SHARE * (time.monotonic() - self._started):
            self._write()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._write()

    def _write(self) -> None:
        if self._run is None:
            return
        start = time.monotonic()
        try:
            write_report(self._run)
        except DeepCFRError as error:  # a failed report must not end the run
            self.warn(f"{REPORT} was not written: {' '.join(error.problems)}")
        self._due = False
        self._spent += time.monotonic() - start
