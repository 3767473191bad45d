"""Routes of run pages: one run, several runs on common charts, and new metrics of a run in training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from pydantic import BaseModel, Field

from deepcfr.errors import DeepCFRError
from deepcfr.report.chart import LOOKS
from deepcfr.report.page import body, report, require_comparable, title, value_text
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_new
from deepcfr.runs.record import RunData, finished_at, read_run
from deepcfr.web.pages import render
from deepcfr.web.play import PROBLEMS
from deepcfr.web.site import NamedRun, Site

MOST_NEW = 1_000  # most lines of metrics in one answer
Names = Annotated[list[str], Query(alias="with", max_length=LOOKS, description="names of runs")]


class NewLines(BaseModel):
    """New lines of a run's metrics."""

    lines: list[dict[str, Any]] = Field(description="lines of metrics.jsonl, oldest first")
    next: int = Field(description="what to ask for as `after` the next time")
    finished: bool = Field(description="whether the run has come to its end")


def router(site: Site) -> APIRouter:
    """The routes of the pages of runs, and their metrics as JSON."""
    routes = APIRouter()

    @routes.get("/runs", include_in_schema=False)
    def runs(names: Names = []) -> HTMLResponse:  # noqa: B006  # FastAPI copies it
        if not names:
            named: list[tuple[RunData, str]] = []
            problems: list[str] = []
            for run in site.runs.values():
                try:
                    named.append((_read(run), run.note))
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
        folder = RunFolder.open(site.run(name).path)  # anew, because it may have been extended
        lines, at = read_new(folder.metrics_path, after, MOST_NEW)
        return NewLines(lines=lines, next=at, finished=bool(lines) and finished_at(folder.config, lines[-1]))

    return routes


def _read(run: NamedRun) -> RunData:
    return read_run(run.path, run.name)


def _page(site: Site, named: Sequence[NamedRun]) -> HTMLResponse:
    """The page of one run, or of several. Raises ConfigError for runs that cannot share one."""
    shown = [_read(run) for run in named]
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
        body=Markup(body(shown)),  # `body` has escaped its values
    )
