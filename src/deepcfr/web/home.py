"""The first page: what the agents of this server are, and the way to solve a spot."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from deepcfr.runs.cards import run_facts
from deepcfr.web.pages import render
from deepcfr.web.schema import Agent
from deepcfr.web.site import NamedRun, Site


def cards(site: Site) -> list[Agent]:
    """Return what each agent of a site is, in the order of `deepcfr models`."""
    found = sorted(
        ((run, run_facts(run.folder, run.name)) for run in site.runs.values()), key=lambda pair: pair[1]["rank"]
    )
    return [_card(run, facts) for run, facts in found]


def _card(run: NamedRun, facts: dict[str, str]) -> Agent:
    return Agent(
        name=run.name,
        game=run.folder.source.name,
        title=facts["title"],
        about=facts["about"],
        strength=run.note or facts["strength"],
        made=facts["made"],
        method=run.folder.config.method,
        plays=run.plays,
        browsable=run.browsable,
    )


def router(site: Site) -> APIRouter:
    """The route of the first page."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def home() -> HTMLResponse:
        return render("home.html", cards=cards(site))

    return routes
