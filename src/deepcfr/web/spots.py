"""Spots: solve them, look at them, lock a decision, compare two, as pages, as JSON and as CSV."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from pydantic import ValidationError

from deepcfr.defaults import SPOT_GAP, SPOT_ITERATIONS, SPOT_SIZES
from deepcfr.errors import ConfigError
from deepcfr.search.spot import Spot
from deepcfr.search.spot_ranges import HOLDEM, parse_range, range_cells
from deepcfr.search.spot_solver import SpotSolver, memory_for_spots
from deepcfr.web import schema
from deepcfr.web.home import card
from deepcfr.web.pages import render
from deepcfr.web.play import PROBLEMS, Form
from deepcfr.web.ranges import grid_labels
from deepcfr.web.site import Refusal, Site, shorten
from deepcfr.web.spot_shelf import SpotShelf
from deepcfr.web.spot_view import comparable, decision_at, decision_csv, page_of

THREADS = 2  # of a solution
_SHARE = "share "  # of the fields with the shares of a locked decision; the action follows
Line = Annotated[str, Query(max_length=400, description="the actions before a decision, such as 'check, bet 5'")]
Label = Annotated[str, Query(max_length=8)]
Other = Annotated[str, Query(alias="with", max_length=100)]
Like = Annotated[str, Query(max_length=100)]
Text = Annotated[str, Query(max_length=10_000)]


def router(site: Site) -> APIRouter:
    """The pages of spots and their API."""
    routes = APIRouter()
    _add_pages(routes, site)
    _add_api(routes, site.spots, site)
    return routes


def solve(site: Site, wish: schema.SpotWish) -> str:
    """Begin to solve a spot, and return its name. Raises what its parts raise for mistakes."""
    spot = Spot.parse(
        wish.board,
        wish.sizes,
        pot=wish.pot,
        stacks=wish.stacks,
        dealer=wish.dealer,
        big_blind=wish.big_blind,
        policy=site.run(wish.agent).agent().policy if wish.agent else None,
        line=wish.line,
        rake=wish.rake,
        cap=wish.cap,
    )
    solver = SpotSolver(spot, memory_for_spots(), THREADS, wish.locks)
    return site.spots.start(wish.name or wish.board, solver, wish.gap, wish.iterations)


def solved(shelf: SpotShelf, name: str) -> schema.SpotFacts:
    """A solved spot. Raises Refusal if there is none of that name."""
    if name not in shelf.spots:
        raise Refusal(404, f"There is no solved spot named '{shorten(name)}' here.")
    return shelf.spots[name]


def known(shelf: SpotShelf, name: str) -> schema.SpotState:
    """How far a spot is. Raises Refusal if there is none of that name."""
    if name not in shelf.jobs:
        solved(shelf, name)
    return shelf.state(name)


def _add_pages(routes: APIRouter, site: Site) -> None:
    shelf = site.spots

    @routes.get("/spots", include_in_schema=False)
    def spots(like: Like = "") -> Response:
        old = solved(shelf, like) if like else None
        values: dict[str, Any] = {
            "page": "spots",
            "spots": shelf.spots,
            "jobs": [shelf.state(name) for name in shelf.jobs],
            "folder": shelf.folder,
            "agents": [one.name for one in map(card, site.runs.values()) if one.plays],
            "old": old,
            "like": like,
            "usual": {"sizes": SPOT_SIZES, "gap": SPOT_GAP, "iterations": SPOT_ITERATIONS},
            "labels": grid_labels(HOLDEM),
        }
        return render("spots.html", **values)

    @routes.post("/spots", include_in_schema=False)
    def new(form: Form) -> Response:
        return RedirectResponse(f"/spots/{solve(site, _wish(shelf, form))}", 303)

    @routes.get("/spots/{name}", include_in_schema=False)
    def spot(name: str, line: Line = "", cell: Label = "", other: Other = "") -> Response:
        if not known(shelf, name).solved:
            return render("spot_wait.html", page="spots", state=shelf.state(name), job=shelf.jobs[name])
        if other and not comparable(decision_at(solved(shelf, name), line), solved(shelf, other)):
            raise Refusal(409, f"'{shorten(other)}' has no such decision with the same actions.")
        return render("spot.html", **page_of(name, shelf.spots, line, cell, other))

    @routes.post("/spots/{name}/stop", include_in_schema=False)
    def stop(name: str) -> Response:
        shelf.stop(known(shelf, name).name)
        return RedirectResponse(f"/spots/{name}", 303)


def _wish(shelf: SpotShelf, form: dict[str, str]) -> schema.SpotWish:
    """The spot of a form: empty fields are as in the spot `like`, and shares of actions lock the decision after `line`."""
    values: dict[str, Any] = {}
    if like := form.get("like", ""):
        old = solved(shelf, like)
        values = old.model_dump(include=set(schema.SpotWish.model_fields) - {"iterations"})
    shares = {name.removeprefix(_SHARE): text for name, text in form.items() if name.startswith(_SHARE)}
    values |= {name: text for name, text in form.items() if text.strip() and name in schema.SpotWish.model_fields}
    try:
        if shares:
            locked = form.get("locked", "")
            rest = [lock for lock in values.get("locks", []) if lock.get("line") != locked]
            lock = {"line": locked, "frequencies": {name: float(text) / 100 for name, text in shares.items()}}
            values["locks"] = [*rest, lock]
        return schema.SpotWish.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}.") from error
    except ValueError as error:
        raise ConfigError("The share of each action must be a number of percent.") from error


def _add_api(routes: APIRouter, shelf: SpotShelf, site: Site) -> None:
    @routes.get("/api/spots", tags=["spots"])
    def spots() -> list[schema.SpotState]:
        """The spots of this server, solved or not."""
        return [shelf.state(name) for name in (*shelf.spots, *shelf.jobs)]

    @routes.post("/api/spots", status_code=202, responses=PROBLEMS, tags=["spots"])
    def new(wish: schema.SpotWish) -> schema.SpotState:
        """Begin to solve a spot; one at a time."""
        return shelf.state(solve(site, wish))

    @routes.get("/api/spots/{name}", response_model=schema.SpotFacts, responses=PROBLEMS, tags=["spots"])
    def spot(name: str) -> JSONResponse:
        """A solved spot, as written by `deepcfr spot --out`."""
        # sent without validation, which would take longer for a thousand hands than reading them
        return JSONResponse(solved(shelf, name).model_dump())

    @routes.get("/api/spots/{name}/state", responses=PROBLEMS, tags=["spots"])
    def state(name: str) -> schema.SpotState:
        """How far a spot is."""
        return known(shelf, name)

    @routes.post("/api/spots/{name}/stop", responses=PROBLEMS, tags=["spots"])
    def stop(name: str) -> schema.SpotState:
        """Stop solving after the iterations that are being done, and keep the result."""
        shelf.stop(known(shelf, name).name)
        return shelf.state(name)

    @routes.get("/api/spots/{name}/decision.csv", response_class=PlainTextResponse, responses=PROBLEMS, tags=["spots"])
    def table(name: str, line: Line = "") -> Response:
        """A decision with every hand of the player to act as CSV."""
        text = decision_csv(solved(shelf, name), line)
        return PlainTextResponse(text, headers={"Content-Type": "text/csv; charset=utf-8"})

    @routes.get("/api/range", responses=PROBLEMS, tags=["spots"])
    def cells(text: Text = "") -> dict[str, float]:
        """The mean weight of each kind of hands in a range in text."""
        return range_cells(parse_range(text))
