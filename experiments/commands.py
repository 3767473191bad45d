"""Run an experiment by its name, for `deepcfr reproduce`."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from deepcfr.errors import ConfigError
from deepcfr.report.run_report import ReportingObserver
from experiments.grid import run_grid
from experiments.lin.runs import run_lin
from experiments.reproduction.results import jobs_of
from experiments.studies import STUDIES, Budget
from experiments.studies.lin import LIN_STUDIES
from experiments.table1.runs import run_table
from experiments.theorem1.runs import run_theorem

NAMES: tuple[str, ...] = (*STUDIES, "theorem1", "table1", *LIN_STUDIES)


def reproduce(
    what: str, budget: Budget, seeds: int, arms: tuple[str, ...], out: Path, console: Console
) -> dict[str, Any]:
    """Run every arm and seed of an experiment into run folders below `out`; return the numbers of new and existing runs.

    Raises ConfigError for an unknown experiment, and for `arms` if it is not a figure of the Deep CFR paper.
    """
    if what not in NAMES:
        raise ConfigError(f"There is no experiment '{what}'; there are {', '.join(NAMES)}.")
    study = next((study for study in STUDIES.values() if study.name == what), None)
    if study is not None:
        jobs = jobs_of(out, study, budget, seeds, arms)
        return dataclasses.asdict(run_grid(jobs, partial(ReportingObserver, console), console.print))
    if arms:
        raise ConfigError(f"--arms is for the paper's figures, and {what} is none.")
    observer = partial(ReportingObserver, console)
    if what == "theorem1":
        run_theorem(out, seeds, console.print)
        return {"finished": True}
    if what == "table1":
        return dataclasses.asdict(run_table(out, budget, seeds, observer, console.print))
    lin = next(study for study in LIN_STUDIES.values() if study.name == what)
    return dataclasses.asdict(run_lin(out, lin.name, budget, seeds, observer, console.print))
