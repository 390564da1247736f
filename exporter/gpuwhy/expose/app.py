"""The HTTP interface: ``/metrics``, the page, health, and the JSON API."""

from __future__ import annotations

import gzip
import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuwhy import values
from gpuwhy.expose import exposition, notifications, page_app, processes
from gpuwhy.expose.actions import Actions
from gpuwhy.expose.auth import Web
from gpuwhy.expose.compress import takes_gzip
from gpuwhy.expose.notifications import Notifications
from gpuwhy.expose.state import State

log = logging.getLogger(__name__)

SCRAPE_MARGIN_S = 0.5
"""Left of Prometheus's timeout for the way there and back."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Nothing from elsewhere, nothing inline, and no script can make markup of a text."""
SECURITY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "deny",
    "Referrer-Policy": "no-referrer",
}
READ = ["GET", "HEAD"]


WINDOW = values.duration(1, 900)
"""``?window=`` of the verdicts: as far back as seconds are kept."""


def make(
    state: State,
    web: Web,
    received: Notifications,
    networks: Sequence[str] = (),
    actions: Actions | None = None,
) -> FastAPI:
    """The application over ``state``; ``networks`` may post notifications beside this host, and
    ``actions`` lets requests for flame graphs in (none without it)."""

    def authenticate(authorization: Annotated[str | None, Header()] = None) -> None:
        if not web.authenticator.allows(authorization):
            challenge = {"WWW-Authenticate": 'Basic realm="gpuwhy"'}
            raise HTTPException(401, "user and password wanted", challenge)

    app = FastAPI(
        title="gpuwhy",
        docs_url=None,  # they would load their scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(authenticate)],
    )
    app.add_middleware(Secured, web=web)
    _add_metrics(app, state)
    _add_health(app, state)
    _add_api(app, state)
    page_app.add(app, state, received, actions or Actions())
    _add_notifications(app, state, received, lambda host: _may_post(web, host, networks))
    return app


class Secured:
    """Adds the security headers, and those of the web configuration, to every response."""

    def __init__(self, app: ASGIApp, web: Web) -> None:
        self.app, self.web = app, web

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Cache-Control", "no-store")
                for name, value in {**SECURITY, **self.web.config.headers}.items():
                    headers[name] = value
            await send(message)

        await self.app(scope, receive, with_headers)


def _add_metrics(app: FastAPI, state: State) -> None:
    @app.api_route("/metrics", methods=READ)
    def metrics(  # no coroutine: it runs in a thread, and a slow one keeps nobody waiting
        accept: Annotated[str, Header()] = "",
        accept_encoding: Annotated[str, Header()] = "",
        x_prometheus_scrape_timeout_seconds: Annotated[str, Header()] = "",
    ) -> Response:
        deadline = _deadline(x_prometheus_scrape_timeout_seconds)
        body, content_type, found = exposition.render(state.view(), accept, deadline)
        state.tallies.add(found.dropped, found.failures)
        headers = {"Vary": "Accept, Accept-Encoding"}
        if takes_gzip(accept_encoding):
            body, headers["Content-Encoding"] = gzip.compress(body, 4), "gzip"
        return Response(body, headers={**headers, "Content-Type": content_type})


def _deadline(timeout: str) -> float:
    """The time, by ``time.monotonic``, at which a scrape with this timeout header must be done."""
    try:
        seconds = float(timeout)
    except ValueError:
        return math.inf
    if not 0 < seconds < math.inf:
        return math.inf
    return time.monotonic() + max(seconds / 2, seconds - SCRAPE_MARGIN_S)


def _add_health(app: FastAPI, state: State) -> None:
    @app.api_route("/-/healthy", methods=READ)
    def healthy() -> PlainTextResponse:
        return PlainTextResponse("gpuwhy is healthy.\n")

    @app.api_route("/-/ready", methods=READ)
    def ready() -> PlainTextResponse:
        view = state.view()
        down = any(r.get("up") is False for r in view.facts.get("source", {}).values())
        if view.last_t is not None or down:
            return PlainTextResponse("gpuwhy is ready.\n")
        return PlainTextResponse("Nothing has been observed yet.\n", 503)


def _add_api(app: FastAPI, state: State) -> None:
    @app.api_route("/api/v1/verdicts", methods=READ)
    def verdicts(window: Annotated[str | None, Query()] = None) -> JSONResponse:
        try:
            seconds = None if window is None else WINDOW(window)
        except ValueError as error:
            raise HTTPException(400, f"window: {error}") from error
        return JSONResponse(state.verdicts(seconds))

    @app.api_route("/api/v1/processes", methods=READ)
    def listed() -> JSONResponse:
        return JSONResponse(processes.listing(state.view()))


def _may_post(web: Web, host: str | None, networks: Sequence[str]) -> bool:
    """This host, the networks given, and whoever has shown a password."""
    return bool(web.config.users) or notifications.may_post(host, networks)


def _add_notifications(
    app: FastAPI, state: State, received: Notifications, may_post: Callable[[str | None], bool]
) -> None:
    @app.post("/api/v1/notifications")
    async def post(request: Request) -> JSONResponse:
        if not may_post(request.client.host if request.client else None):
            raise HTTPException(403, "notifications are taken from this host only")
        # A page of another origin cannot send this type without asking first, and gets no answer.
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise HTTPException(415, "Content-Type must be application/json")
        try:
            found = notifications.parse(await _body(request))
        except ValueError as error:
            raise HTTPException(400, f"not an Alertmanager webhook: {error}") from error
        received.add(found)
        state.tallies.notified(len(found))
        return JSONResponse({"status": "success"})


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > notifications.MOST_BYTES:
            raise HTTPException(413, f"at most {notifications.MOST_BYTES} bytes")
    return body
