"""The first page: the runs of this server."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from deepcfr.config import SolveConfig
from deepcfr.games.ladder import LadderRules
from deepcfr.games.listed_ladder import can_be_listed
from deepcfr.games.presets import is_poker
from deepcfr.games.rules import PokerRules
from deepcfr.web.pages import render
from deepcfr.web.schema import Agent
from deepcfr.web.site import NamedRun, Site


def card(run: NamedRun) -> Agent:
    """The facts of a run."""
    source, config = run.folder.source, run.folder.config
    method = config.solve.algorithm if isinstance(config, SolveConfig) else config.method
    browsable = can_be_listed(source) if isinstance(source, LadderRules) else isinstance(source, PokerRules)
    return Agent(name=run.name, game=source.name, method=method, plays=is_poker(source), browsable=browsable)


def router(site: Site) -> APIRouter:
    """The route of the first page."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def home() -> HTMLResponse:
        return render("home.html", cards=[card(run) for run in site.runs.values()])

    return routes
