"""The first page, which says what the agents are and leads to spots; templates, which escape all values."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from deepcfr.report import page as run_page
from deepcfr.runs.listing import agent_facts
from deepcfr.search.spot_sizes import amount_text
from deepcfr.web.schema import AgentFacts
from deepcfr.web.site import NamedRun, Site

HERE = Path(__file__).parent
STATIC = (HERE / "static", run_page.STATIC)  # the latter: styles that a report carries as well


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["static"] = static
    environment.filters["amount"] = amount_text
    return environment


@cache
def static(name: str) -> str:
    """The address of a static file; it changes with the content, so browsers may cache the file."""
    path = next(folder / name for folder in STATIC if (folder / name).is_file())
    digest = hashlib.blake2b(path.read_bytes(), digest_size=6).hexdigest()
    return f"/static/{name}?{digest}"


def render(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page of `templates` filled with `values`."""
    return HTMLResponse(_environment().get_template(template).render(status=status, **values), status)


def cards(site: Site) -> list[AgentFacts]:
    """Return what each agent of a site is, in the order of `deepcfr models`."""
    facts = {name: agent_facts(run.folder, name) for name, run in site.runs.items()}
    return [card(site.runs[name], facts[name]) for name in sorted(facts, key=lambda name: facts[name]["rank"])]


def card(run: NamedRun, facts: dict[str, Any] | None = None) -> AgentFacts:
    """Return what an agent is; `facts` are those of its run, if they are there already."""
    facts = facts or agent_facts(run.folder, run.name)
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
