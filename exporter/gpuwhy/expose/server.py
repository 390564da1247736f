"""``gpuwhy serve``: one thread observes, one answers HTTP, this one waits for the end."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import uvicorn

from gpuwhy.expose import listen
from gpuwhy.expose.actions import Actions, TokenError
from gpuwhy.expose.app import make
from gpuwhy.expose.auth import Web
from gpuwhy.expose.connections import Server
from gpuwhy.expose.feed import Feed, Open
from gpuwhy.expose.listen import ListenError
from gpuwhy.expose.notifications import Notifications
from gpuwhy.expose.state import State
from gpuwhy.expose.web_config import WebConfigError
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.playback import play
from gpuwhy.observe.recording import RecordingError, read_header
from gpuwhy.observe.supervisor import observe

log = logging.getLogger(__name__)

REFRESH_S = 2.0
"""How often the files of the web configuration are looked at."""
GRACE_S = 3
"""Time that requests under way get at the end."""
KEEP_ALIVE_S = 75
"""Longer than scrape intervals, so that Prometheus can keep its connection."""
CONNECTIONS = 200


class Settings(Protocol):
    """What ``run`` needs of the settings."""

    @property
    def web_listen_address(self) -> str: ...
    @property
    def web_config_file(self) -> Path | None: ...
    @property
    def web_notifications_from(self) -> tuple[str, ...]: ...
    @property
    def web_token_file(self) -> Path | None: ...
    @property
    def recording(self) -> tuple[Path, ...]: ...
    @property
    def loop(self) -> bool: ...
    @property
    def gpu_hour_price(self) -> float | None: ...
    @property
    def max_overhead(self) -> float | None: ...


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT. 0 then; 1 if the address cannot be had; 2 for bad input."""
    try:
        web = Web(settings.web_config_file)
        actions = Actions(settings.web_token_file)
        for path in settings.recording:
            read_header(path)  # a foreign file is refused before anything is served
        sock = listen.open_socket(settings.web_listen_address)
    except (WebConfigError, TokenError, RecordingError) as error:
        return _refuse(error, 2)
    except ListenError as error:
        return _refuse(error, 1)
    with sock:
        return _serve(settings, web, actions, sock)


def _refuse(error: Exception, status: int) -> int:
    sys.stderr.write(f"gpuwhy: {error}\n")
    return status


def _serve(settings: Settings, web: Web, actions: Actions, sock: socket.socket) -> int:
    stop = threading.Event()
    state = State(
        recorded=bool(settings.recording),
        gpu_hour_price=settings.gpu_hour_price,
        overhead_limit=settings.max_overhead,
    )
    ends = bool(settings.recording) and not settings.loop
    feed = Feed(state, _source(settings, stop), stop, ends=ends)
    server = Server(_config(state, web, actions, settings.web_notifications_from))
    answering = threading.Thread(
        target=_answer, args=(server, sock, stop), name="http", daemon=True
    )
    with _signals(stop):
        feed.start()
        answering.start()
        log.info("serving", extra={"url": listen.url(sock, tls=web.context is not None)})
        while not stop.wait(REFRESH_S):
            web.refresh()
        actions.ended.set()
        server.should_exit = True
        answering.join(GRACE_S + 2)
        feed.join(10)
    if feed.failed is not None:
        return _refuse(RecordingError(feed.failed), 2)
    log.info("ended")
    return 0


def _config(state: State, web: Web, actions: Actions, networks: Sequence[str]) -> uvicorn.Config:
    config = uvicorn.Config(
        make(state, web, Notifications(), networks, actions),
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a header must not make anybody "this host"
        lifespan="off",
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    config.load()
    config.ssl = web.context  # uvicorn would build one that cannot be given new certificates
    return config


def _answer(server: uvicorn.Server, sock: socket.socket, stop: threading.Event) -> None:
    """Whatever ends the server ends the exporter: one that answers nobody is of no use."""
    try:
        server.run(sockets=[sock])
    except Exception:
        log.exception("the HTTP server ended")
    finally:
        stop.set()


@contextlib.contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT ask for the end, once; a second one is left to its default."""

    def ask(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _source(settings: Settings, stop: threading.Event) -> Open:
    if settings.recording:
        return lambda: _recorded(settings, stop)
    return lambda: observe({"max_overhead": settings.max_overhead})


@contextlib.contextmanager
def _recorded(settings: Settings, stop: threading.Event) -> Iterator[Iterable[list[Observation]]]:
    played = play(settings.recording, 1.0, loop=settings.loop, stop=stop)
    yield ([observation] for observation in played)
