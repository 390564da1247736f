"""Routes of the page: itself, its files, the history that it draws, the flame graph it asks for."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from typing import Annotated

from fastapi import FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from gpuwhy.expose import assets, flame, page
from gpuwhy.expose.actions import Actions, RefusedError
from gpuwhy.expose.compress import packed
from gpuwhy.expose.history import Scope, history
from gpuwhy.expose.notifications import Notifications
from gpuwhy.expose.state import State

READ = ["GET", "HEAD"]
LONGEST_REQUEST = 1000
"""Bytes of the JSON that asks for a flame graph."""
LOOK_S = 0.5
"""How often it is looked whether the browser still waits."""


def add(app: FastAPI, state: State, received: Notifications, actions: Actions) -> None:
    """Add the routes to the application."""
    _add_page(app, state, received, actions)
    _add_history(app, state)
    _add_profile(app, state, actions)


def _add_page(app: FastAPI, state: State, received: Notifications, actions: Actions) -> None:
    files = assets.load()

    @app.api_route("/", methods=READ)
    def first_page(accept_encoding: Annotated[str, Header()] = "") -> Response:
        html = page.render(state.view(), received.latest(), profiling=actions.on)
        return packed(html.encode(), "text/html; charset=utf-8", accept_encoding)

    @app.api_route("/static/{name:path}", methods=READ)
    def static(
        name: str,
        accept_encoding: Annotated[str, Header()] = "",
        if_none_match: Annotated[str, Header()] = "",
    ) -> Response:
        if name not in files:
            raise HTTPException(404, "no such file")
        return assets.answer(files[name], accept_encoding, if_none_match)


def _add_history(app: FastAPI, state: State) -> None:
    @app.api_route("/api/v1/history", methods=READ)
    def seconds(
        run: Annotated[str | None, Query()] = None,
        rank: Annotated[int | None, Query()] = None,
        gpu: Annotated[str | None, Query()] = None,
        since: Annotated[int, Query(ge=0)] = 0,
        accept_encoding: Annotated[str, Header()] = "",
    ) -> Response:
        found = {
            "schema": 1,
            "recorded": state.view().about.recorded,
            "view": "device" if run is None and rank is None else "run",
            **history(state.entries(since), Scope(run, rank, gpu)),
        }
        body = json.dumps(found, separators=(",", ":"), allow_nan=False).encode()
        return packed(body, "application/json", accept_encoding)


def _add_profile(app: FastAPI, state: State, actions: Actions) -> None:
    @app.post("/api/v1/profile")
    async def profile(request: Request) -> Response:
        try:
            await run_in_threadpool(actions.begin, request.headers)
            acted = False
            try:
                pid, seconds = flame.parse(await _body(request), state.view())
                acted = True
                return await _taken(request, pid, seconds, actions)
            finally:
                actions.done(acted=acted)
        except RefusedError as refused:
            after = {} if refused.retry_s is None else _after(refused.retry_s)
            raise HTTPException(refused.status, refused.reason, after) from refused


def _after(seconds: float) -> dict[str, str]:
    return {"Retry-After": str(math.ceil(seconds))}


async def _taken(request: Request, pid: int, seconds: float, actions: Actions) -> Response:
    """The flame graph; its sampling ends when the browser waits no longer."""
    given_up = threading.Event()
    taking = asyncio.ensure_future(
        run_in_threadpool(flame.take, pid, seconds, given_up, actions.ended)
    )
    try:
        while not (await asyncio.wait({taking}, timeout=LOOK_S))[0]:
            if await request.is_disconnected():
                given_up.set()
        stacks = taking.result()
    except flame.GivenUpError as error:
        raise RefusedError(503, "given up: the exporter ends, or nobody waits for it") from error
    finally:
        given_up.set()
    accepted = request.headers.get("accept-encoding", "")
    return await run_in_threadpool(packed, stacks, "text/plain; charset=utf-8", accepted)


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_REQUEST:
            raise RefusedError(413, f"at most {LONGEST_REQUEST} bytes")
    return body
