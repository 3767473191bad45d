"""The first page: what this server has."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from deepcfr.config import SolveConfig
from deepcfr.games.ladder import LadderRules
from deepcfr.games.rules import PokerRules
from deepcfr.web.pages import render
from deepcfr.web.site import NamedRun, Site


@dataclass(frozen=True)
class Card:
    """A run as the first page shows it."""

    name: str
    game: str
    method: str
    plays: bool  # whether it is of a poker game
    browsable: bool  # whether that has a listed tree


def card(run: NamedRun) -> Card:
    """What the first page says of a run."""
    source, config = run.folder.source, run.folder.config
    method = config.solve.algorithm if isinstance(config, SolveConfig) else config.solver
    return Card(
        run.name, source.name, method, isinstance(source, PokerRules | LadderRules), isinstance(source, PokerRules)
    )


def router(site: Site) -> APIRouter:
    """The first page."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def home() -> HTMLResponse:
        return render("home.html", cards=[card(run) for run in site.runs.values()])

    return routes
