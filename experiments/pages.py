"""Shared parts of the experiments' pages: Markdown, existing runs and seeds, costs of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from deepcfr.core.errors import DeepCFRError
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import read_metrics
from experiments.grid import Job, difference, is_complete
from experiments.studies import LEAST_SEEDS

NOT_THERE = "not run"
STOPPED = "stopped at iteration"  # how the reason for an unfinished run begins

# Markdown


def paragraphs(*texts: str) -> Iterator[str]:
    """Texts with an empty line after each."""
    for text in texts:
        yield text
        yield ""


def table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table and an empty line; cells may hold bars."""
    yield _row(head)
    yield "|" + "---|" * len(head)
    for cells in rows:
        yield _row(cells)
    yield ""


def bullets(sentences: Iterable[str]) -> Iterator[str]:
    """A list and an empty line; empty for no sentences."""
    items = [f"* {sentence}" for sentence in sentences]
    yield from (*items, "") if items else ()


def sections_of(page: str) -> dict[str, list[str]]:
    """The lines of each section of a page, by its title."""
    found = (text.rstrip().split("\n") for text in page.split("\n## ")[1:])
    return {lines[0]: [f"## {lines[0]}", *lines[1:], ""] for lines in found}


def command(name: str, budget: str) -> str:
    """The command that makes the runs of a study."""
    return f"python -m experiments reproduce {name} --budget {budget}"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# Runs


def seeds_of(folder: Path, arm: str) -> set[int]:
    """The seeds of an arm that have a run below a folder."""
    names = (path.parent.name.removeprefix(f"{arm}-s") for path in folder.glob(f"{arm}-s*/config.toml"))
    return {int(name) for name in names if name.isdigit()}


def asked_seeds(found: Iterable[int]) -> range:
    """All seeds up to the largest one found, at least as many as an interval needs."""
    return range(max(LEAST_SEEDS, 1 + max(found, default=0)))


def why_missing(job: Job, complete: Callable[[RunFolder], bool] = is_complete) -> str | None:
    """The reason why the folder of a job does not hold its finished run, without a full stop; None if it does.

    A run that was evaluated at other iterations counts, because evaluations do not change it, and so does one of Deep CFR
    that kept snapshots at others, if they are not what is evaluated. One that was started for fewer iterations is told as
    stopped.
    """
    if not (job.path / "config.toml").is_file():
        return NOT_THERE
    try:
        run = RunFolder.open(job.path)
        asked = job.config.evaluation
        evaluation = replace(run.config.evaluation, every=asked.every, at=asked.at)
        config, planned = replace(run.config, evaluation=evaluation), job.config
        if config.solver == "deep-cfr":
            config = replace(config, iterations=max(config.iterations, planned.iterations))
            if planned.evaluation.policy != "sd-cfr":
                config = replace(config, cfr=replace(config.cfr, keep_networks=planned.cfr.keep_networks))
        problem = difference(config, planned)
    except DeepCFRError as error:
        return " ".join(error.problems).rstrip(".")
    if problem:
        return f"of other settings: {problem}"
    lines = read_metrics(run.metrics_path)
    reached = lines[-1]["iteration"] if lines else 0
    if complete(run) and (reached >= planned.iterations or planned.runtime.minutes):
        return None
    return f"{STOPPED} {reached:,} of {planned.iterations:,}"
