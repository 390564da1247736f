"""What a process uses: CPU, input and output, and how long it waited for a CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from gpuwhy.observe import procfs
from gpuwhy.observe.family import Life


@dataclass(frozen=True, slots=True)
class _Reading:
    """Cumulative seconds, and when they were read (monotonic)."""

    at: float
    cpu: float
    main_cpu: float | None
    run_delay: float | None


class Meter:
    """Turns cumulative figures into rates since the last reading of the same process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[Life, _Reading] = {}

    def read(self, life: Life, base: str, stat: procfs.Stat) -> dict[str, float]:
        """The figures of a process of a job; ``base`` is its folder, ``stat`` its stat just read.
        What may not be read is absent, and so are rates at the first reading."""
        main = procfs.read_stat(f"{base}/task/{life[0]}")
        latest = _Reading(
            self._clock(), stat.cpu_s, main.cpu_s if main else None, procfs.read_run_delay(base)
        )
        before = self._last.get(life)
        self._last[life] = latest
        return {
            "threads": stat.threads,
            "rss": stat.rss,
            **(_rates(before, latest) if before else {}),
            **(procfs.read_io(base) or {}),
            **procfs.read_status(base),
        }

    def keep(self, lives: Collection[Life]) -> None:
        """Forget all others."""
        self._last = {life: last for life, last in self._last.items() if life in lives}


def _rates(before: _Reading, latest: _Reading) -> dict[str, float]:
    dt = latest.at - before.at
    if dt < 0.01:  # one clock tick: no rate can be told
        return {}
    rates: dict[str, float] = {}
    for name in ("cpu", "main_cpu", "run_delay"):
        a, b = getattr(before, name), getattr(latest, name)
        if a is not None and b is not None:
            rates[name] = round(max(0.0, b - a) / dt, 4)
    if "run_delay" in rates:
        # A wait is added when it ends: one that began before the last reading passes 1 s/s.
        rates["run_delay"] = min(1.0, rates["run_delay"])
    return rates
