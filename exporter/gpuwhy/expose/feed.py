"""The thread that feeds the state: from the observer process, or from recordings."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from gpuwhy.expose.state import State
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import RecordingError

log = logging.getLogger(__name__)

RETRY_S = 5.0
"""After observing broke off with an error, it is begun again after this long."""

Open = Callable[[], AbstractContextManager[Iterable[Sequence[Observation]]]]
"""Begins to observe; the context gives batches, an empty one at times so that a stop is heeded."""


class Feed(threading.Thread):
    """Feeds ``state`` until ``stop`` is set. ``failed`` says why a recording cannot be played."""

    def __init__(self, state: State, begin: Open, stop: threading.Event, *, ends: bool) -> None:
        """``ends``: the batches may come to an end (a recording that is not looped)."""
        super().__init__(name="feed", daemon=True)
        self._state, self._begin, self._stop_asked, self._ends = state, begin, stop, ends
        self.failed: str | None = None

    def run(self) -> None:
        """Observe; again after an error, since nobody else would."""
        while not self._stop_asked.is_set():
            try:
                self._observe()
            except RecordingError as error:
                self.failed = str(error)
                self._stop_asked.set()
            except Exception:
                log.exception("observing broke off and is begun again")
            else:
                if self._ends:
                    self._state.finish()
                    log.info("the recording is at its end; its last second stays for a while")
                    return
            self._stop_asked.wait(RETRY_S)

    def _observe(self) -> None:
        with self._begin() as batches:
            for batch in batches:
                if self._stop_asked.is_set():
                    return
                self._take(batch)

    def _take(self, batch: Sequence[Observation]) -> None:
        """One batch that cannot be understood must not end the others."""
        try:
            self._state.feed(batch)
        except Exception:
            log.exception("a batch of observations was not understood and is left out")
            self._state.tallies.failed("feed")
