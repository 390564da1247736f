"""What waits to be written: bounded, so that a slow reader costs observations, not the sources."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Sequence

from gpuwhy.observe.observation import Observation

MOST = 20_000
"""Observations kept: about 20 s of a host with eight ranks."""


class Outbox:
    """A queue that never blocks who puts; what does not fit is dropped and counted by source."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._waiting: deque[Observation] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self.dropped: Counter[str] = Counter()

    def put(self, source: str, observations: Sequence[Observation]) -> None:
        """Add what there is room for."""
        with self._changed:
            room = max(0, self._most - len(self._waiting))
            self._waiting.extend(observations[:room])
            if len(observations) > room:
                self.dropped[source] += len(observations) - room
            self._changed.notify()

    def take(self, timeout: float | None = None) -> list[Observation]:
        """Everything that waits; waits for something itself. Empty at the end and after ``timeout``
        seconds."""
        with self._changed:
            if not self._waiting and not self._closed:
                self._changed.wait(timeout)
            taken = list(self._waiting)
            self._waiting.clear()
            return taken

    def close(self) -> None:
        """Nothing comes any more: wakes who waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """Nothing comes any more and nothing waits."""
        with self._changed:
            return self._closed and not self._waiting
