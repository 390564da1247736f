"""What a source says of itself: up or not, why, and what to do about it."""

from __future__ import annotations

from typing import Any

from gpuwhy.observe.observation import Observation

REPEAT_S = 10.0
"""A state that does not change is said again after this long."""


class SourceState:
    """The ``source`` observations of one source, or of one source on one GPU (``uuid``)."""

    def __init__(self, source: str, *, uuid: str | None = None) -> None:
        self.source = source
        self.uuid = uuid
        self.up: bool | None = None
        self._said: tuple[Any, ...] = ()
        self._at = 0.0

    def report(
        self, now: float, up: bool, why: str = "", remedy: str = "", **figures: Any
    ) -> list[Observation]:
        """One observation at the first call, on a change and every ``REPEAT_S``; else none.

        ``figures`` (reads, failures, ``cpu_s``, ...) are carried along; their change is no news.
        """
        says = (up, why, remedy, tuple(figures.get("missing", ())))
        # A clock that was set back must not silence the source.
        if says == self._said and self._at <= now < self._at + REPEAT_S:
            return []
        self.up, self._said, self._at = up, says, now
        out: Observation = {"t": now, "kind": "source", "source": self.source, "up": up}
        if self.uuid is not None:
            out["uuid"] = self.uuid
        if why:
            out["why"] = why
        if remedy:
            out["remedy"] = remedy
        out.update({name: value for name, value in figures.items() if value is not None})
        return [out]
