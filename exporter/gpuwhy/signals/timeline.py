"""Observations in, one ``Second`` of signal rows out for each UTC second that is complete.

A second is complete once the observations have moved LAG_S past it: stacks and rings arrive that
late.
"""

from __future__ import annotations

from gpuwhy.observe.observation import Observation
from gpuwhy.signals.memory import Memory
from gpuwhy.signals.row import Second
from gpuwhy.signals.rows import second_of

LAG_S = 3.0
CLOCK_KINDS = frozenset(("gpu", "gpm", "processes", "host"))
"""Kinds whose time stamps move the watermark: sampled, not dug out of a ring."""
BACK_S = 30.0
"""Observations come in rough order: one so much older tells of a clock that was set back."""
JUMP_S = 3600.0
"""A longer gap is a clock that jumped or a recording that was paused: it is not filled."""


class Timeline:
    """The watermark over a memory of what was observed."""

    def __init__(self) -> None:
        self.memory = Memory()
        self._newest: float | None = None
        self._next: int | None = None

    def add(self, observation: Observation) -> None:
        """Take one observation, in rough time order."""
        if observation["kind"] in CLOCK_KINDS:
            self._tick(float(observation["t"]))
        self.memory.add(observation)

    def _tick(self, t: float) -> None:
        if self._newest is not None and t < self._newest - BACK_S:
            self.memory = self.memory.set_back()
            self._newest = self._next = None
        if self._next is None:
            self._next = int(t)
        self._newest = t if self._newest is None else max(self._newest, t)

    def complete(self, *, to_the_end: bool = False) -> list[Second]:
        """The seconds that have become complete, in order; each is returned once."""
        if self._next is None or self._newest is None:
            return []
        limit = self._newest if to_the_end else self._newest - LAG_S
        out = []
        while self._next + 1 <= limit:
            if limit - self._next > JUMP_S:
                self._next = int(limit) - 1
            second, self._next = self._next, self._next + 1  # first: one bad second is lost alone
            out.append(second_of(self.memory, second))
        return out
