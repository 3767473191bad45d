"""The command that reports on runs: the page of a run, a comparison, convergence curves."""

from __future__ import annotations

from pathlib import Path

from deepcfr.cli.records import Report
from deepcfr.errors import ConfigError


def report_command(command: Report) -> None:
    if command.run:
        _report_runs(command)
        return
    from deepcfr.report.charts import draw_curves
    from deepcfr.runs.folder import RunFolder

    if not command.what:
        raise ConfigError("report needs runs: name those whose curves it draws, or those of a page after --run.")
    if command.out is None or command.out.suffix != ".svg":
        asked = "is missing" if command.out is None else f"is '{command.out}'"
        raise ConfigError(f"--out must name the picture to write, ending in .svg, but {asked}.")
    draw_curves([RunFolder.open(Path(path)) for path in command.what], command.out)
    print(f"Wrote {command.out}.")


def _report_runs(command: Report) -> None:
    from deepcfr.report.run_report import write_comparison, write_report

    if command.what:
        raise ConfigError("--run writes a page of runs: give all runs after it, and no other arguments except --out.")
    if command.out is not None and command.out.suffix != ".html":
        raise ConfigError(f"With --run, --out must name the page to write, ending in .html, but is '{command.out}'.")
    if command.out is not None:
        path = write_comparison(command.run, command.out)
    elif len(command.run) == 1:
        path = write_report(command.run[0])
    else:
        raise ConfigError("--out must name the page of several runs, ending in .html, but is missing.")
    print(f"Wrote {path}.")
