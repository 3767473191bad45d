"""Play against agents: the table as a page and as JSON."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qsl

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Cookie, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse

from deepcfr.web import schema
from deepcfr.web.home import cards
from deepcfr.web.pages import render
from deepcfr.web.play_view import review_view, table_view
from deepcfr.web.site import NamedRun, Refusal, Site
from deepcfr.web.table import Seat, Seats, new_token

COOKIE = "deepcfr_seat"
AT_ONCE = 2  # reviews at the same time; they take long, and actions of other players must not wait for them
Token = Annotated[str | None, Cookie(alias=COOKIE, max_length=100)]
Hand = Annotated[int, Query(ge=0, le=2**53)]
PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": {"model": schema.Problem}}


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form. Raises Refusal if it is none."""
    try:
        body = (await request.body()).decode()
        return dict(parse_qsl(body, keep_blank_values=True, strict_parsing=bool(body), max_num_fields=100))
    except ValueError as error:
        raise Refusal(400, "The form cannot be read.") from error


Form = Annotated[dict[str, str], Depends(read_form)]


def whole(form: dict[str, str], name: str) -> int:
    """An integer of a form. Raises Refusal if it is missing or not an integer."""
    text = form.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise Refusal(400, f"The form needs a whole number as {name}.")
    return int(text)


class Players:
    """The seats of persons at agents' tables."""

    def __init__(self, site: Site) -> None:
        self.site, self.seats = site, Seats()
        self.reviewing = CapacityLimiter(AT_ONCE)

    def seat(self, token: str | None, name: str) -> Seat:
        """The person's seat at an agent's table. Raises Refusal if there is none."""
        self.site.run(name)
        seat = self.seats.find(token, name)
        if seat is None:
            raise Refusal(404, f"You have no seat against {name} yet: open its table first.")
        return seat

    def sit_down(self, token: str | None, run: NamedRun, seed: int | None = None) -> tuple[str, Seat]:
        """A new seat for a person, who gets a token unless it has a known one."""
        if not run.plays:
            raise Refusal(409, f"Only poker games are played here, and '{run.folder.source.name}' is not one.")
        agent = run.agent()
        seat = Seat(run.name, agent.policy, agent.costs, seed)
        own = token if token and self.seats.known(token) else new_token()
        self.seats.put(own, seat)
        return own, seat


def router(site: Site) -> APIRouter:
    """The routes of the table's pages and its API."""
    routes, players = APIRouter(), Players(site)
    _add_pages(routes, players)
    _add_api(routes, players)
    return routes


def _add_pages(routes: APIRouter, players: Players) -> None:
    site = players.site

    @routes.get("/play", include_in_schema=False)
    def choose() -> Response:
        able = [one for one in cards(site) if one.plays]
        if len(able) == 1:
            return RedirectResponse(f"/play/{able[0].name}", 303)
        return render("home.html", page="play", cards=able)

    @routes.get("/play/{name}", include_in_schema=False)
    def table(name: str, seat_token: Token = None) -> HTMLResponse:
        run = site.run(name)
        token, seat = seat_token, players.seats.find(seat_token, name)
        if seat is None:
            token, seat = players.sit_down(seat_token, run)
        page = _table_page(site, seat)
        _give(page, token)
        return page

    @routes.post("/play/{name}/act", include_in_schema=False)
    def act(name: str, form: Form, seat_token: Token = None) -> Response:
        seat = players.seat(seat_token, name)
        token = form.get("action", "")
        # a raise of any size has its total in a field of its own
        seat.act(whole(form, "hand"), whole(form, "decision"), f"r{form.get('size', '')}" if token == "r" else token)
        return RedirectResponse(f"/play/{name}", 303)

    @routes.post("/play/{name}/next", include_in_schema=False)
    def next_hand(name: str, form: Form, seat_token: Token = None) -> Response:
        players.seat(seat_token, name).next_hand(whole(form, "hand"))
        return RedirectResponse(f"/play/{name}", 303)

    @routes.post("/play/{name}/new", include_in_schema=False)
    def new(name: str, form: Form, seat_token: Token = None) -> Response:
        seed = whole(form, "seed") if form.get("seed") else None
        token, _ = players.sit_down(seat_token, site.run(name), seed)
        answer = RedirectResponse(f"/play/{name}", 303)
        _give(answer, token)
        return answer

    @routes.get("/play/{name}/review", include_in_schema=False)
    async def review(name: str, hand: Hand, seat_token: Token = None, part: bool = False) -> HTMLResponse:
        return await to_thread.run_sync(review_now, name, hand, seat_token, part, limiter=players.reviewing)

    def review_now(name: str, hand: int, seat_token: str | None, part: bool) -> HTMLResponse:
        seat = players.seat(seat_token, name)
        shown = _review(seat, hand, True)
        if part:
            return render("review.html", review=review_view(shown, seat.state()))
        return render("review_page.html", page="play", name=name, review=review_view(shown, seat.state()))


def _table_page(site: Site, seat: Seat) -> HTMLResponse:
    state = seat.state()
    review = review_view(seat.review(state["hand"], False), state) if state["over"] else None
    others = [run.name for run in site.runs.values() if run.plays]
    return render("play.html", page="play", table=table_view(state), review=review, agents=others)


def _review(seat: Seat, hand: int, exact: bool) -> dict[str, Any]:
    costs = seat.costs
    if exact and costs and costs.needs_all_boards(0) and not costs.ready:
        costs.prepare_soon()
    return seat.review(hand, exact)


def _give(answer: Response, token: str | None) -> None:
    assert token is not None
    answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")


def _add_api(routes: APIRouter, players: Players) -> None:
    """Add the endpoints; states are sent without validation, which would take longer than an action."""
    site = players.site

    @routes.get("/api/agents", tags=["query"])
    def agents() -> schema.Agents:
        """The agents of this server."""
        return schema.Agents(agents=cards(site))

    @routes.post("/api/play/{name}", status_code=201, response_model=schema.State, responses=PROBLEMS, tags=["play"])
    def sit_down(name: str, wish: schema.SitDown, seat_token: Token = None) -> JSONResponse:
        """Sit down against an agent; a cookie identifies the seat."""
        token, seat = players.sit_down(seat_token, site.run(name), wish.seed)
        answer = JSONResponse(seat.state(), 201)
        _give(answer, token)
        return answer

    @routes.get("/api/play/{name}", response_model=schema.State, responses=PROBLEMS, tags=["play"])
    def state(name: str, seat_token: Token = None) -> JSONResponse:
        """The table as the person sees it; also resumes after a lost connection."""
        return JSONResponse(players.seat(seat_token, name).state())

    @routes.post("/api/play/{name}/act", response_model=schema.State, responses=PROBLEMS, tags=["play"])
    def act(name: str, action: schema.Action, seat_token: Token = None) -> JSONResponse:
        """Act; the result includes the agent's actions up to the person's next turn."""
        seat = players.seat(seat_token, name)
        seat.act(action.hand, action.decision, action.action)
        return JSONResponse(seat.state())

    @routes.post("/api/play/{name}/next", response_model=schema.State, responses=PROBLEMS, tags=["play"])
    def next_hand(name: str, wish: schema.NextHand, seat_token: Token = None) -> JSONResponse:
        """Deal the next hand after the last one has ended."""
        seat = players.seat(seat_token, name)
        seat.next_hand(wish.hand)
        return JSONResponse(seat.state())

    @routes.get("/api/play/{name}/review", response_model=schema.Review, responses=PROBLEMS, tags=["play"])
    async def review(name: str, hand: Hand, exact: bool = True, seat_token: Token = None) -> dict[str, Any]:
        """The agent's strategy at each of the person's decisions, and the cost of each choice."""
        seat = players.seat(seat_token, name)
        return await to_thread.run_sync(_review, seat, hand, exact, limiter=players.reviewing)
