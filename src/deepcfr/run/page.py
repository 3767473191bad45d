"""The page of one run, or of several on common charts: curves, exact evaluations, settings, environment.

Functions from `RunData` to HTML, which need none of the libraries of the web application, so that every run has a
`report.html`, the self-contained page that is written during and after it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template
from types import TracebackType
from typing import Any

from rich.console import Console

from deepcfr.config import settings_by_name
from deepcfr.core.errors import ConfigError, DeepCFRError, GameError
from deepcfr.core.files import write_atomically
from deepcfr.defaults import default_config
from deepcfr.measure.exploitability import Exploitability
from deepcfr.network.fit import FitResult
from deepcfr.run.chart import LOOKS, Chart, dashes, draw, figure
from deepcfr.run.curves import MEASURES, charts, letter, several_games
from deepcfr.run.folder import RunFolder
from deepcfr.run.live import LiveObserver
from deepcfr.run.metrics import nash_conv, number
from deepcfr.run.record import RunData, read_run
from deepcfr.solve.base import Record, Solver

_ROWS = 15  # rows of the table of the curves' numbers
_UNKNOWN = "not recorded"


def require_comparable(runs: Sequence[RunData]) -> None:
    """Raise ConfigError for more runs than a chart can distinguish, and for runs of several games."""
    if len(runs) > LOOKS:
        raise ConfigError(f"At most {LOOKS} runs share a page, but {len(runs)} were requested.")
    if problems := several_games(runs):
        raise ConfigError(problems)


def title(runs: Sequence[RunData]) -> str:
    """The title of the page."""
    return ", ".join(run.name for run in runs)


def body(runs: Sequence[RunData]) -> str:
    """The page below its heading; elements with `data-live` are updated while a run goes on."""
    parts = [_heads(runs)]
    if len(runs) > 1:
        parts.append(_key(runs))
    parts += [_charts(runs), _evaluations(runs), _numbers(runs), _settings(runs), _environments(runs)]
    return "\n".join(parts)


def _heads(runs: Sequence[RunData]) -> str:
    if len(runs) == 1:
        return f'<div data-live="figures">{_state(runs[0])}{_tiles(runs[0])}</div>'
    rows = "".join(_head_row(index, run) for index, run in enumerate(runs))
    head = cells("th", ("run", "what it is", "state", "seed"))
    head += cells("th", ("iterations", "nodes touched", "time", f"NashConv, {runs[0].unit}", "best"), "number")
    return f'<div class="panel" data-live="figures">{table("Runs", head, rows)}</div>'


def _head_row(index: int, run: RunData) -> str:
    row = f'<th scope="row">{letter(index)} {escape(run.name)}</th>'
    row += cells("td", (run.method, "finished" if run.finished else "not finished", str(run.config.seed)))
    figures = (run.progress, _nodes(run), _time(run), value_text(run.nash_conv), _best(run))
    return f"<tr>{row}{cells('td', figures, 'number')}</tr>"


def _state(run: RunData) -> str:
    state = '<strong class="good">finished</strong>' if run.finished else "<strong>not finished</strong>"
    return (
        f'<p class="muted">{escape(run.method)} on {escape(run.game)}, seed {run.config.seed} · {state}, '
        f"{run.progress} iterations</p>"
    )


def _tiles(run: RunData) -> str:
    tiles = [
        (f"NashConv, {run.unit}", value_text(run.nash_conv)),
        ("best", _best(run)),
        ("nodes touched", _nodes(run)),
        ("wall time", _time(run)),
    ]
    pairs = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in tiles)
    return f'<dl class="tiles">{pairs}</dl>'


def _best(run: RunData) -> str:
    measured = [(value, line["iteration"]) for line in run.lines if (value := nash_conv(line)) is not None]
    return f"{figure(min(measured)[0])} at {min(measured)[1]:,}" if measured else "–"


def _nodes(run: RunData) -> str:
    nodes = number(run.lines[-1], "total_nodes_touched") if run.lines else None
    return "–" if nodes is None else f"{nodes:,.0f}"


def _time(run: RunData) -> str:
    seconds = number(run.lines[-1], "seconds") if run.lines else None
    if seconds is None:
        return "–"
    if seconds < 600:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min" if seconds >= 7200 else f"{seconds / 60:.0f} min"


def _key(runs: Sequence[RunData]) -> str:
    """The key of lines and runs."""
    items = "".join(
        f'<li><svg class="sample" viewBox="0 0 36 10" aria-hidden="true">{_sample(index)}</svg> '
        f"<strong>{letter(index)}</strong> {escape(run.name)}</li>"
        for index, run in enumerate(runs)
    )
    return f'<ul class="key" aria-label="Lines">{items}</ul>'


def _sample(index: int) -> str:
    return f'<g class="series-{index + 1}"><path class="curve" d="M1 5H35"{dashes(index)}/></g>'


def _charts(runs: Sequence[RunData]) -> str:
    shown = charts(runs)
    figures = "\n".join(_figure(chart, place == 0) for place, chart in enumerate(shown))
    thinned = max(run.every for run in runs)
    note = f'<p class="muted">Of each {thinned:,} iterations one is drawn.</p>' if thinned > 1 else ""
    return f'<section class="charts" aria-label="Curves">\n{figures}\n</section>{note}'


def _figure(chart: Chart, focusable: bool) -> str:
    note = f'<p class="muted">{escape(chart.note)}</p>' if chart.note else ""
    name = escape(chart.title)
    drawn = draw(chart, focusable)
    return f'<figure class="panel" data-live="{name}"><figcaption>{name}</figcaption>{drawn}{note}</figure>'


def _evaluations(runs: Sequence[RunData]) -> str:
    unit = escape(runs[0].unit)
    several = len(runs) > 1
    names = ("iteration", "seconds", "nodes touched", f"NashConv, {unit}", "exploitability",
             "best response of player 0", "of player 1", "value to player 0", "evaluation, s")  # fmt: skip
    head = ("<th>run</th>" if several else "") + cells("th", names, "number") + "<th>policy</th>"
    rows = "".join(
        f"<tr>{f'<td>{escape(run.name)}</td>' if several else ''}{_evaluation(line)}</tr>"
        for run in runs
        for line in run.evaluated
    )
    said = (
        f"<p>NashConv is exact: what both players gain by best responses to the average strategy, in {unit}; "
        "exploitability is half of it. Time includes evaluations.</p>"
    )
    shown = table("Exact evaluations", head, rows) if rows else "<p>There is none yet.</p>"
    return _details("Exact evaluations", said + shown, True)


def _evaluation(line: dict[str, Any]) -> str:
    found = line["evaluation"]
    values = (
        number(found, "nash_conv"),
        number(found, "exploitability"),
        number(found, "best_response_values", 0),
        number(found, "best_response_values", 1),
        number(found, "value"),
        number(found, "seconds"),
    )
    seconds, nodes = number(line, "seconds"), number(line, "total_nodes_touched")
    spent = "–" if seconds is None else f"{seconds:,.1f}"
    touched = "–" if nodes is None else f"{nodes:,.0f}"
    row = cells("td", (f"{line['iteration']:,}", spent, touched, *map(value_text, values)), "number")
    return row + cells("td", (str(found.get("policy", "–")),))


def _numbers(runs: Sequence[RunData]) -> str:
    """The curves as numbers at a few iterations, for readers without a pointer."""
    tables = "".join(_number_table(run, len(runs) > 1) for run in runs if run.lines)
    return _details("Curves as numbers", tables or "<p>No iteration is recorded yet.</p>", True)


def _number_table(run: RunData, named: bool) -> str:
    step = max(1, -(-len(run.lines) // _ROWS))
    chosen = [*run.lines[::-step]][::-1]
    columns = [
        (f"{measure.title}, {label}" if len(measure.parts) > 1 else measure.title, pick)
        for measure in MEASURES
        if measure.x != "total_nodes_touched"
        for label, pick in measure.parts
        if any(pick(line) is not None for line in chosen)
    ]
    head = cells("th", ("iteration", "seconds", *(name for name, _ in columns)), "number")
    rows = "".join(
        "<tr>"
        + cells("td", (f"{line['iteration']:,}", value_text(number(line, "seconds"))), "number")
        + cells("td", (value_text(pick(line)) for _, pick in columns), "number")
        + "</tr>"
        for line in chosen
    )
    return (f"<p><strong>{escape(run.name)}</strong></p>" if named else "") + table(f"Curves of {run.name}", head, rows)


def default_settings(run: RunData) -> dict[str, Any]:
    """The default settings of the run's game and solver; its own settings if the game cannot be made here."""
    config = run.config
    try:
        plain = default_config(config.game, config.solver, run.source)
    except (ConfigError, GameError):  # such as OpenSpiel, which is not installed
        plain = config
    return settings_by_name(dataclasses.replace(plain, game=config.game))


def _settings(runs: Sequence[RunData]) -> str:
    """Settings that differ between runs or from the defaults, then all settings."""
    own = [settings_by_name(run.config) for run in runs]
    if len(runs) == 1:
        plain = default_settings(runs[0])
        columns, heads = [*own, plain], ["this run", "default"]
    else:
        columns, heads = own, [f"{letter(index)} {run.name}" for index, run in enumerate(runs)]
    keys = list(dict.fromkeys(key for column in columns for key in column))
    differing = [key for key in keys if len({repr(column.get(key)) for column in columns}) > 1]
    head = cells("th", ("setting", *heads))
    what = "Settings that differ from the defaults" if len(runs) == 1 else "Settings that differ"
    some = table(what, head, "".join(_setting(key, columns) for key in differing)) if differing else "<p>None.</p>"
    everything = table("All settings", head, "".join(_setting(key, columns) for key in keys))
    return f'<section class="panel"><h2>{what}</h2>{some}</section>' + _details("All settings", everything, False)


def _setting(key: str, columns: Sequence[dict[str, Any]]) -> str:
    shown = ("–" if key not in column else _shown(column[key]) for column in columns)
    return f'<tr><th scope="row"><code>{escape(key)}</code></th>{cells("td", shown)}</tr>'


def _shown(value: Any) -> str:
    """A setting in a form like TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ", ".join(map(_shown, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _environments(runs: Sequence[RunData]) -> str:
    blocks = "".join(_environment(run, len(runs) > 1) for run in runs)
    return f'<section class="panel"><h2>Made with</h2>{blocks}</section>'


def _environment(run: RunData, named: bool) -> str:
    """The environment of the run, and other environments in which it was resumed."""
    resumed = run.environment.get("resumed")
    sittings = [run.environment, *(resumed if isinstance(resumed, list) else ())]
    blocks = "".join(_sitting(sitting) for sitting in sittings if isinstance(sitting, dict))
    return (f"<h3>{escape(run.name)}</h3>" if named else "") + blocks


def _sitting(found: dict[str, Any]) -> str:
    versions = found.get("versions")
    pairs = [("environment", _UNKNOWN)]
    if found:
        pairs = [
            ("command", str(found.get("command") or _UNKNOWN)),
            ("commit", str(found.get("commit") or _UNKNOWN)),
            ("hardware", f"{found.get('processor') or 'processor unknown'}, {found.get('cores')} cores"),
            ("used", f"{found.get('device')}, {found.get('threads')} threads"),
            ("system", f"{found.get('platform')}, Python {found.get('python')}"),
            (
                "libraries",
                ", ".join(f"{k} {v}" for k, v in versions.items()) if isinstance(versions, dict) else _UNKNOWN,
            ),
        ]
    if "iteration" in found:
        pairs.insert(0, ("from", f"iteration {found['iteration']} on"))
    rows = "".join(f"<div><dt>{name}</dt><dd><code>{escape(text)}</code></dd></div>" for name, text in pairs)
    return f'<dl class="made">{rows}</dl>'


def value_text(value: float | None) -> str:
    """A number for running text, or a dash."""
    return "–" if value is None else figure(value)


def cells(tag: str, texts: Iterable[str], kind: str = "") -> str:
    """Table cells of a kind, with their texts escaped."""
    attribute = f' class="{kind}"' if kind else ""
    return "".join(f"<{tag}{attribute}>{escape(text)}</{tag}>" for text in texts)


def table(label: str, head: str, rows: str) -> str:
    """A table that scrolls horizontally if it does not fit, also by keyboard."""
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _details(summary: str, inside: str, live: bool) -> str:
    mark = f' data-live="{escape(summary)}"' if live else ""
    return f'<details class="panel"><summary>{escape(summary)}</summary><div{mark}>{inside}</div></details>'


REPORT = "report.html"
STATIC = Path(__file__).parent / "static"
_SHARE = 0.02  # most of a run's time for reports before its end
_STYLES = ("style.css", "run.css")
_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<style>
$style
</style>
</head>
<body>
<main>
<h1>$title</h1>
<div class="run">
$body
</div>
</main>
$script</body>
</html>
""")


def report(runs: Sequence[RunData]) -> str:
    """The page of some runs as one self-contained HTML file. Raises ConfigError for runs that cannot share a page."""
    require_comparable(runs)
    return whole_page(title(runs), body(runs))


def whole_page(title: str, body: str, script: str = "") -> str:
    """A self-contained page with a title, a body of HTML and, if it needs one, the file of its script."""
    style = "\n".join((STATIC / name).read_text(encoding="utf-8") for name in _STYLES)
    run = f"<script>\n{(STATIC / script).read_text(encoding='utf-8')}</script>\n" if script else ""
    return _PAGE.substitute(title=escape(title), style=style, body=body, script=run)


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
