"""Play against agents: the table as a page and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import parse_qsl

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse

from deepcfr.web import schema
from deepcfr.web.home import card, cards
from deepcfr.web.pages import render
from deepcfr.web.play_view import review_view, table_view
from deepcfr.web.seats import Seats, new_token
from deepcfr.web.site import NamedRun, Refusal, Site, shorten
from deepcfr.web.table import WebSeat

COOKIE = "deepcfr_seat"  # its name on the standard port
_YEAR = 365 * 24 * 3600  # seconds that a browser keeps the key to its seats
AT_ONCE = 2  # reviews at the same time; they take long, and actions of other players must not wait for them
Hand = Annotated[int, Query(ge=0, le=2**53)]
Seed = Annotated[str, Query(pattern="^[0-9]{0,20}$")]  # a link that deals a hand again has its seed and its number
Number = Annotated[str, Query(pattern="^[1-9]?[0-9]{0,15}$")]
PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": {"model": schema.Problem}}


def cookie_of(request: Request) -> str:
    """The name of the cookie of a server's seats, with its port: browsers send a host's cookies to all of its ports."""
    port = re.search(r":([0-9]+)$", request.headers.get("host", ""))
    return f"{COOKIE}_{port[1]}" if port else COOKIE


async def read_token(request: Request) -> str | None:
    """The token by which a browser finds its seats, if it has one."""
    return request.cookies.get(cookie_of(request))


Token = Annotated[str | None, Depends(read_token)]


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form. Raises Refusal if it is none."""
    try:
        body = (await request.body()).decode()
        return dict(parse_qsl(body, keep_blank_values=True, strict_parsing=bool(body), max_num_fields=100))
    except ValueError as error:
        raise Refusal(400, "The form cannot be read.") from error


Form = Annotated[dict[str, str], Depends(read_form)]


def whole(form: dict[str, str], name: str, most: int = 2**53) -> int:
    """An integer of a form. Raises Refusal if it is missing, not an integer, or more than `most`."""
    text = form.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and int(text) <= most):
        raise Refusal(400, f"The form needs a whole number from 0 to {most} as {name}, but has {shorten(text)!r}.")
    return int(text)


def seed_of(form: dict[str, str]) -> int | None:
    """The seed of a form, if there is one. Raises Refusal for one that is none."""
    return whole(form, "seed", schema.MOST_SEED) if form.get("seed", "").strip() else None


class Players:
    """The seats of persons at agents' tables."""

    def __init__(self, site: Site) -> None:
        self.site, self.seats = site, Seats(site.seats, site.warn)
        self.reviewing = CapacityLimiter(AT_ONCE)

    def find(self, token: str | None, run: NamedRun) -> WebSeat | None:
        """The person's seat at an agent's table, if there is one, also from before a restart."""

        def go_on(kept: dict[str, Any]) -> WebSeat:
            agent = run.agent()
            return WebSeat(run.name, agent.policy, agent.costs, kept=kept)

        return self.seats.find(token, run.name, go_on)

    def seat(self, token: str | None, name: str) -> WebSeat:
        """The person's seat at an agent's table. Raises Refusal if there is none."""
        seat = self.find(token, self.site.run(name))
        if seat is None:
            raise Refusal(404, f"You have no seat against {name} yet: open its table first.")
        return seat

    def sit_down(
        self, token: str | None, run: NamedRun, seed: int | None = None, again: int | None = None
    ) -> tuple[str, WebSeat]:
        """A new seat for a person, who gets a token unless it has a known one.

        With `again`, hand `again` of `seed` comes first, outside the session.
        """
        agent = run.agent()
        first = None if seed is None or again is None else (seed, again)
        seat = WebSeat(run.name, agent.policy, agent.costs, None if first else seed, first=first)
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
        able = cards(site)
        if len(able) == 1:
            return RedirectResponse(f"/play/{able[0].name}", 303)
        return render("home.html", page="play", cards=able)

    @routes.get("/play/{name}", include_in_schema=False)
    def table(name: str, seat_token: Token = None, seed: Seed = "", hand: Number = "") -> HTMLResponse:
        run = site.run(name)
        seat = None if seed else players.find(seat_token, run)
        if seat is None:
            run.agent()  # or the reason why it cannot be played
            return render("sit.html", page="play", card=card(run), seed=seed, hand=hand)
        return _table_page(site, seat)

    @routes.post("/play/{name}", include_in_schema=False)
    def sit_down(name: str, form: Form, request: Request, seat_token: Token = None) -> Response:
        run, seed = site.run(name), seed_of(form)
        again = whole(form, "hand") - 1 if seed is not None and form.get("hand") else None
        answer = RedirectResponse(f"/play/{name}", 303)
        seat = players.find(seat_token, run)
        if seat is None:
            _give(request, answer, players.sit_down(seat_token, run, seed, again)[0])
        elif seed is not None and again is not None:
            seat.again(seed, again)
        return answer

    @routes.post("/play/{name}/act", include_in_schema=False)
    def act(name: str, form: Form, seat_token: Token = None) -> Response:
        seat = players.seat(seat_token, name)
        token = form.get("action", "")
        number, decision = whole(form, "hand"), whole(form, "decision")
        # a raise of any size has its total in a field of its own
        whole_token = f"r{form.get('size', '')}" if token == "r" else token
        return _changed(site, seat, lambda: seat.act(number, decision, whole_token))

    @routes.post("/play/{name}/next", include_in_schema=False)
    def next_hand(name: str, form: Form, seat_token: Token = None) -> Response:
        seat, number = players.seat(seat_token, name), whole(form, "hand")
        return _changed(site, seat, lambda: seat.next_hand(number))

    @routes.post("/play/{name}/new", include_in_schema=False)
    def new(name: str, form: Form, request: Request, seat_token: Token = None) -> Response:
        token, _ = players.sit_down(seat_token, site.run(name), seed_of(form))
        answer = RedirectResponse(f"/play/{name}", 303)
        _give(request, answer, token)
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


def _changed(site: Site, seat: WebSeat, change: Callable[[], None]) -> Response:
    """Apply a change and lead back to the table; one that comes late gets the table as it is, with the reason."""
    try:
        change()
    except Refusal as refusal:
        return _table_page(site, seat, f"Nothing was changed. {refusal.sentence}", refusal.status)
    return RedirectResponse(f"/play/{seat.agent}", 303)


def _table_page(site: Site, seat: WebSeat, notice: str = "", status: int = 200) -> HTMLResponse:
    state = seat.state()
    review = review_view(seat.review(state["hand"], False), state) if state["over"] else None
    values = {"table": table_view(state), "review": review, "agents": list(site.runs), "notice": notice}
    return render("play.html", status, page="play", **values)


def _review(seat: WebSeat, hand: int, exact: bool) -> dict[str, Any]:
    costs = seat.costs
    if exact and costs and costs.needs_all_boards(0) and not costs.ready:
        costs.prepare_soon()
    return seat.review(hand, exact)


def _give(request: Request, answer: Response, token: str) -> None:
    answer.set_cookie(cookie_of(request), token, max_age=_YEAR, httponly=True, samesite="strict", path="/")


def _add_api(routes: APIRouter, players: Players) -> None:
    """Add the endpoints; states are sent without validation, which would take longer than an action."""
    site = players.site

    @routes.get("/api/agents", tags=["query"])
    def agents() -> schema.Agents:
        """The agents of this server."""
        return schema.Agents(agents=cards(site))

    @routes.post(
        "/api/play/{name}", status_code=201, response_model=schema.TableFacts, responses=PROBLEMS, tags=["play"]
    )
    def sit_down(name: str, wish: schema.SitDown, request: Request, seat_token: Token = None) -> JSONResponse:
        """Sit down against an agent; a cookie identifies the seat."""
        token, seat = players.sit_down(seat_token, site.run(name), wish.seed, wish.hand)
        answer = JSONResponse(seat.state(), 201)
        _give(request, answer, token)
        return answer

    @routes.get("/api/play/{name}", response_model=schema.TableFacts, responses=PROBLEMS, tags=["play"])
    def state(name: str, seat_token: Token = None) -> JSONResponse:
        """The table as the person sees it; also resumes after a lost connection."""
        return JSONResponse(players.seat(seat_token, name).state())

    @routes.post("/api/play/{name}/act", response_model=schema.TableFacts, responses=PROBLEMS, tags=["play"])
    def act(name: str, action: schema.Action, seat_token: Token = None) -> JSONResponse:
        """Act; the result includes the agent's actions up to the person's next turn."""
        seat = players.seat(seat_token, name)
        seat.act(action.hand, action.decision, action.action)
        return JSONResponse(seat.state())

    @routes.post("/api/play/{name}/next", response_model=schema.TableFacts, responses=PROBLEMS, tags=["play"])
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
