"""Spots: solve them, look at them, lock a decision, compare two, as pages, as JSON and as CSV."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from pydantic import ValidationError

from deepcfr.defaults import SPOT_GAP, SPOT_ITERATIONS, SPOT_SIZES
from deepcfr.errors import ConfigError
from deepcfr.games.ladder import LadderRules
from deepcfr.games.rules import PokerRules
from deepcfr.search.spot import Spot
from deepcfr.search.spot_ranges import HOLDEM, is_holdem, kind_texts, kind_weights, parse_range
from deepcfr.search.spot_solver import SpotSolver, memory_for_spots
from deepcfr.web import schema
from deepcfr.web.pages import render
from deepcfr.web.play import PROBLEMS, Form
from deepcfr.web.ranges import grid_labels
from deepcfr.web.site import NamedRun, Refusal, Site, shorten
from deepcfr.web.spot_shelf import Job, SpotShelf
from deepcfr.web.spot_view import comparable, decision_at, decision_csv, page_of

THREADS = 2  # of a solution
_SHARE = "share "  # of the fields with the shares of a locked decision; the action follows
Line = Annotated[str, Query(max_length=400, description="the actions before a decision, such as 'check, bet 5'")]
Label = Annotated[str, Query(max_length=8)]
Other = Annotated[str, Query(alias="with", max_length=100)]
Like = Annotated[str, Query(max_length=100)]
Text = Annotated[str, Query(max_length=40_000)]


def router(site: Site) -> APIRouter:
    """The pages of spots and their API."""
    routes = APIRouter()
    _add_pages(routes, site)
    _add_api(routes, site.spots, site)
    return routes


def solve(site: Site, wish: schema.SpotWish) -> str:
    """Begin to solve a spot, and return its name. Raises what its parts raise for mistakes."""
    site.spots.require_room()
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
        min_bet=wish.min_bet,
        aggressor=wish.aggressor,
    )
    locks = [lock.model_dump(exclude_none=True) for lock in wish.locks]
    solver = SpotSolver(spot, memory_for_spots(), THREADS, locks)
    return site.spots.start(wish.name or wish.board, solver, wish.gap, wish.iterations)


def solved(shelf: SpotShelf, name: str) -> schema.SpotFacts:
    """A solved spot. Raises Refusal if there is none of that name."""
    found = shelf.find(name)
    if not isinstance(found, schema.SpotFacts):
        raise Refusal(404, f"There is no solved spot named '{shorten(name)}' here.")
    return found


def state_of(shelf: SpotShelf, name: str) -> schema.SpotState:
    """The progress of a spot. Raises Refusal if there is none of that name."""
    found = shelf.find(name)
    if isinstance(found, Job):
        return found.state(name)
    facts = solved(shelf, name)
    return schema.SpotState(name=name, solved=True, iterations=facts.iterations, gap_mbb=facts.gap_mbb)


def _add_pages(routes: APIRouter, site: Site) -> None:
    shelf = site.spots

    @routes.get("/spots", include_in_schema=False)
    def spots(like: Like = "") -> Response:
        spots, jobs = shelf.everything()
        values: dict[str, Any] = {
            "page": "spots",
            "spots": spots,
            "jobs": jobs,
            "folder": shelf.folder,
            "agents": [run.name for run in site.runs.values() if _plays_holdem(run)],
            "old": solved(shelf, like) if like else None,
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
        found = shelf.find(name)
        if isinstance(found, Job):
            return render("spot_wait.html", page="spots", state=found.state(name), job=found)
        here = decision_at(solved(shelf, name), line)
        if other and not comparable(here, solved(shelf, other)):
            raise Refusal(409, f"'{shorten(other)}' has no such decision with the same actions.")
        return render("spot.html", **page_of(name, shelf.everything()[0], line, cell, other))

    @routes.post("/spots/{name}/stop", include_in_schema=False)
    def stop(name: str) -> Response:
        shelf.stop(state_of(shelf, name).name)
        return RedirectResponse(f"/spots/{name}", 303)


def _plays_holdem(run: NamedRun) -> bool:
    source = run.folder.source
    rules = source.deck if isinstance(source, LadderRules) else source
    return isinstance(rules, PokerRules) and is_holdem(rules)


def _wish(shelf: SpotShelf, form: dict[str, str]) -> schema.SpotWish:
    """The spot of a form.

    With `like` what is missing is as in that spot, with `locks_of` only its locked decisions; shares of actions lock the
    decision after the line `locked`.
    """
    values: dict[str, Any] = {}
    if like := form.get("like", ""):
        kept = set(schema.SpotWish.model_fields) - {"iterations"}
        values = solved(shelf, like).model_dump(include=kept) | {"name": f"{like}-locked"}
    elif kept_from := form.get("locks_of", ""):
        values = solved(shelf, kept_from).model_dump(include={"locks"})
    values |= {name: text for name, text in form.items() if text.strip() and name in schema.SpotWish.model_fields}
    shares = {name.removeprefix(_SHARE): text for name, text in form.items() if name.startswith(_SHARE)}
    try:
        if shares:
            locked = form.get("locked", "")
            rest = [lock for lock in values.get("locks", []) if lock["line"] != locked]
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
        spots, jobs = shelf.everything()
        return [state_of(shelf, name) for name in spots] + jobs

    @routes.post("/api/spots", status_code=202, responses=PROBLEMS, tags=["spots"])
    def new(wish: schema.SpotWish) -> schema.SpotState:
        """Begin to solve a spot; one at a time."""
        return state_of(shelf, solve(site, wish))

    @routes.get("/api/spots/{name}", response_model=schema.SpotFacts, responses=PROBLEMS, tags=["spots"])
    def spot(name: str) -> JSONResponse:
        """A solved spot, as written by `deepcfr spot --out`."""
        # sent without validation, which would take longer for a thousand hands than reading them
        return JSONResponse(solved(shelf, name).model_dump())

    @routes.get("/api/spots/{name}/state", responses=PROBLEMS, tags=["spots"])
    def state(name: str) -> schema.SpotState:
        """The progress of a spot."""
        return state_of(shelf, name)

    @routes.post("/api/spots/{name}/stop", responses=PROBLEMS, tags=["spots"])
    def stop(name: str) -> schema.SpotState:
        """Stop solving after the iterations that are being done, and keep the result."""
        shelf.stop(state_of(shelf, name).name)
        return state_of(shelf, name)

    @routes.get("/api/spots/{name}/decision.csv", response_class=PlainTextResponse, responses=PROBLEMS, tags=["spots"])
    def table(name: str, line: Line = "") -> Response:
        """A decision with every hand of the player to act as CSV."""
        text = decision_csv(solved(shelf, name), line)
        return PlainTextResponse(text, headers={"Content-Type": "text/csv; charset=utf-8"})

    @routes.get("/api/range", responses=PROBLEMS, tags=["spots"])
    def kinds(text: Text = "") -> dict[str, schema.RangeKind]:
        """The kinds of hands in a range in text."""
        weights = parse_range(text)
        texts = kind_texts(weights)
        return {
            kind: schema.RangeKind(weight=weight, text=texts[kind]) for kind, weight in kind_weights(weights).items()
        }
