"""The application: routers, errors as sentences, headers of responses and limits of requests.

By their content security policy pages use only scripts and styles of `static`. So templates have no inline `<style>`, no
`style=` and no `on…=` attributes; in inline SVG use classes and presentation attributes.
"""

from __future__ import annotations

from importlib.metadata import version

import anyio
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers as RequestHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deepcfr.errors import DeepCFRError
from deepcfr.web import browse, matches_page, pages, play, runs_routes, spots
from deepcfr.web.pages import render
from deepcfr.web.site import Refusal, Site, shorten

MOST_BODY = 131_072  # most bytes of a request
MOST_FILE = 32_000_000  # of a file that is sent
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
    for module in (pages, play, browse, runs_routes, matches_page, spots):
        app.include_router(module.router(site))
    app.mount("/static", StaticFiles(packages=[("deepcfr.web", "static"), ("deepcfr.report", "static")]), name="static")
    _answer_errors(app)
    app.add_middleware(SmallBodies)
    app.add_middleware(OwnForms)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    app.add_middleware(Headers)
    return app


def _answer_errors(app: FastAPI) -> None:
    """Answer every error with one sentence: as JSON under /api, else as a page."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return _sentence(request, error.status, error.sentence)

    async def impossible(request: Request, error: Exception) -> Response:
        assert isinstance(error, DeepCFRError)
        return _sentence(request, 400, " ".join(error.problems))

    async def malformed(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first.get("loc", ()))
        found = "" if first["type"] in ("missing", "json_invalid") else f", but is {shorten(repr(first['input']))}"
        what = f"'{shorten(where)}': {shorten(first['msg'], 120)}{found}"
        return _sentence(request, 422, f"The request cannot be read: {what}.")

    async def unknown(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        known = {404: "There is no such page here.", 405: "This address does not take requests of this kind."}
        return _sentence(request, error.status_code, known.get(error.status_code, f"{error.detail}."))

    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(DeepCFRError, impossible)
    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(HTTPException, unknown)


def _sentence(request: Request, status: int, sentence: str) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": sentence}, status)
    page: HTMLResponse = render("error.html", status, sentence=sentence)
    return page


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


class OwnForms:
    """Answers requests that change something with status 403 if a page of another site sends them."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            headers = RequestHeaders(scope=scope)
            origin = headers.get("origin")
            if origin is not None and origin.partition("://")[2] != headers.get("host"):
                await JSONResponse({"error": "A page of another site sent this."}, 403)(scope, receive, send)
                return
        await self.app(scope, receive, send)


class SmallBodies:
    """Answers requests whose body is larger than `MOST_BODY`, or `MOST_FILE` for a file, with status 413, unread.

    Those whose body is not there within `BODY_SECONDS` get 408.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        most = MOST_FILE if scope["method"] == "PUT" else MOST_BODY
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
