"""The papers' experiments, the pages about them and the benchmarks: python -m experiments reproduce|report|bench."""

from __future__ import annotations

import inspect
import sys
from dataclasses import asdict, dataclass
from functools import partial, reduce
from importlib import import_module
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional, subcommand

from deepcfr.cli import run_as_command
from deepcfr.cli.help import LONG, MARKERS, rules_of_help
from deepcfr.cli.output import open_console, print_json
from deepcfr.cli.records import Folder
from deepcfr.config import RunConfig
from deepcfr.core.errors import ConfigError
from deepcfr.core.files import write_atomically
from deepcfr.run.page import ReportingObserver
from experiments.fhp_learning import pages
from experiments.grid import run_grid
from experiments.kept_runs import KEPT
from experiments.reproduction.page import write_reproduction
from experiments.reproduction.results import jobs_of
from experiments.statements import write_statements
from experiments.studies import STUDIES, Budget
from experiments.theorem1.runs import run_theorem

NAMES: tuple[str, ...] = (*STUDIES, "theorem1")


@dataclass
class Reproduce:
    """Run an experiment of a paper: every arm and seed is a run folder. Finished runs are kept, others are resumed."""

    #: a figure of the Deep CFR paper (fig2, fig3-left, fig3-middle, fig3-right, fig4-left, fig4-right), the first
    #: iterations of its figures 3 and 4 on FHP itself (fhp, only with the paper budget), figures 2 and 3 of its first
    #: version (v1, only with the quick budget), its bound on average regret (theorem1), or Lin's changes to Monte Carlo CFR
    #: (lin, only with the quick budget). Also the relatives of Deep CFR
    #: on Leduc (family), and for equal time on FHP, a small FHP, Leduc and Kuhn poker (family-fhp, family-mini,
    #: family-leduc, family-kuhn) after a search of the size of an iteration (family-search), only with the quick budget
    what: Positional[str]
    #: quick: a smaller FHP game, for two cores; paper: the scale of the paper, for a GPU
    budget: Budget = "quick"
    seeds: int = 3  # run seeds 0 to N-1 of every arm
    arms: tuple[str, ...] = ()  # run only these arms of a figure, by folder name (default: all)
    out: Folder = Path("runs/studies")  # the folder of all experiments
    json: bool = False  # print one JSON object; progress goes to standard error

    def run(self) -> None:
        """Make the missing runs."""
        console = open_console(self.json)
        if not 1 <= self.seeds <= 1000:
            raise ConfigError(f"--seeds must be between 1 and 1,000, but is {self.seeds}.")
        if self.what not in NAMES:
            raise ConfigError(f"There is no experiment '{self.what}'; there are {', '.join(NAMES)}.")
        facts: dict[str, Any] = {"finished": True}
        if study := next((study for study in STUDIES.values() if study.name == self.what), None):
            jobs = jobs_of(self.out, study, self.budget, self.seeds, self.arms)
            facts = asdict(run_grid(jobs, partial(ReportingObserver, console), console.print))
        elif self.arms:
            raise ConfigError(f"--arms is for the paper's figures, and {self.what} is none.")
        else:
            run_theorem(self.out, self.seeds, console.print)
        if self.json:
            print_json({"study": self.what, "budget": self.budget, "seeds": self.seeds} | facts)
        elif facts["finished"]:
            console.print(f"All runs are finished. Write the pages: python -m experiments report --studies {self.out}")
        else:
            console.print("Stopped. The same command resumes from here.")


@dataclass
class Report:
    """Write the pages docs/reproduction*.md that have runs, with their figures, docs/statements.md, and what has records:
    docs/benchmarks.md and the tables of docs/fhp.md and README.md. Without options from the records that are kept.
    """

    out: Folder = Path("docs")  # the folder of the pages
    studies: Folder = KEPT  # the folder of runs, such as runs/studies of `reproduce`

    def run(self) -> None:
        """Write the pages."""
        for path in [*write_reproduction(self.studies, self.out), write_statements(self.out)]:
            print(f"Wrote {path}.")
        for path, text in pages(self.out).items():
            write_atomically(path, text.encode())
            print(f"Wrote {path}.")


@dataclass
class Bench:
    """Measure speed: against OpenSpiel in the same process, and on hold'em games."""

    #: openspiel: Deep CFR against OpenSpiel's; fhp: Deep CFR on FHP; tabular: tabular solvers; nfsp: NFSP against
    #: OpenSpiel's; threads: MCCFR against plain Python; search: single decisions of limit hold'em, and spots
    what: Positional[Literal["openspiel", "fhp", "tabular", "nfsp", "threads", "search"]]
    iterations: int = 20  # openspiel: CFR iterations of OpenSpiel
    seed: int = 0  # seed of what is measured
    json: bool = False  # print one JSON object; progress goes to standard error

    def run(self) -> None:
        """Measure."""
        console = open_console(self.json)
        if self.iterations < 1:
            raise ConfigError(f"--iterations must be at least 1, but is {self.iterations}.")
        module = "deep_cfr" if self.what in ("openspiel", "fhp") else self.what
        bench = getattr(import_module(f"experiments.bench.{module}"), f"bench_{self.what}")
        console.print(f"Measuring {self.what}: each figure is printed when it is there, which may take minutes.")
        before = (self.iterations,) if self.what == "openspiel" else ()
        facts = bench(*before, self.seed, console.print)
        if self.json:
            print_json(facts)


def main() -> None:
    """Run a command; what can be mended ends with status 2 and plain sentences."""
    run_as_command(lambda arguments: read(arguments).run(), goes_on=sys.argv[1:2] != ["bench"])


def read(arguments: list[str]) -> Reproduce | Report | Bench:
    """The record of the arguments; prints the help that they ask for, or what is wrong with them, and exits."""
    kinds = (Reproduce, Report, Bench)
    choices: list[Any] = [
        Annotated[kind, subcommand(kind.__name__.lower(), description=inspect.getdoc(kind) or "")] for kind in kinds
    ]
    return tyro.cli(
        reduce(or_, choices),
        args=["--help" if word == LONG else word for word in arguments],
        prog="python -m experiments",
        description=__doc__ or "",
        config=MARKERS,
        registry=rules_of_help(type(None), None, RunConfig()),
    )


if __name__ == "__main__":
    main()
