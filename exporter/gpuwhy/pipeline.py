"""Observations in, seconds entered in the ledger, verdicts out.

The one path that ``diagnose``, ``serve``, ``compare`` and the bench share, live and recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpuwhy.ledger.book import Book
from gpuwhy.observe.observation import Observation
from gpuwhy.signals.row import Second
from gpuwhy.signals.timeline import Timeline


class Pipeline:
    """Feed observations in rough time order; each complete second is entered once, in order.

    ``book`` holds the cumulative accounts (both views) and the recent seconds; ``latest`` is the
    last second understood. Of the seconds kept, those older than ``open_s`` take little memory and
    more time to look at.
    """

    def __init__(self, *, keep_s: int = 900, open_s: float | None = None) -> None:
        self.timeline = Timeline()
        self.book = Book(keep_s=keep_s, open_s=open_s)
        self.latest: Second | None = None

    def feed(self, observations: Iterable[Observation]) -> list[Second]:
        """Add observations; return the seconds that they completed, already in the book."""
        seconds: list[Second] = []
        for observation in observations:
            self.timeline.add(observation)
            # At once: of a sparse recording the memory forgets what a whole batch would span.
            seconds += self._enter(self.timeline.complete())
        return seconds

    def finish(self) -> list[Second]:
        """Complete what is left, without waiting for the watermark (a recording's end)."""
        return self._enter(self.timeline.complete(to_the_end=True))

    def verdicts(self, window_s: float | None = None) -> dict[str, Any]:
        """The object of ``gpuwhy diagnose --json`` over the last ``window_s`` seconds entered."""
        return self.book.verdicts(window_s)

    def _enter(self, seconds: list[Second]) -> list[Second]:
        for second in seconds:
            self.book.enter(second)
            self.latest = second
        return seconds
