"""Where the device's time went, lap by lap, from CUDA events."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch


class DeviceEvents:
    """CUDA events at each lap, read many steps later so that nothing waits for them."""

    def __init__(self) -> None:
        self.pending: deque[tuple[int, list[tuple[str, Any]]]] = deque()

    def restart(self) -> None:
        """Tie the device's time to UTC once."""
        self.new = lambda: torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        self.origin = self.previous = self.new()
        self.origin.record()
        torch.cuda.synchronize()
        self.utc = time.time()
        self.current: list[tuple[str, Any]] = []

    def lap(self, name: str) -> None:
        """Record where the device's queue stands at the end of a lap."""
        event = self.new()
        event.record()
        self.current.append((name, event))

    def close(self, step: int) -> Iterator[dict[str, Any]]:
        """End a step; yield the lines of earlier steps that the device has passed."""
        self.pending.append((step, self.current))
        self.current = []
        for _ in range(2):
            if self.pending and all(event.query() for _, event in self.pending[0][1][-1:]):
                yield self._line(*self.pending.popleft())

    def _line(self, step: int, laps: list[tuple[str, Any]]) -> dict[str, Any]:
        seconds = []
        for name, event in laps:
            seconds.append([name, round(self.previous.elapsed_time(event) / 1e3, 6)])
            self.previous = event
        end = self.utc + self.origin.elapsed_time(self.previous) / 1e3
        return {"step": step, "t": end, "laps": seconds}
