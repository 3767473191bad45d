"""Spots: the page of a new one, those of solved ones, locks, comparisons, JSON and CSV."""

from __future__ import annotations

import re
import tomllib
from itertools import zip_longest
from math import inf
from typing import Annotated

from fastapi import APIRouter, Body, Query, Response
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from pydantic import ValidationError

from deepcfr.core.errors import ConfigError, DeepCFRError, GameError
from deepcfr.interop.own_hand_review import preset_ranges
from deepcfr.search.spot_ranges import HOLDEM, kind_texts, kind_weights, parse_range
from deepcfr.search.spot_solution import ANY
from deepcfr.search.spot_tree import line_of
from deepcfr.web import schema
from deepcfr.web.drill import add_drill
from deepcfr.web.play import PROBLEMS, Form
from deepcfr.web.ranges import grid_labels
from deepcfr.web.site import RequestError, Site, render, shorten
from deepcfr.web.spot_form import (
    EXAMPLE,
    EXPLOITABILITY,
    kept_of,
    locked_by,
    mistakes,
    solver_of,
    values_like,
    wish_of,
)
from deepcfr.web.spot_shelf import SolveJob, SpotShelf
from deepcfr.web.spot_streets import ends_of, path_of, runouts_of, runouts_page, street_of, way_to
from deepcfr.web.spot_view import comparable, decision_at, decision_csv, decision_ranges, page_of

Line = Annotated[str, Query(max_length=400, description="the actions before a decision, such as 'check, bet 5'")]
Label = Annotated[str, Query(max_length=20)]
Other = Annotated[str, Query(alias="with", max_length=100)]
Agent = Annotated[str, Query(max_length=100)]
Like = Annotated[str, Query(max_length=100)]
Text = Annotated[str, Query(max_length=40_000)]


def router(site: Site) -> APIRouter:
    """The pages of spots and their API."""
    routes = APIRouter()
    _add_pages(routes, site)
    _add_api(routes, site.spots, site)
    add_drill(routes, lambda name: solved(site.spots, name))
    return routes


def solve(site: Site, wish: schema.SpotWish) -> str:
    """Begin to solve a spot, or let it wait for its turn, and return its name. Raises what its parts raise for mistakes."""
    site.spots.require_room()
    solver = solver_of(site, wish)
    return site.spots.start(wish.name or wish.board, solver, wish.exploitability, wish.iterations)


def solved(shelf: SpotShelf, name: str) -> schema.SpotFacts:
    """A solved spot. Raises Refusal if there is none of that name."""
    found = shelf.find(name)
    if not isinstance(found, schema.SpotFacts):
        raise RequestError(404, f"There is no solved spot named '{shorten(name)}' here.")
    return found


def state_of(shelf: SpotShelf, name: str) -> schema.SpotState:
    """The progress of a spot. Raises Refusal if there is none of that name."""
    found = shelf.find(name)
    if isinstance(found, SolveJob):
        return found.state(name, shelf.place(found))
    kept = {"iterations", "exploitability_percent", "seconds"}
    return schema.SpotState(name=name, solved=True, **solved(shelf, name).model_dump(include=kept))


def _add_pages(routes: APIRouter, site: Site) -> None:
    shelf = site.spots

    def form_page(values: dict[str, str], found: dict[str, str]) -> Response:
        spots, jobs = shelf.everything()
        like = values.get("like", "")
        return render(
            "spots.html",
            400 if found else 200,
            page="spots",
            spots=spots,
            jobs=jobs,
            folder=shelf.folder,
            agents=site.holdem_agents(),
            like=like,
            locks=spots[like].locks if like in spots else [],
            values=dict.fromkeys([*schema.SpotWish.model_fields, "locks_of"], "") | values,
            mistakes=found,
            labels=grid_labels(HOLDEM),
            presets=tomllib.loads(preset_ranges()),
        )

    @routes.get("/spots", include_in_schema=False)
    def spots(like: Like = "", agent: Agent = "", line: Line = "", board: Line = "") -> Response:
        values = EXAMPLE
        if like:
            values = values_like(solved(shelf, like)) | {"like": like, "locks_of": like}
        elif agent:
            of_agent = dict.fromkeys(("pot", "stacks", "dealer", "big_blind"), "")
            values = EXAMPLE | of_agent | {"agent": agent, "line": line, "board": board}
        return form_page(values, {})

    @routes.post("/spots", include_in_schema=False)
    def new(form: Form) -> Response:
        try:
            locks = solved(shelf, form["locks_of"]).locks if form.get("locks_of") else []
        except RequestError as error:
            return form_page(form, {"locks_of": error.sentence})
        try:
            return RedirectResponse(f"/spots/{solve(site, wish_of(form | {'locks': locks}))}", 303)
        except (ValidationError, DeepCFRError) as error:
            found = mistakes(site, form)
            if isinstance(error, DeepCFRError) and not found:  # what no field alone makes too large has too many sizes
                found = {"sizes" if isinstance(error, GameError) else "": " ".join(error.problems)}
            return form_page(form, found)

    @routes.post("/spots/size", include_in_schema=False)
    def size(form: Form) -> PlainTextResponse:
        """Say what the spot of a form takes, or why it cannot be; nothing while a number is missing."""
        try:
            return PlainTextResponse(solver_of(site, wish_of(form)).describe())
        except ValidationError:
            return PlainTextResponse("")
        except DeepCFRError as error:
            return PlainTextResponse(" ".join(error.problems))

    @routes.get("/spots/{name}", include_in_schema=False)
    def spot(name: str, line: Line = "", cell: Label = "", other: Other = "", report: str = "") -> Response:
        found = shelf.find(name)
        if isinstance(found, SolveJob):
            return render("spot_wait.html", page="spots", state=state_of(shelf, name), job=found)
        path, actions = path_of(line)
        if path[-1:] == (ANY,):
            return render("runouts.html", **runouts_page(shelf, name, line, report == "yes"))
        if path:
            facts = street_of(shelf, name, path)
            way, ends = way_to(shelf, name, path), ends_of(shelf, name, path)
            shown = page_of(name, {name: facts}, actions, cell, "", before=line_of(path), way=way, ends=ends)
            return render("spot.html", **shown)
        here = decision_at(solved(shelf, name), line)
        if other and not comparable(here, solved(shelf, other)):
            raise RequestError(409, f"'{shorten(other)}' has no such decision with the same actions.")
        ends = ends_of(shelf, name, ())
        return render("spot.html", **page_of(name, shelf.everything()[0], line, cell, other, ends=ends))

    @routes.post("/spots/{name}/lock", include_in_schema=False)
    def lock(name: str, form: Form) -> Response:
        spot, line = solved(shelf, name), form.get("line", "")
        locks, found = locked_by(spot, decision_at(spot, line), form)
        if found:
            return render("spot.html", 400, **page_of(name, shelf.everything()[0], line, "", "", form, found))
        return again(name, line, locks, form)

    @routes.post("/spots/{name}/unlock", include_in_schema=False)
    def unlock(name: str, form: Form) -> Response:
        line = form.get("line", "")
        return again(name, line, [lock for lock in solved(shelf, name).locks if lock.line != line])

    def again(name: str, line: str, locks: list[schema.SpotLock], form: dict[str, str] | None = None) -> Response:
        """Begin to solve a spot with other locks, or show it with the reason why that cannot be."""
        try:
            base = re.sub("-(un)?locked(-[0-9]+)?$", "", name) + ("-locked" if locks else "-unlocked")
            kept = kept_of(solved(shelf, name)) | {"exploitability": EXPLOITABILITY, "locks": locks, "name": base}
            return RedirectResponse(f"/spots/{solve(site, schema.SpotWish.model_validate(kept))}", 303)
        except DeepCFRError as error:
            found = {"": " ".join(error.problems)}
        return render("spot.html", 400, **page_of(name, shelf.everything()[0], line, "", "", form, found))

    @routes.post("/spots/{name}/stop", include_in_schema=False)
    def stop(name: str) -> Response:
        shelf.stop(state_of(shelf, name).name)
        return RedirectResponse(f"/spots/{name}" if shelf.find(name) else "/spots", 303)

    @routes.post("/spots/{name}/pause", include_in_schema=False)
    def pause(name: str, form: Form) -> Response:
        shelf.pause(state_of(shelf, name).name, form.get("paused") == "yes")
        return RedirectResponse(f"/spots/{name}", 303)

    @routes.post("/spots/{name}/rename", include_in_schema=False)
    def rename(name: str, form: Form) -> Response:
        solved(shelf, name)
        return RedirectResponse(f"/spots/{shelf.rename(name, form.get('to', ''))}", 303)

    @routes.post("/spots/{name}/delete", include_in_schema=False)
    def delete(name: str) -> Response:
        shelf.delete(state_of(shelf, name).name)
        return RedirectResponse("/spots", 303)


def _add_api(routes: APIRouter, shelf: SpotShelf, site: Site) -> None:
    @routes.get("/api/spots", tags=["spots"])
    def spots() -> list[schema.SpotState]:
        """The spots of this server, solved or not."""
        spots, jobs = shelf.everything()
        return [state_of(shelf, name) for name in spots] + jobs

    @routes.post("/api/spots", status_code=202, responses=PROBLEMS, tags=["spots"])
    def new(wish: schema.SpotWish) -> schema.SpotState:
        """Begin to solve a spot, or let it wait until those before it are solved."""
        return state_of(shelf, solve(site, wish))

    @routes.get("/api/spots/{name}", response_model=schema.SpotFacts, responses=PROBLEMS, tags=["spots"])
    def spot(name: str) -> JSONResponse:
        """A solved spot, as written by `deepcfr spot --out`."""
        # sent without validation, which would take longer for a thousand hands than reading them
        return JSONResponse(solved(shelf, name).model_dump())

    @routes.get("/api/spots/{name}/street", response_model=schema.SpotFacts, responses=PROBLEMS, tags=["spots"])
    def street(name: str, line: Line) -> JSONResponse:
        """The street on which a line ends, such as 'check, check / 9d', in the form of the spot there."""
        return JSONResponse(street_of(shelf, name, path_of(line)[0]).model_dump())

    @routes.get("/api/spots/{name}/runouts", responses=PROBLEMS, tags=["spots"])
    def runouts(name: str, line: Line) -> schema.SpotRunouts:
        """One decision over all next cards, after a line such as 'check, check / *'."""
        return schema.SpotRunouts.model_validate(runouts_of(shelf, name, line).facts())

    @routes.get("/api/spots/{name}/state", responses=PROBLEMS, tags=["spots"])
    def state(name: str) -> schema.SpotState:
        """The progress of a spot."""
        return state_of(shelf, name)

    @routes.post("/api/spots/{name}/stop", responses=PROBLEMS, tags=["spots"])
    def stop(name: str) -> schema.SpotState:
        """Stop solving after the iterations that are being done, and keep the result; one that waits is taken away."""
        before = state_of(shelf, name)
        shelf.stop(name)
        return state_of(shelf, name) if shelf.find(name) else before.model_copy(update={"stopping": True})

    @routes.put("/api/spots/{name}/paused", responses=PROBLEMS, tags=["spots"])
    def pause(name: str, paused: Annotated[bool, Body()]) -> schema.SpotState:
        """Pause a spot that is being solved (`true`), or go on with it (`false`). Those that wait go on waiting."""
        shelf.pause(state_of(shelf, name).name, paused)
        return state_of(shelf, name)

    @routes.put("/api/spots/{name}", status_code=201, responses=PROBLEMS, tags=["spots"])
    def put(name: str, spot: schema.SpotFacts) -> schema.SpotState:
        """Keep a file of `deepcfr spot --out` as a spot, under this name or, if a spot has it, one with a number."""
        wish = schema.SpotWish.model_validate(kept_of(spot) | {"locks": spot.locks})
        found = [(each.line, each.player, [*each.frequencies]) for each in spot.decisions]
        for has, own in zip_longest(found, solver_of(site, wish, inf).lines()):
            if has != own:
                line, seat, actions = own or has
                owner = f"the {seat} with {', '.join(actions)}" if own else "nobody"
                raise ConfigError(
                    f"The decisions of the file are not those of its sizes: after {line!r}, {owner} acts."
                )
        return state_of(shelf, shelf.add(name, spot))

    @routes.post("/api/spots/{name}/rename", responses=PROBLEMS, tags=["spots"])
    def rename(name: str, wanted: schema.NewName) -> schema.SpotState:
        """Give a solved spot, and its file, another name."""
        solved(shelf, name)
        return state_of(shelf, shelf.rename(name, wanted.name))

    @routes.delete("/api/spots/{name}", status_code=204, response_model=None, responses=PROBLEMS, tags=["spots"])
    def delete(name: str) -> None:
        """Delete a solved spot and its file, or one that could not be solved."""
        shelf.delete(state_of(shelf, name).name)

    @routes.get("/api/spots/{name}/decision.csv", response_class=PlainTextResponse, responses=PROBLEMS, tags=["spots"])
    def table(name: str, line: Line = "") -> Response:
        """A decision with every hand of the player to act as CSV."""
        return PlainTextResponse(
            decision_csv(*on_street(name, line)), headers={"Content-Type": "text/csv; charset=utf-8"}
        )

    @routes.get("/api/spots/{name}/ranges.txt", response_class=PlainTextResponse, responses=PROBLEMS, tags=["spots"])
    def ranges(name: str, line: Line = "") -> PlainTextResponse:
        """Both ranges at a decision, and that of each action, in the usual notation; a comment before each says whose."""
        return PlainTextResponse(decision_ranges(*on_street(name, line)))

    def on_street(name: str, line: str) -> tuple[schema.SpotFacts, str]:
        """The street on which a line ends, and the actions there."""
        path, actions = path_of(line)
        return street_of(shelf, name, path) if path else solved(shelf, name), actions

    @routes.get("/api/range", responses=PROBLEMS, tags=["spots"])
    def kinds(text: Text = "") -> dict[str, schema.RangeKind]:
        """The kinds of hands in a range in text."""
        weights = parse_range(text)
        texts = kind_texts(weights)
        return {
            kind: schema.RangeKind(weight=weight, text=texts[kind]) for kind, weight in kind_weights(weights).items()
        }
