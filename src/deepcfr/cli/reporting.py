"""Commands that reproduce and report: the paper's experiments, figures, benchmarks."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import deepcfr
from deepcfr.cli.output import open_console, print_json
from deepcfr.cli.records import Bench, Report, Reproduce
from deepcfr.errors import ClusterError, ConfigError


def reproduce_command(command: Reproduce) -> None:
    _find_experiments()
    from experiments.commands import reproduce
    from experiments.studies import number_of_seeds

    console = open_console(command.json)
    seeds = number_of_seeds(command.seeds, command.what, command.budget)
    facts = reproduce(command.what, command.budget, seeds, command.arms, command.out, console)
    if command.json:
        print_json({"study": command.what, "budget": command.budget, "seeds": seeds} | facts)
    elif facts["finished"]:
        console.print(f"All runs are finished. Write the report with: deepcfr report --studies {command.out}")
    else:
        console.print("Stopped. The same command resumes from here.")


def _find_experiments() -> None:
    """Make `experiments` importable from the checkout of this package. Raises ConfigError outside a checkout."""
    checkout = Path(deepcfr.__file__).parents[2]
    if not (checkout / "experiments" / "__init__.py").is_file():
        raise ConfigError("This command needs the folder experiments/ of a checkout; an installed package lacks it.")
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))


def report_command(command: Report) -> None:
    if command.run:
        _report_runs(command)
        return
    if not command.what:
        _report_reproduction(command)
        return
    from deepcfr.report.charts import draw_curves
    from deepcfr.runs.folder import RunFolder

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


def _report_reproduction(command: Report) -> None:
    _find_experiments()
    from experiments.reproduction.page import write_reproduction
    from experiments.statements import write_statements

    out = command.out or Path("docs")
    for path in [*write_reproduction(command.studies, out), write_statements(out)]:
        print(f"Wrote {path}.")


def bench_command(command: Bench) -> None:
    console = open_console(command.json)
    if command.iterations < 1:
        raise ConfigError(f"--iterations must be at least 1, but is {command.iterations}.")
    _find_experiments()
    module = "deep_cfr" if command.what in ("openspiel", "fhp") else command.what
    try:
        bench = getattr(import_module(f"experiments.bench.{module}"), f"bench_{command.what}")
    except ImportError as error:
        if command.what != "scale":
            raise
        raise ClusterError("bench scale needs Ray: pip install 'deepcfr[ray]'.") from error
    console.print(f"Measuring {command.what}: each figure is printed when it is there, which may take minutes.")
    before = (command.iterations,) if command.what == "openspiel" else ()
    facts = bench(*before, command.seed, console.print)
    if command.json:
        print_json(facts)
