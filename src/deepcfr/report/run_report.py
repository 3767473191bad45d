"""Write `report.html`, the self-contained page of a run, during and after a run.

It needs neither the web application nor its libraries, so every run has one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template
from types import TracebackType

from rich.console import Console

from deepcfr.errors import DeepCFRError
from deepcfr.evaluation.exploitability import Exploitability
from deepcfr.files import write_atomically
from deepcfr.report.run_data import RunData, read_run
from deepcfr.report.run_page import body, require_comparable, title
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.live import LiveObserver
from deepcfr.solvers.build import Record, Solver
from deepcfr.training.fit import FitResult

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
</body>
</html>
""")


def report(runs: Sequence[RunData]) -> str:
    """The page of some runs as one self-contained HTML file. Raises ConfigError for runs that cannot share a page."""
    require_comparable(runs)
    style = "\n".join((STATIC / name).read_text(encoding="utf-8") for name in _STYLES)
    return _PAGE.substitute(title=escape(title(runs)), style=style, body=body(runs))


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

    def __init__(self, console: Console, others: int = 0) -> None:
        super().__init__(console, others)
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
