"""The book: every second entered once, in both views, and the verdicts drawn from it."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from gpuwhy.signals.row import Second

DeviceKey = tuple[str, str | None, str | None, str, str]
"""(uuid, run or None, rank as text or None, account, reason): device view."""


@dataclass(slots=True)
class Book:
    """Cumulative accounts and the last ``keep_s`` seconds of rows and entries.

    ``device[(uuid, run, rank, account, reason)]`` and ``run[...]`` are GPU-seconds since the
    GPU or run was first seen; ``observed[uuid]`` and ``held[(uuid, run, rank)]`` are the totals
    that they add up to.
    """

    keep_s: int = 900
    device: dict[Any, float] = field(default_factory=lambda: defaultdict(float))
    run: dict[Any, float] = field(default_factory=lambda: defaultdict(float))
    observed: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    held: dict[Any, float] = field(default_factory=lambda: defaultdict(float))
    recent: deque[Any] = field(default_factory=deque)

    def enter(self, second: Second) -> None:
        raise NotImplementedError

    def verdicts(self, window_s: float | None = None) -> dict[str, Any]:
        raise NotImplementedError
