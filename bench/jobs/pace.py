"""How fast a job's step is when nothing holds it up, and what costs slow it by a wanted share.

A card nobody has met yet makes milliseconds in a configuration meaningless, so the variants give
the share of GPU time that a cost takes, and the job turns it into seconds from its own pace.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pace:
    """Seconds a step takes with its input at hand, and seconds the host needs to dispatch it."""

    step_s: float
    dispatch_s: float

    def times(self, batches: int) -> Pace:
        """The pace of a step that accumulates so many batches."""
        return Pace(self.step_s * batches, self.dispatch_s * batches)

    def serial(self, lost: float) -> float:
        """Host seconds after a synchronise that make the GPU idle for the share ``lost``.

        The GPU runs ``step_s`` and then waits: ``lost = c / (c + step)``.
        """
        return self.step_s * lost / (1 - lost)

    def overlapped(self, lost: float) -> float:
        """Host seconds a step, without a synchronise, that cost the share ``lost``.

        The host runs ahead, so a step takes the longer of GPU time and host time:
        ``step / (1 - lost) = c + dispatch``.
        """
        return max(self.step_s / (1 - lost) - self.dispatch_s, 0.0)

    def per_item(self, lost: float, workers: int, batch: int) -> float:
        """Seconds an item may take in one of ``workers`` so that the loader costs ``lost``."""
        if workers == 0:
            return self.overlapped(lost) / batch
        return self.step_s / (1 - lost) * workers / batch


def measure(
    step: Callable[[], Any], synchronize: Callable[[], Any], steps: int = 20, warm_up: int = 6
) -> Pace:
    """Time ``step`` alone. Every rank of a job must run the same number of steps."""
    for _ in range(warm_up):
        step()
    synchronize()
    began = time.perf_counter()
    step()
    step()
    dispatch_s = (time.perf_counter() - began) / 2
    synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    synchronize()
    step_s = (time.perf_counter() - began) / steps
    return Pace(step_s, min(dispatch_s, step_s))
