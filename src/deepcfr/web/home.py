"""The first page: what the agents of this server are, and the way to solve a spot."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from deepcfr.runs.cards import run_facts
from deepcfr.web.pages import render
from deepcfr.web.schema import AgentFacts
from deepcfr.web.site import NamedRun, Site


def cards(site: Site) -> list[AgentFacts]:
    """Return what each agent of a site is, in the order of `deepcfr models`."""
    facts = {name: run_facts(run.folder, name) for name, run in site.runs.items()}
    return [card(site.runs[name], facts[name]) for name in sorted(facts, key=lambda name: facts[name]["rank"])]


def card(run: NamedRun, facts: dict[str, Any] | None = None) -> AgentFacts:
    """Return what an agent is; `facts` are those of its run, if they are there already."""
    facts = facts or run_facts(run.folder, run.name)
    return AgentFacts(
        name=run.name,
        game=run.folder.source.name,
        title=facts["title"],
        about=facts["about"],
        strength=run.note or facts["strength"],
        made=facts["made"],
        method=run.folder.config.method,
        browsable=run.browsable,
    )


def router(site: Site) -> APIRouter:
    """The route of the first page."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def home() -> HTMLResponse:
        return render("home.html", cards=cards(site))

    return routes
