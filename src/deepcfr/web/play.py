"""Play against agents: the table as a page and as JSON, and the seats, which a folder keeps over a restart."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse

from deepcfr.core.errors import CheckpointError
from deepcfr.core.files import cannot_write, json_bytes, read_json, write_atomically
from deepcfr.web import schema
from deepcfr.web.play_view import review_view, table_view
from deepcfr.web.site import NamedRun, RequestError, Site, card, cards, choose_agent, render, shorten
from deepcfr.web.table import WebSeat

MOST_SEATS = 2_000  # the least recently used are dropped
LOST_SEATS = "Seats and results are lost when the server stops"
_TOKEN_BYTES = 18
COOKIE = "deepcfr_seat"  # its name on the standard port
_YEAR = 365 * 24 * 3600  # seconds that a browser keeps the key to its seats
AT_ONCE = 2  # reviews at the same time; they take long, and actions of other players must not wait for them
Hand = Annotated[int, Query(ge=0, le=2**53)]
Seed = Annotated[str, Query(pattern="^[0-9]{0,20}$")]  # a link that deals a hand again has its seed and its number
Number = Annotated[str, Query(pattern="^[1-9]?[0-9]{0,15}$")]
PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": {"model": schema.Problem}}


class Seats:
    """The seats of all persons by token and agent; no more than `most`.

    Each seat has a file in `folder` that only its owner can read, under a hash of its token; without a folder all seats
    are gone with the server. `warn` gets a sentence when seats can no longer be kept.
    """

    def __init__(self, folder: Path | None = None, warn: Callable[[str], None] = print, most: int = MOST_SEATS) -> None:
        self._folder, self._warn, self._most = folder, warn, most
        self._seats: OrderedDict[tuple[str, str], WebSeat] = OrderedDict()
        self._lock, self._writing = threading.RLock(), threading.Lock()  # the latter is taken last
        if folder is None:
            return
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            oldest_first = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
            for path in oldest_first[: max(0, len(oldest_first) - most)]:
                path.unlink(missing_ok=True)
        except OSError as error:
            self._keep_no_more(cannot_write(folder, error))

    def find(
        self, token: str | None, agent: str, go_on: Callable[[dict[str, Any]], WebSeat] | None = None
    ) -> WebSeat | None:
        """Return the seat of a person against an agent; None if there is none.

        `go_on` makes a seat from the facts of one that was kept; a CheckpointError that it raises is told.
        """
        if not token:
            return None
        with self._lock:
            seat = self._seats.get((token, agent))
            if seat is not None:
                self._seats.move_to_end((token, agent))
            elif go_on and (path := self._path(token, agent)) and path.is_file():
                try:
                    seat = go_on(read_json(path))
                except CheckpointError as error:
                    self._warn(" ".join(error.problems))
                else:
                    self.put(token, seat)
            return seat

    def put(self, token: str, seat: WebSeat) -> None:
        """Store a seat; it replaces the person's earlier one against the same agent."""
        with self._lock:
            seat.changed = partial(self._keep, token, seat)
            self._seats[token, seat.agent] = seat
            self._seats.move_to_end((token, seat.agent))
            seat.changed()
            while len(self._seats) > self._most:
                oldest, _ = self._seats.popitem(last=False)
                if path := self._path(*oldest):
                    path.unlink(missing_ok=True)

    def known(self, token: str) -> bool:
        """Whether a token has a seat, so that this server must have issued it."""
        with self._lock:
            kept = any(self._folder.glob(f"{_hashed(token)}-*.json")) if self._folder else False
            return kept or any(owner == token for owner, _ in self._seats)

    def __len__(self) -> int:
        return len(self._seats)

    def _path(self, token: str, agent: str) -> Path | None:
        return self._folder / f"{_hashed(token)}-{agent}.json" if self._folder else None

    def _keep(self, token: str, seat: WebSeat) -> None:
        """Write the file of a seat, unless another one has taken its place."""
        path = self._path(token, seat.agent)
        if path is None:
            return
        facts = seat.facts()
        with self._writing:
            if self._seats.get((token, seat.agent)) is not seat:
                return
            try:
                write_atomically(path, json_bytes(facts))
            except CheckpointError as error:
                self._keep_no_more(error)

    def _keep_no_more(self, error: CheckpointError) -> None:
        self._folder = None
        self._warn(f"{LOST_SEATS}: {' '.join(error.problems)}")


def _hashed(token: str) -> str:
    return hashlib.blake2b(token.encode(), digest_size=16).hexdigest()


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
        raise RequestError(400, "The form cannot be read.") from error


Form = Annotated[dict[str, str], Depends(read_form)]


def whole(form: dict[str, str], name: str, most: int = 2**53) -> int:
    """An integer of a form. Raises Refusal if it is missing, not an integer, or more than `most`."""
    text = form.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and int(text) <= most):
        raise RequestError(400, f"The form needs a whole number from 0 to {most} as {name}, but has {shorten(text)!r}.")
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
            raise RequestError(404, f"You have no seat against {name} yet: open its table first.")
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
        own = token if token and self.seats.known(token) else secrets.token_urlsafe(_TOKEN_BYTES)
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
        return choose_agent("play", cards(site))

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
    except RequestError as error:
        return _table_page(site, seat, f"Nothing was changed. {error.sentence}", error.status)
    return RedirectResponse(f"/play/{seat.agent}", 303)


def _table_page(site: Site, seat: WebSeat, notice: str = "", status: int = 200) -> HTMLResponse:
    state = seat.state()
    review = review_view(seat.review(state["hand"], False), state) if state["over"] else None
    values: dict[str, Any] = {"table": table_view(state), "review": review, "notice": notice}
    values["agents"] = site.menu(seat.agent, lambda run: f"/play/{run.name}")
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
    def agents() -> dict[Literal["agents"], list[schema.AgentFacts]]:
        """The agents of this server."""
        return {"agents": cards(site)}

    @routes.post("/api/play/{name}", status_code=201, responses=PROBLEMS, tags=["play"])
    def sit_down(name: str, wish: schema.SitDown, request: Request, seat_token: Token = None) -> JSONResponse:
        """Sit down against an agent; a cookie identifies the seat."""
        token, seat = players.sit_down(seat_token, site.run(name), wish.seed, wish.hand)
        answer = JSONResponse(seat.state(), 201)
        _give(request, answer, token)
        return answer

    @routes.get("/api/play/{name}", responses=PROBLEMS, tags=["play"])
    def state(name: str, seat_token: Token = None) -> JSONResponse:
        """The table as the person sees it; also resumes after a lost connection."""
        return JSONResponse(players.seat(seat_token, name).state())

    @routes.post("/api/play/{name}/act", responses=PROBLEMS, tags=["play"])
    def act(name: str, action: schema.Action, seat_token: Token = None) -> JSONResponse:
        """Act; the result includes the agent's actions up to the person's next turn."""
        seat = players.seat(seat_token, name)
        seat.act(action.hand, action.decision, action.action)
        return JSONResponse(seat.state())

    @routes.post("/api/play/{name}/next", responses=PROBLEMS, tags=["play"])
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
