"""What one item costs the CPU, from when on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from pace import Pace


@dataclass(frozen=True)
class Cost:
    """CPU seconds of work on an item, from the UTC second ``starts``."""

    seconds: float = 0.0
    starts: float = 0.0

    def now(self) -> float:
        """The seconds that apply at this moment."""
        return self.seconds if time.time() >= self.starts else 0.0


def item_cost(get: Any, pace: Pace | None, workers: int, batch: int, starts: float) -> Cost:
    """CPU seconds that the variant spends on each item in its loader.

    ``item_lost`` is the share of GPU time that the loader shall cost; ``worker_cores`` the number
    of cores that the workers use while they keep up; ``pinned_lost`` as ``item_lost``, with all
    workers on one core.
    """
    if pace is None:
        return Cost()
    if (lost := get("item_lost")) is not None:
        return Cost(pace.per_item(lost, workers, batch), starts)
    if (lost := get("pinned_lost")) is not None:
        return Cost(pace.per_item(lost, 1, batch), starts)
    if (cores := get("worker_cores")) is not None:
        return Cost(pace.step_s * cores / batch, starts)
    return Cost()
