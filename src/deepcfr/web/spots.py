"""Spots: the form of a new one with every mistake at its field, pages, locks, comparisons, JSON and CSV."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest
from math import inf, nan
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from pydantic import ValidationError

from deepcfr.core.errors import ConfigError, DeepCFRError, GameError
from deepcfr.defaults import SPOT_ITERATIONS, SPOT_SIZES
from deepcfr.game.bet_sizes import BetSizeRules
from deepcfr.game.rules import PokerRules
from deepcfr.search.spot import SPOT_TEXTS, Spot, parse_board
from deepcfr.search.spot_ranges import HOLDEM, hand_rows, is_holdem, kind_texts, kind_weights, parse_range
from deepcfr.search.spot_sizes import amount_text
from deepcfr.search.spot_solution import ANY
from deepcfr.search.spot_solver import SpotSolver, memory_for_spots
from deepcfr.search.spot_tree import line_of
from deepcfr.web import schema
from deepcfr.web.drill import add_drill
from deepcfr.web.play import PROBLEMS, Form
from deepcfr.web.ranges import grid_labels
from deepcfr.web.site import NamedRun, RequestError, Site, render, shorten
from deepcfr.web.spot_shelf import SolveJob, SpotShelf
from deepcfr.web.spot_streets import ends_of, path_of, runouts_of, runouts_page, street_of, way_to
from deepcfr.web.spot_view import SHARE, comparable, decision_at, decision_csv, page_of

Line = Annotated[str, Query(max_length=400, description="the actions before a decision, such as 'check, bet 5'")]
Label = Annotated[str, Query(max_length=20)]
Other = Annotated[str, Query(alias="with", max_length=100)]
Agent = Annotated[str, Query(max_length=100)]
Like = Annotated[str, Query(max_length=100)]
Text = Annotated[str, Query(max_length=40_000)]
THREADS = 2  # of a solution
EXPLOITABILITY = "0.1"  # percent of the pot at which a spot of the form is solved
#: what the form shows at first, which is solved within a second; a field that is not here is empty
EXAMPLE = {
    "board": "Qs 7h 2c 9d 4s",
    "pot": "10",
    "stacks": "40",
    "dealer": "22+,A2s+,K9s+,QTs+,JTs,ATo+,KJo+",
    "big_blind": "22+,A2s+,KTs+,QTs+,AJo+,KQo:0.5",
    "sizes": SPOT_SIZES,
    "rake": "0",
    "exploitability": EXPLOITABILITY,
    "iterations": str(SPOT_ITERATIONS),
}
_SOUND = EXAMPLE | {"rake": "5"}  # no field has a mistake because of another one of these
_FIELDS = set(schema.SpotWish.model_fields)
#: fields in the order in which they are tried; the board is last, since a range that does not fit it is the range's
#: mistake
_BLAMED = ("line", "agent", "cap", "min_bet", "aggressor", *(name for name in EXAMPLE if name != "board"), "board")
_NUMBERS = {"float_parsing": "a number", "int_parsing": "a whole number", "int_from_float": "a whole number"}


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
            agents=[run.name for run in site.runs.values() if _plays_holdem(run)],
            like=like,
            locks=spots[like].locks if like in spots else [],
            values=dict.fromkeys([*schema.SpotWish.model_fields, "locks_of"], "") | values,
            mistakes=found,
            labels=grid_labels(HOLDEM),
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
        """What the spot of a form takes, or why it cannot be; nothing while a number is missing."""
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

    @routes.post("/spots/{name}/rename", include_in_schema=False)
    def rename(name: str, form: Form) -> Response:
        solved(shelf, name)
        return RedirectResponse(f"/spots/{shelf.rename(name, form.get('to', ''))}", 303)

    @routes.post("/spots/{name}/delete", include_in_schema=False)
    def delete(name: str) -> Response:
        shelf.delete(state_of(shelf, name).name)
        return RedirectResponse("/spots", 303)


def _plays_holdem(run: NamedRun) -> bool:
    source = run.folder.source
    rules = source.deck if isinstance(source, BetSizeRules) else source
    return isinstance(rules, PokerRules) and is_holdem(rules)


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
        path, actions = path_of(line)
        text = decision_csv(street_of(shelf, name, path) if path else solved(shelf, name), actions)
        return PlainTextResponse(text, headers={"Content-Type": "text/csv; charset=utf-8"})

    @routes.get("/api/range", responses=PROBLEMS, tags=["spots"])
    def kinds(text: Text = "") -> dict[str, schema.RangeKind]:
        """The kinds of hands in a range in text."""
        weights = parse_range(text)
        texts = kind_texts(weights)
        return {
            kind: schema.RangeKind(weight=weight, text=texts[kind]) for kind, weight in kind_weights(weights).items()
        }


def kept_of(facts: schema.SpotFacts) -> dict[str, Any]:
    """Give the fields of a wish that a solved spot has, without locks."""
    return facts.model_dump(include=_FIELDS - {"iterations", "locks"}, exclude_none=True)


def values_like(facts: schema.SpotFacts) -> dict[str, str]:
    """The fields of a form for a spot like a solved one."""
    kept = kept_of(facts).items()
    return EXAMPLE | {name: amount_text(value, 12) if isinstance(value, float) else value for name, value in kept}


def wish_of(values: Mapping[str, Any]) -> schema.SpotWish:
    """The spot that fields ask for; empty ones are left out, but empty sizes are no bets.

    Raises ValidationError for what is no number.
    """
    known = {name: value for name, value in values.items() if name in _FIELDS}
    given = {name: value for name, value in known.items() if name == "sizes" or str(value).strip()}
    return schema.SpotWish.model_validate(given)


def solver_of(site: Site, wish: schema.SpotWish, most: float | None = None) -> SpotSolver:
    """Prepare the solver for the spot of a wish, with at most so many bytes; None: what this machine has for spots.

    Raises what its parts raise for mistakes.
    """
    spot = spot_of(site, wish)
    locks = [lock.model_dump(exclude_none=True) for lock in wish.locks]
    return SpotSolver(spot, memory_for_spots() if most is None else most, THREADS, locks)


def spot_of(site: Site, wish: schema.SpotWish) -> Spot:
    """The spot of a wish. Raises what its parts raise for mistakes."""
    policy = site.run(wish.agent).agent().policy if wish.agent else None
    return Spot.parse(policy=policy, **wish.model_dump(include=set(SPOT_TEXTS)))


def mistakes(site: Site, values: Mapping[str, Any]) -> dict[str, str]:
    """A sentence for every field of a form that is wrong, by its name.

    A field is to blame for an error if the example's value in its place changes the error. An error that no field is to
    blame for is under an empty name.
    """
    values, found = dict(values), dict[str, str]()

    def wrong(fields: Mapping[str, Any]) -> dict[str, str]:
        try:
            spot_of(site, wish_of(fields))
        except ValidationError as error:
            return {str(each["loc"][0]): _sentence(each["msg"], each["type"], each["input"]) for each in error.errors()}
        except DeepCFRError as error:
            return {"": " ".join(error.problems)}
        return {}

    while now := wrong(values):
        if "" in now:
            others = (name for name in _BLAMED if values.get(name, "") != _SOUND.get(name, ""))
            blamed = next((name for name in others if wrong(values | {name: _SOUND.get(name, "")}) != now), "")
            now = {blamed: now[""]}
        found |= now
        if "" in now:
            break
        betting = ("agent", "line") if now.keys() & {"agent", "line"} else ()  # neither goes without the other
        values |= {name: _SOUND.get(name, "") for name in (*now, *betting)}
    return found


def _sentence(message: str, kind: str, value: object) -> str:
    if kind in _NUMBERS:
        return f"'{shorten(str(value))}' is not {_NUMBERS[kind]}."
    if kind == "missing":
        return "This field is needed."
    return f"{message}, but is '{shorten(str(value))}'."


def locked_by(
    facts: schema.SpotFacts, decision: schema.SpotDecision, form: Mapping[str, str]
) -> tuple[list[schema.SpotLock], dict[str, str]]:
    """The locks of a spot with those of a form for one of its decisions, and a sentence for each field that is wrong.

    The form has a share for each action, divided by their sum, and hands that play so as a range; without them all do.
    """
    shares, found = [], dict[str, str]()
    for action in decision.frequencies:
        text = form.get(SHARE + action, "")
        try:
            shares.append(float(text))
        except ValueError:
            shares.append(nan)
        if not 0 <= shares[-1] < inf:
            found[SHARE + action] = f"'{shorten(text)}' is not a share: write a number, 0 or more."
    if not found and not any(shares):
        found[SHARE + action] = "All shares are 0: one of the actions must be played."
    names: list[str] = []
    if hands := form.get("hands", "").strip():
        try:
            chosen = parse_range(hands)
        except DeepCFRError as error:
            found["hands"] = " ".join(error.problems)
        else:
            held = list(facts.hand_values[decision.player])
            rows = hand_rows(np.array([sorted(parse_board(name)) for name in held], np.uint8))
            names = [name for name, weight in zip(held, chosen[rows], strict=True) if weight]
            if not names:
                found["hands"] = f"The range of the {decision.player} has no hand of '{shorten(hands)}'."
    if found:
        return [], found
    played = [share / sum(shares) for share in shares]
    lock = schema.SpotLock(line=decision.line, frequencies=dict(zip(decision.frequencies, played, strict=True)))
    if names:
        before = next((each for each in facts.locks if each.line == decision.line), schema.SpotLock(line=decision.line))
        lock = before.model_copy(update={"hands": (before.hands or {}) | dict.fromkeys(names, played)})
    return [*(each for each in facts.locks if each.line != decision.line), lock], {}
