"""The application: routers, errors as sentences, headers of responses, limits of requests; and serving it.

By their content security policy pages use only scripts and styles of `static`. So templates have no inline `<style>`,
no `style=` and no `on…=` attributes; in inline SVG use classes and presentation attributes.
"""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version

import anyio
import torch
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers as RequestHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from deepcfr.core.errors import ConfigError, DeepCFRError
from deepcfr.core.files import state_folder
from deepcfr.core.signals import HANGUP, handled
from deepcfr.play.hand import begin
from deepcfr.web import browse, hands, play, runs, spots
from deepcfr.web.play import LOST_SEATS
from deepcfr.web.site import RequestError, Site, cards, render, shorten
from deepcfr.web.spot_shelf import SolveJob, SpotShelf
from deepcfr.web.table import results

MOST_BODY = 131_072  # most bytes of a request
MOST_FILE = 32_000_000  # of a file, or of the hands of a page
BODY_SECONDS = 20  # until a request must be there whole
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
)
ANY_HOST = ("*",)
REQUEST_SECONDS = 20  # for the head of a request, from the connection or the last answer on
POLL_SECONDS = 0.1  # between looks at a spot that stops
FINISH_SECONDS = 10  # for answers that are being made when the server ends


def build_app(site: Site, hosts: tuple[str, ...] = LOOPBACK) -> FastAPI:
    """The application for the runs of `site`; it answers only requests for `hosts`."""
    app = FastAPI(
        title="deepcfr",
        version=version("deepcfr"),
        description="Play an agent and query its strategy; the pages use the same functions.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    for module in (play, browse, runs, spots, hands):
        app.include_router(module.router(site))

    @app.get("/", include_in_schema=False)
    def home() -> HTMLResponse:
        return render("home.html", cards=cards(site))

    app.mount("/static", StaticFiles(packages=[("deepcfr.web", "static"), ("deepcfr.run", "static")]), name="static")
    _answer_errors(app)
    app.add_middleware(Guard)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    app.add_middleware(Headers)
    return app


def _answer_errors(app: FastAPI) -> None:
    """Answer every error with one sentence: as JSON under /api, else as a page."""

    async def answer(request: Request, error: Exception) -> Response:
        status, sentence = _told(error)
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": sentence}, status)
        return render("error.html", status, sentence=sentence)

    for kind in (DeepCFRError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)


def _told(error: Exception) -> tuple[int, str]:
    """The status and the sentence of an error."""
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first.get("loc", ()))
        found = "" if first["type"] in ("missing", "json_invalid") else f", but is {shorten(repr(first['input']))}"
        return 422, f"The request cannot be read: '{shorten(where)}': {shorten(first['msg'], 120)}{found}."
    if isinstance(error, HTTPException):
        known = {404: "There is no such page here.", 405: "This address does not take requests of this kind."}
        return error.status_code, known.get(error.status_code, f"{error.detail}.")
    assert isinstance(error, DeepCFRError)
    return error.status if isinstance(error, RequestError) else 400, " ".join(error.problems)


class Headers:
    """Adds security and cache headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                # addresses of `static` contain a hash of the content; everything else may change at any time
                is_file = scope["path"].startswith("/static/") and message["status"] == 200
                kept = b"max-age=31536000, immutable" if is_file else b"no-store"
                message["headers"] = [*message["headers"], *_HEADERS, (b"cache-control", kept)]
            await send(message)

        await self.app(scope, receive, answer)


class Guard:
    """Refuses requests that change something if a page of another site sends them, with status 403, unread.

    Bodies larger than `MOST_BODY`, or `MOST_FILE` for a file or hands, get 413, unread; those that are not there within
    `BODY_SECONDS` get 408.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        headers = RequestHeaders(scope=scope)
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != headers.get("host"):
            await JSONResponse({"error": "A page of another site sent this."}, 403)(scope, receive, send)
            return
        most = MOST_FILE if scope["method"] == "PUT" or scope["path"] == "/hands" else MOST_BODY
        body, more = bytearray(), True
        with anyio.move_on_after(BODY_SECONDS) as limit:
            while more and len(body) <= most:
                message = await receive()
                if message["type"] != "http.request":
                    return  # the client has disconnected
                body += message.get("body", b"")
                more = message.get("more_body", False)
        if limit.cancelled_caught:
            late = {"error": f"The request did not end within {BODY_SECONDS} seconds."}
            await JSONResponse(late, 408, {"connection": "close"})(scope, receive, send)
            return
        if len(body) > most:
            sentence = f"The request is larger than {most:,} bytes, which is the most that this server takes."
            await JSONResponse({"error": sentence}, 413)(scope, receive, send)
            return
        whole: Message = {"type": "http.request", "body": bytes(body), "more_body": False}
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return whole

        await self.app(scope, replay, send)


class Patient(H11Protocol):
    """HTTP with a time limit for half requests, which uvicorn itself waits for without an end."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._limit:
            self._limit.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._limit:
            self._limit.cancel()
        self._limit = self.loop.call_later(REQUEST_SECONDS, self._close_half)

    def _close_half(self) -> None:
        """Close the connection unless a request is being answered, which sets the next limit."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def serve(site: Site, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve `site` on a port, or on any free one if it is 0, until Ctrl-C or a signal to end.

    `say` gets the address when it is ready, and what becomes of a spot that is being solved at the end. People's seats
    are kept for the next server on the same port. Raises ConfigError for an address that is not available.
    """
    listening = _listen(host, port)
    torch.set_num_threads(1)  # the server itself has many threads
    hosts = (*LOOPBACK, host) if _is_loopback(host) else ANY_HOST
    if port and site.seats is None:
        if state := state_folder():
            site.seats = state / "seats" / str(port)
        else:
            say(f"{LOST_SEATS}: this user has no home, and DEEPCFR_STATE names no folder.")
    config = uvicorn.Config(
        build_app(site, hosts), http=Patient, log_level="warning", access_log=False, server_header=False,
        timeout_graceful_shutdown=FINISH_SECONDS,
    )  # fmt: skip
    threading.Thread(target=warm_up, args=(site,), daemon=True).start()
    shown = f"[{host}]" if ":" in host else host
    say(f"http://{shown}:{listening.getsockname()[1]}/  (Ctrl-C stops it)")
    if hosts is ANY_HOST:
        say(f"{host} can be reached from other machines, and nobody is asked who they are.")
    server = uvicorn.Server(config)
    # uvicorn has a handler of its own for SIGTERM while it runs
    with handled(signal.default_int_handler, [signal.SIGTERM]), handled(server.handle_exit, [HANGUP]):
        with listening, suppress(KeyboardInterrupt):  # which uvicorn raises again when it has ended
            server.run(sockets=[listening])
        end_spots(site.spots, say)


def end_spots(shelf: SpotShelf, say: Callable[[str], None]) -> None:
    """Stop the spots that wait or are being solved, wait for the result of the latter to be kept, and say all that."""
    going = [job.name for job in shelf.everything()[1] if not job.problem]
    for name in reversed(going):  # the first one is being solved, and must not make room for the next
        shelf.stop(name)
    for name in going:
        if shelf.folder is None:
            say(f"The spot '{name}' is not solved and nothing of it is kept: --spots FOLDER keeps what was found.")
            continue
        try:
            if isinstance(shelf.find(name), SolveJob):
                say(f"The spot '{name}' stops, and what was found is kept; Ctrl-C gives it up.")
            while isinstance(job := shelf.find(name), SolveJob) and not job.problem:
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            say(f"The spot '{name}' was given up.")
            continue
        if job is None:
            say(f"The spot '{name}' was waiting and is not solved.")
        else:
            say(job.problem if isinstance(job, SolveJob) else f"The spot '{name}' is kept in '{shelf.folder}'.")


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise ConfigError(f"--port must be from 0 to 65535, but is {port}.")
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # early requests wait until the application is ready
        listening = socket.create_server(place[:2], family=family, backlog=256)
    except (OSError, UnicodeError) as error:  # no name of a machine is what cannot be encoded
        raise ConfigError(f"{host}:{port} is not available: {getattr(error, 'strerror', None) or error}.") from error
    return listening


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warm_up(site: Site) -> None:
    """Load every agent and play a hand with it, so that no request waits for compilation."""
    for run in site.runs.values():
        try:
            hand = begin(run.agent().policy, 0, 0)
            while not hand.over:
                if hand.persons_turn:
                    hand.act(hand.choices()[-1].action)
                else:
                    hand.act_for_agent()
            results(hand)
        except DeepCFRError:
            continue  # its page shows the reason
