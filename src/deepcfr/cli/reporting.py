"""Commands that reproduce and report: the paper's experiments, figures, benchmarks."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

from deepcfr.cli.output import open_console, print_json, warn
from deepcfr.cli.records import Bench, Report, Reproduce
from deepcfr.errors import ClusterError, ConfigError


def reproduce_command(command: Reproduce) -> None:
    from deepcfr.report.studies import STUDIES, number_of_seeds
    from deepcfr.report.studies.lin import LIN_STUDIES

    seeds = number_of_seeds(command.seeds, command.what, command.budget)
    if command.arms and command.what not in STUDIES:
        raise ConfigError(f"--arms is for the paper's figures, and {command.what} is none.")
    console = open_console(command.json)
    if command.what == "theorem1":
        from deepcfr.report.theorem1.runs import run_theorem

        run_theorem(command.out, seeds, console.print)
        facts: dict[str, Any] = {"finished": True}
    elif command.what == "table1":
        from deepcfr.report.table1.runs import run_table
        from deepcfr.web.run_report import ReportingObserver

        observer = partial(ReportingObserver, console)
        facts = dataclasses.asdict(run_table(command.out, command.budget, seeds, observer, console.print))
    elif command.what in LIN_STUDIES:
        from deepcfr.report.lin.runs import run_lin
        from deepcfr.web.run_report import ReportingObserver

        observer = partial(ReportingObserver, console)
        where = (command.out, command.what, command.budget, seeds)
        facts = dataclasses.asdict(run_lin(*where, observer, console.print))
    else:
        from deepcfr.report.reproduction.results import jobs_of
        from deepcfr.runs.study import run_grid
        from deepcfr.web.run_report import ReportingObserver

        assert command.what in STUDIES
        jobs = jobs_of(command.out, STUDIES[command.what], command.budget, seeds, command.arms)
        facts = dataclasses.asdict(run_grid(jobs, lambda: ReportingObserver(console), console.print))
    if command.json:
        print_json({"study": command.what, "budget": command.budget, "seeds": seeds} | facts)
    elif facts["finished"]:
        console.print("All runs are there. Write the report with: deepcfr report")
    else:
        console.print("Stopped. The same command goes on from here.")


def report_command(command: Report) -> None:
    if command.run:
        _report_runs(command)
        return
    if command.what[:1] == ("fig2",):
        _report_figure(command)
        return
    if not command.what:
        _report_reproduction(command)
        return
    from deepcfr.report.charts import draw_curves
    from deepcfr.runs.folder import RunFolder

    if command.png:
        raise ConfigError("--png is for fig2; a picture of runs is a PNG if the name after --out ends in .png.")
    if command.out is None or command.out.suffix not in (".svg", ".png"):
        asked = "is missing" if command.out is None else f"is '{command.out}'"
        raise ConfigError(f"--out must name the picture to write, ending in .svg or .png, but {asked}.")
    draw_curves([RunFolder.open(Path(path)) for path in command.what], command.out)
    print(f"Wrote {command.out}.")


def _report_runs(command: Report) -> None:
    from deepcfr.web.run_report import write_comparison, write_report

    if command.what or command.png:
        raise ConfigError("--run writes a page of runs: name them all after it, and nothing else but --out.")
    if command.out is not None and command.out.suffix != ".html":
        raise ConfigError(f"With --run, --out must name the page to write, ending in .html, but is '{command.out}'.")
    if command.out is not None:
        path = write_comparison(command.run, command.out)
    elif len(command.run) == 1:
        path = write_report(command.run[0])
    else:
        raise ConfigError("--out must name the page of several runs, ending in .html, but is missing.")
    print(f"Wrote {path}.")


def _report_reproduction(command: Report) -> None:
    from deepcfr.report.reproduction.page import write_reproduction

    if command.png:
        raise ConfigError("--png is for fig2; the figures of the page are written as SVG and as PNG anyway.")
    for path in write_reproduction(command.studies, command.out or Path("docs"), warn):
        print(f"Wrote {path}.")


def _report_figure(command: Report) -> None:
    from deepcfr.report.fig2 import write_figure

    runs = [Path(path) for path in command.what[1:]]
    for path in write_figure(runs, command.out or Path("runs/report"), command.png, warn):
        print(f"Wrote {path}.")


def bench_command(command: Bench) -> None:
    console = open_console(command.json)
    if command.iterations < 1:
        raise ConfigError(f"--iterations must be at least 1, but is {command.iterations}.")
    if command.what == "tabular":
        from deepcfr.report.bench.tabular import bench_tabular

        facts = bench_tabular(command.seed, console.print)
    elif command.what == "nfsp":
        from deepcfr.report.bench.nfsp import bench_nfsp

        facts = bench_nfsp(command.seed, console.print)
    elif command.what == "threads":
        from deepcfr.report.bench.threads import bench_threads

        facts = bench_threads(command.seed, console.print)
    elif command.what == "scale":
        try:
            from deepcfr.report.bench.scale import bench_scale
        except ImportError as error:
            raise ClusterError("bench scale needs Ray: pip install 'deepcfr[ray]'.") from error

        facts = bench_scale(command.seed, console.print)
    else:
        from deepcfr.report.bench.deep_cfr import bench_fhp, bench_openspiel

        if command.what == "openspiel":
            facts = bench_openspiel(command.iterations, command.seed, console.print)
        else:
            facts = bench_fhp(command.seed, console.print)
    if command.json:
        print_json(facts)
