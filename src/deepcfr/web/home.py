"""The first page: the runs of this server."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from deepcfr.config import SolveConfig
from deepcfr.games.ladder import LadderRules
from deepcfr.games.listed_ladder import can_be_listed
from deepcfr.games.presets import is_poker
from deepcfr.games.rules import PokerRules
from deepcfr.web.pages import render
from deepcfr.web.site import NamedRun, Site


@dataclass(frozen=True)
class Card:
    """A run on the first page."""

    name: str
    game: str
    method: str
    plays: bool  # whether its game is poker
    browsable: bool  # whether its game is poker with a tree that can be listed


def card(run: NamedRun) -> Card:
    """The card of a run."""
    source, config = run.folder.source, run.folder.config
    method = config.solve.algorithm if isinstance(config, SolveConfig) else config.method
    browsable = can_be_listed(source) if isinstance(source, LadderRules) else isinstance(source, PokerRules)
    return Card(run.name, source.name, method, is_poker(source), browsable)


def router(site: Site) -> APIRouter:
    """The route of the first page."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def home() -> HTMLResponse:
        return render("home.html", cards=[card(run) for run in site.runs.values()])

    return routes
