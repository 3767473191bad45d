"""The strategy browser: an agent's ranges at any position as a page, as JSON and as CSV."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

import torch
from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse

from deepcfr.errors import GameError
from deepcfr.evaluation.match.record import require_same_game
from deepcfr.games.tree_game import TreeGame
from deepcfr.policies.base import Policy
from deepcfr.policies.query import query
from deepcfr.types import Infosets
from deepcfr.web import schema
from deepcfr.web.browse_view import crumbs, deck, detail, difference, grid
from deepcfr.web.pages import cards, render
from deepcfr.web.play import PROBLEMS
from deepcfr.web.play_view import bars
from deepcfr.web.position import Position, address, read_position, seat_name
from deepcfr.web.ranges import Range, range_at, range_csv, range_facts
from deepcfr.web.site import Refusal, Site

Betting = Annotated[str, Query(max_length=200, description="letters f, c, r, rounds apart by '/'")]
Board = Annotated[str, Query(max_length=40, description="public cards, such as Qs7h2c")]
Label = Annotated[str, Query(max_length=8, description="a cell, such as AKs")]
Other = Annotated[str, Query(alias="with", max_length=100, description="another agent to compare with")]
Text = Annotated[str, Query(max_length=100, description="a part of the names of infosets")]
MOST_INFOSETS = 200  # on a page
Picked = Annotated[list[str], Query(alias="card", max_length=10)]


def router(site: Site) -> APIRouter:
    """The browser's pages and its API."""
    routes = APIRouter()
    _add_pages(routes, site)
    _add_api(routes, site)
    return routes


def look(site: Site, name: str, position: Position) -> Range:
    """The range of a named agent at a position."""
    run = site.run(name)
    policy, _ = run.listed()
    return range_at(policy, position, run.agent().advantages)


def place(site: Site, name: str, betting: str, board: str) -> Position:
    """Read a position in a named agent's game."""
    return read_position(site.run(name).listed()[1], betting, board)


def _add_pages(routes: APIRouter, site: Site) -> None:
    @routes.get("/strategy", include_in_schema=False)
    def choose() -> Response:
        able = [one for one in cards(site) if one.browsable]
        if len(able) == 1:
            return RedirectResponse(f"/strategy/{able[0].name}", 303)
        return render("home.html", page="strategy", cards=able)

    @routes.get("/strategy/{name}", include_in_schema=False)
    def browse(
        name: str,
        betting: Betting = "",
        board: Board = "",
        cell: Label = "",
        other: Other = "",
        picked: Picked = [],  # noqa: B006
        find: Text = "",
    ) -> Response:
        policy = site.run(name).agent().policy
        if isinstance(policy, Policy) and isinstance(policy.game, TreeGame):
            return _infosets_page(site, name, policy, policy.game, find)
        position = place(site, name, betting, board)
        if other:
            _same_game(site, name, other)
        if picked:
            return RedirectResponse(
                address(name, place(site, name, betting, board + "".join(picked)), other=other), 303
            )
        return _page(site, name, position, cell, other)


def _infosets_page(site: Site, name: str, policy: Policy, game: TreeGame, find: str) -> HTMLResponse:
    """The strategy of a game without hands: the infosets whose names have a text, with what the agent does there."""
    names = game.explicit.infoset_names
    shown = [infoset for infoset, known in enumerate(names) if find in known][:MOST_INFOSETS]
    shares = policy.probabilities(Infosets(torch.tensor(shown), torch.empty((len(shown), 0), dtype=torch.uint8)))
    rows = []
    for infoset, row in zip(shown, shares.tolist(), strict=True):
        legal = game.encoding.legal[infoset].nonzero()[:, 0].tolist()
        found = bars({game.action_name(action): row[action] for action in legal})
        said = ", ".join(f"{each.name} {each.percent}" for each in reversed(found))
        player = int(game.explicit.infoset_actor[infoset])
        rows.append({"name": names[infoset], "player": player, "bars": found, "said": said})
    values: dict[str, Any] = {"name": name, "game": game.name, "find": find, "rows": rows, "count": len(names)}
    values["agents"] = [run.name for run in site.runs.values() if run.browsable]
    return render("infosets.html", page="strategy", **values)


def _same_game(site: Site, name: str, other: str) -> None:
    first, second = (site.run(one).listed()[1] for one in (name, other))
    try:
        require_same_game(first, second)
    except GameError as error:
        raise Refusal(
            409, f"{name} plays {first.name}, but {other} plays {second.name}: only agents of one game compare."
        ) from error


def _page(site: Site, name: str, position: Position, cell: str, other: str) -> HTMLResponse:
    game = position.game
    values: dict[str, Any] = {
        "page": "strategy",
        "name": name,
        "other": other,
        "game": game.rules,
        "position": position,
        "crumbs": crumbs(name, position, other),
        "who": "" if position.over else seat_name(game.rules, position.state.actor),
        "start": address(name, read_position(game, "", ""), other=other),
        "agents": _agents(site, name, position),
        "others": _others(site, name, position),
        "grids": None,
        "deck": None,
        "any_board": None,
    }
    if not position.over and position.missing:
        values |= {"deck": deck(game, position), "any_board": _any_board(name, position, other)}
    elif not position.over:
        values |= {"grids": _grids(site, name, position, cell, other)}
        values |= {
            as_kind: address(f"{name}/{kind}", position, prefix="/api/agents")
            for as_kind, kind in (("as_json", "range"), ("as_csv", "range.csv"))
        }
    return render("strategy.html", **values)


def _agents(site: Site, name: str, position: Position) -> list[dict[str, Any]]:
    """The agents of the menu; links keep the position for agents of the same game."""
    here = site.run(name).folder.source
    return [
        {
            "name": run.name,
            "here": run.name == name,
            "address": address(run.name, position) if run.folder.source == here else f"/strategy/{run.name}",
        }
        for run in site.runs.values()
        if run.browsable
    ]


def _others(site: Site, name: str, position: Position) -> list[dict[str, str]]:
    """The agents of the same game, for comparison."""
    here = site.run(name).folder.source
    return [
        {"name": run.name, "address": address(name, position, other=run.name)}
        for run in site.runs.values()
        if run.name != name and run.folder.source == here
    ]


def _any_board(name: str, position: Position, other: str) -> str:
    """The address of the position with random cards for its board."""
    free = [card for card in range(position.game.rules.num_cards) if card not in position.known]
    drawn = [free.pop(secrets.randbelow(len(free))) for _ in range(position.missing)]
    return address(name, position.with_board((*position.known, *drawn)), other=other)


def _grids(site: Site, name: str, position: Position, cell: str, other: str) -> dict[str, Any]:
    """The grids of the page: of one agent, or of two and their difference."""

    def link(label: str) -> str:
        return address(name, position, cell=label, other=other)

    mine = look(site, name, position)
    tables = {name: mine}
    if other:
        tables[other] = look(site, other, place(site, other, position.betting, position.board_text))
    shown = [
        {"title": title, "grid": grid(found, link, cell), "detail": detail(found, cell) if cell else None}
        for title, found in tables.items()
    ]
    apart = difference(mine, tables[other], link, cell) if other else None
    return {"shown": shown, "apart": apart, "cell": cell, "hands": len(mine.holes), "reached": mine.reached}


def _add_api(routes: APIRouter, site: Site) -> None:
    @routes.get("/api/agents/{name}/strategy", response_model=schema.StrategyFacts, responses=PROBLEMS, tags=["query"])
    def strategy(
        name: str,
        situation: Annotated[str, Query(max_length=300, description="as for `deepcfr strategy`: As Kd / r / Qs 7h 2c")],
    ) -> dict[str, Any]:
        """An agent's strategy with one hand, as printed by `deepcfr strategy`."""
        policy = site.run(name).agent().policy
        return query(policy, situation).facts()

    @routes.get("/api/agents/{name}/range", responses=PROBLEMS, tags=["query"])
    def range_(name: str, betting: Betting = "", board: Board = "") -> JSONResponse:
        """An agent's strategy at a position with all hands."""
        # sent without validation, which would take longer for a thousand hands than computing them
        return JSONResponse(range_facts(name, look(site, name, place(site, name, betting, board))))

    @routes.get("/api/agents/{name}/range.csv", response_class=PlainTextResponse, responses=PROBLEMS, tags=["query"])
    def range_table(name: str, betting: Betting = "", board: Board = "") -> Response:
        """An agent's strategy with all hands as CSV, one line for each hand."""
        text = range_csv(look(site, name, place(site, name, betting, board)))
        return PlainTextResponse(text, headers={"Content-Type": "text/csv; charset=utf-8"})
