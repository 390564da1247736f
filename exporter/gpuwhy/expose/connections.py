"""Connections that wait without end: those that never ask, and those that never read.

The server serves a bounded number at a time, so each must be let go at some time, the sooner the
more there are. Idle ones that have asked before are the server's own business (keep-alive).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import uvicorn

ASK_S = 10.0
"""Time to send a whole request."""
CROWDED_S = 1.0
"""The same where half of all places are taken."""
READ_S = 30.0
"""Time in which some of a waiting answer must be read."""


class Patience:
    """Looks at the server's connections from time to time, and ends those that wait too long."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._since: WeakKeyDictionary[Any, tuple[object, float]] = WeakKeyDictionary()

    def look(self, connections: Iterable[Any], now: float) -> None:
        """``now`` is monotonic seconds. Each is a protocol of uvicorn's."""
        known = list(connections)
        crowded = len(known) > self._places / 2
        for one in known:
            state = _waits_for(one)
            if one not in self._since or self._since[one][0] != state:
                self._since[one] = state, now
            waited = now - self._since[one][1]
            if state == "request" and waited > (CROWDED_S if crowded else ASK_S):
                one.transport.close()
            elif isinstance(state, int) and waited > READ_S:
                one.transport.abort()  # close() would wait for the reader


def _waits_for(connection: Any) -> object:
    """``request``: the rest of one; a number: of bytes that its reader leaves waiting; ``nothing``
    that is its to do."""
    cycle, transport = connection.cycle, connection.transport
    # The server's own timer of keep-alive runs until the first byte of the next request.
    if cycle is None or (cycle.response_complete and connection.timeout_keep_alive_task is None):
        return "request"
    return transport.get_write_buffer_size() or "nothing"


class Server(uvicorn.Server):
    """uvicorn's, with patience that ends."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._patience = Patience(config.limit_concurrency or 1000)

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second."""
        if counter % 10 == 0:
            self._patience.look(self.server_state.connections, time.monotonic())
        return await super().on_tick(counter)
