"""Results: pages of runs with their new metrics, and cross tables of tournaments with marks of significant gains.

Tables come from files with the output of `deepcfr tournament --json` and `deepcfr match --json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field, FiniteFloat

from deepcfr.core.errors import CheckpointError, DeepCFRError
from deepcfr.core.files import read_json
from deepcfr.core.types import Bools
from deepcfr.run.chart import LOOKS
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import read_new
from deepcfr.run.page import body, report, require_comparable, title, value_text
from deepcfr.run.record import RunData, finished_at, read_run
from deepcfr.web.play import PROBLEMS
from deepcfr.web.site import NamedRun, Site, render

MOST_NEW = 1_000  # most lines of metrics in one answer
Names = Annotated[list[str], Query(alias="with", max_length=LOOKS, description="names of runs")]
_LARGEST = 5_000_000  # most bytes of a file that is read
_SHADES = (1 / 3, 2 / 3)  # shares of a table's largest gain from which cells are darker


@dataclass(frozen=True)
class MatchCell:
    """The gain of a row's player against a column's player."""

    mean: float
    interval: float  # half-width of the 95 % interval; 0 if exact

    @property
    def sure(self) -> bool:
        """Whether the interval excludes 0."""
        return abs(self.mean) > self.interval

    @property
    def text(self) -> str:
        """The mean with its sign."""
        return f"{self.mean:+,.1f}" if abs(self.mean) >= 0.05 else "0.0"

    @property
    def margin(self) -> str:
        """The interval as text after the mean, empty if there is none."""
        return f"± {self.interval:,.1f}" if self.interval else ""

    @property
    def sign(self) -> tuple[str, str]:
        """A sign for gains and losses, for readers who do not see colours, and its meaning, for screen readers."""
        if not self.sure:
            return "", "no clear winner"
        return ("▲", "gains") if self.mean > 0 else ("▼", "loses")


@dataclass(frozen=True)
class Entry:
    """A row of a table: a player, its mean over its opponents, and its match with each player.

    The match is None for itself and for players without a match against it.
    """

    number: int
    name: str
    kind: str
    average: MatchCell
    cells: tuple[MatchCell | None, ...]


@dataclass(frozen=True)
class CrossTable:
    """Each player against each other, best first; in the game's milli unit."""

    source: str
    game: str
    unit: str
    terms: str  # terms of the matches, in words
    entries: tuple[Entry, ...]

    @cached_property
    def _largest(self) -> float:
        return max(abs(cell.mean) for entry in self.entries for cell in entry.cells if cell)

    def shade(self, cell: MatchCell) -> str:
        """The class of a cell: gain or loss, in three shades by size, or open."""
        if not cell.sure:
            return "open"
        size = 1 + sum(abs(cell.mean) > share * self._largest for share in _SHADES)
        return f"{'gain' if cell.mean > 0 else 'loss'}-{size}"


class _Results(BaseModel):
    """The part of the output of a tournament that a table shows."""

    game: str
    unit: str
    names: list[str] = Field(min_length=2)
    policies: list[str]
    mean: list[list[FiniteFloat | None]]  # None for pairs that did not play
    interval: list[list[FiniteFloat | None]]
    boards: int
    hands: int


def cross_table(facts: dict[str, Any], source: str) -> CrossTable:
    """A table from the output of a tournament or a match. Raises CheckpointError for anything else."""
    try:
        if "runs" in facts:  # the output of a match
            value, half = float(facts["mean"]), float(facts["interval"])
            table = {"mean": [[0.0, value], [-value, 0.0]], "interval": [[0.0, half], [half, 0.0]]}
            facts = facts | table | {"names": facts["runs"]}
        results = _Results.model_validate(facts)
        mean, interval = (np.array(rows, np.float64) for rows in (results.mean, results.interval))
        _require_pairs(len(results.names), len(results.policies), ~np.isnan(mean), ~np.isnan(interval))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"'{source}' holds no result of a tournament or a match, as 'deepcfr tournament --json' prints it."
        ) from error
    # the mean of intervals is valid also for matches that share deals
    opponents = (~np.isnan(mean)).sum(1) - 1  # a player has a gain of 0 against itself
    averages, halves = np.nansum(mean, 1) / opponents, np.nansum(interval, 1) / opponents
    order = np.argsort(-averages, kind="stable").tolist()
    entries = tuple(
        Entry(
            place,
            results.names[i],
            results.policies[i],
            MatchCell(float(averages[i]), float(halves[i])),
            tuple(
                None if i == j or np.isnan(mean[i, j]) else MatchCell(float(mean[i, j]), float(interval[i, j]))
                for j in order
            ),
        )
        for place, i in enumerate(order, start=1)
    )
    return CrossTable(source, results.game, results.unit, _terms(results.boards, results.hands), entries)


def _require_pairs(names: int, kinds: int, met: Bools, known: Bools) -> None:
    """Raise ValueError unless every match is in both rows and every player has a match."""
    square = met.shape == known.shape == (names, names) and kinds == names
    if not square or (met != known).any() or (met != met.T).any() or not met.diagonal().all() or met.sum(1).min() < 2:
        raise ValueError("a match is missing")


def _terms(boards: int, hands: int) -> str:
    if hands:
        return f"{hands:,} deals for each match, played in both seats"
    return f"all hands on {boards:,} sampled boards for each match, in both seats" if boards else "exact, in both seats"


def find_tables(paths: Sequence[Path]) -> tuple[list[CrossTable], list[str]]:
    """The tables in files and folders, and a sentence for each named file without one."""
    tables: dict[str, CrossTable] = {}  # by file, because a file and its folder may both be named
    problems: list[str] = []
    for path in paths:
        try:
            found = list(_in_folder(path)) if path.is_dir() else [cross_table(read_json(path), str(path))]
        except CheckpointError as error:
            problems += error.problems
        else:
            tables |= {table.source: table for table in found}
    return list(tables.values()), problems


def _in_folder(folder: Path) -> Iterator[CrossTable]:
    """The tables in the JSON files of a folder; other JSON files are skipped."""
    for path in sorted((*folder.glob("*.json"), *folder.glob("*/*.json"))):
        try:
            if path.stat().st_size <= _LARGEST:
                yield cross_table(read_json(path), str(path))
        except (OSError, CheckpointError):
            continue


class NewLines(BaseModel):
    """New lines of a run's metrics."""

    lines: list[dict[str, Any]] = Field(description="lines of metrics.jsonl, oldest first")
    next: int = Field(description="what to ask for as `after` the next time")
    finished: bool = Field(description="whether the run has come to its end")


def router(site: Site) -> APIRouter:
    """The routes of the pages of runs and tournaments, and the metrics of runs as JSON."""
    routes = APIRouter()

    @routes.get("/matches", include_in_schema=False)
    def matches() -> HTMLResponse:
        tables, problems = find_tables(site.matches)
        return render("matches.html", page="matches", tables=tables, problems=problems)

    @routes.get("/runs", include_in_schema=False)
    def runs(names: Names = []) -> HTMLResponse:  # noqa: B006  # FastAPI copies it
        if not names:
            named: list[tuple[RunData, str]] = []
            problems: list[str] = []
            for run in site.runs.values():
                try:
                    named.append((read_run(run.path, run.name), run.note))
                except DeepCFRError as error:  # the other runs are shown
                    problems += error.problems
            return render("runs.html", page="runs", runs=named, problems=problems, most=LOOKS, value_text=value_text)
        return _page(site, [site.run(name) for name in dict.fromkeys(names)])

    @routes.get("/runs/{name}", include_in_schema=False)
    def run(name: str) -> HTMLResponse:
        return _page(site, [site.run(name)])

    @routes.get("/runs/{name}/report.html", include_in_schema=False)
    def download(name: str) -> HTMLResponse:
        path = site.run(name).path
        whole = report([read_run(path, path.name)])
        return HTMLResponse(whole, headers={"Content-Disposition": f'attachment; filename="{name}.html"'})

    @routes.get("/api/runs/{name}/metrics", responses=PROBLEMS, tags=["runs"], summary="New lines of a run's metrics")
    def metrics(name: str, after: Annotated[int, Query(ge=0, le=2**60)] = 0) -> NewLines:
        """The lines of `metrics.jsonl` after the byte `after`, at most 1,000 of them."""
        folder = RunFolder.open(site.run(name).path)  # again, because it may have been extended
        lines, at = read_new(folder.metrics_path, after, MOST_NEW)
        return NewLines(lines=lines, next=at, finished=bool(lines) and finished_at(folder.config, lines[-1]))

    return routes


def _page(site: Site, named: Sequence[NamedRun]) -> HTMLResponse:
    """The page of one run, or of several. Raises ConfigError for runs that cannot share one."""
    shown = [read_run(run.path, run.name) for run in named]
    require_comparable(shown)
    feeds = [{"address": f"/api/runs/{run.name}/metrics", "next": run.size} for run in shown if not run.finished]
    names = {run.name for run in shown}
    others = [name for name, run in site.runs.items() if name not in names and run.folder.source.name == shown[0].game]
    return render(
        "run.html",
        page="runs",
        title=title(shown),
        names=[run.name for run in shown],
        alone=len(shown) == 1,
        notes=[run.note for run in named if run.note],
        others=others if len(shown) < LOOKS else [],
        feeds=json.dumps(feeds),
        body=body(shown),
    )
