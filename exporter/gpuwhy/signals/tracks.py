"""What has been observed lately, by entity: bounded buffers and the questions asked of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gpuwhy.observe.observation import Observation

KEEP_S = 40.0
"""How far back a buffer reaches: twice the stretch in which a period is sought."""
FAR = float("inf")
SLOW_S, SLOW_KEEP_S = 0.2, 200.0
"""A ring's means over SLOW_S are kept for longer: ten periods of 20 s."""


class Samples:
    """Observations of one kind in time order (late ones are sorted in), at most KEEP_S of them."""

    def __init__(self, keep_s: float = KEEP_S) -> None:
        self.keep_s = keep_s
        self.items: deque[tuple[float, Observation]] = deque()

    def add(self, observation: Observation) -> None:
        t = float(observation["t"])
        items = self.items
        behind: list[tuple[float, Observation]] = []
        while items and items[-1][0] > t:
            behind.append(items.pop())
        items.append((t, observation))
        items.extend(reversed(behind))
        while items[-1][0] - items[0][0] > self.keep_s:
            items.popleft()

    def between(self, start: float, end: float) -> list[Observation]:
        """Those with start <= t < end."""
        out = []
        for t, observation in reversed(self.items):
            if t < start:
                break
            if t < end:
                out.append(observation)
        out.reverse()
        return out

    def last(self, before: float = FAR, within: float = FAR) -> Observation | None:
        """The newest with t < before, no older than ``within`` seconds before it."""
        for t, observation in reversed(self.items):
            if t < before:
                return observation if before - t <= within or before == FAR else None
        return None

    def around(self, second: int, within: float) -> Observation | None:
        """The newest of the second or before it, else the next one after, within reach."""
        found = self.last(second + 1.0, within)
        if found is not None:
            return found
        later = self.between(second + 1.0, second + 1.0 + within)
        return later[0] if later else None

    def newest_first(self) -> Iterator[Observation]:
        return (observation for _, observation in reversed(self.items))

    def __iter__(self) -> Iterator[Observation]:
        return (observation for _, observation in self.items)

    def __bool__(self) -> bool:
        return bool(self.items)


@dataclass(slots=True)
class RingTrack:
    """One driver ring on its grid: cell number -> value; ``slow`` holds (sum, count) by SLOW_S."""

    step: float = 0.0
    cells: dict[int, float] = field(default_factory=dict)
    slow: dict[int, tuple[float, int]] = field(default_factory=dict)
    lost: deque[tuple[float, float]] = field(default_factory=deque)

    def add(self, observation: Observation) -> None:
        step = float(observation["dt"])
        if step != self.step:
            self.step, self.cells, self.slow = step, {}, {}
        first = round(float(observation["t"]) / step)
        for i, value in enumerate(observation["values"]):
            if value is not None:
                self.cells[first + i] = float(value)
                coarse = int((first + i) * step / SLOW_S + 1e-6)
                total, count = self.slow.get(coarse, (0.0, 0))
                self.slow[coarse] = (total + float(value), count + 1)
        if observation.get("lost"):
            self.lost.append((float(observation["t"]), float(observation["lost"])))
        oldest = first - round(KEEP_S / step)
        if len(self.cells) > 2 * KEEP_S / step:
            self.cells = {i: v for i, v in self.cells.items() if i >= oldest}
        if len(self.slow) > 2 * SLOW_KEEP_S / SLOW_S:
            last = int(float(observation["t"]) / SLOW_S)
            since = last - round(SLOW_KEEP_S / SLOW_S)
            self.slow = {i: v for i, v in self.slow.items() if i >= since}
        while self.lost and self.lost[0][0] < float(observation["t"]) - KEEP_S:
            self.lost.popleft()

    def values(self, start: float, end: float) -> list[float | None]:
        """The grid cells of [start, end), None where nothing was read."""
        if not self.step:
            return []
        first, last = round(start / self.step), round(end / self.step)
        return [self.cells.get(i) for i in range(first, last)]

    def slow_values(self, start: float, end: float) -> list[float | None]:
        """Means over SLOW_S of [start, end), None where nothing was read."""
        cells = (self.slow.get(i) for i in range(round(start / SLOW_S), round(end / SLOW_S)))
        return [cell[0] / cell[1] if cell else None for cell in cells]

    def lost_in(self, start: float, end: float) -> float:
        return sum(lost for t, lost in self.lost if start <= t < end)


@dataclass(slots=True)
class GpuTrack:
    """Everything observed of one GPU or MIG instance."""

    uuid: str
    info: Observation = field(default_factory=dict)
    limits: Observation = field(default_factory=dict)
    health: Observation = field(default_factory=dict)
    samples: Samples = field(default_factory=Samples)
    gpm: Samples = field(default_factory=Samples)
    rings: dict[str, RingTrack] = field(default_factory=dict)
    processes: Samples = field(default_factory=Samples)
    shares: Samples = field(default_factory=Samples)
    reasons: Samples = field(default_factory=Samples)

    def add(self, observation: Observation) -> None:
        kind = observation["kind"]
        if kind == "ring":
            self.rings.setdefault(observation["ring"], RingTrack()).add(observation)
        elif kind == "gpu_info":
            self.info = observation
        elif kind == "gpu_limits":
            self.limits = observation
        elif kind == "gpu_health":
            self.health = observation
        else:
            {
                "gpu": self.samples,
                "gpm": self.gpm,
                "gpu_processes": self.processes,
                "sm_share": self.shares,
                "gpu_reasons": self.reasons,
            }[kind].add(observation)

    def seen_in(self, start: float, end: float) -> bool:
        """Was the GPU observed at all in [start, end)? A gap is not idle time."""
        if self.samples.between(start, end) or self.gpm.between(start, end + 1.0):
            return True
        return any(v is not None for ring in self.rings.values() for v in ring.values(start, end))


def weighted_mean(
    intervals: list[Observation], field_name: str, start: float, end: float
) -> float | None:
    """Mean of a field over [start, end) of observations that each cover [t - dt, t]."""
    total = weight = 0.0
    for observation in intervals:
        value = observation.get(field_name)
        if value is None:
            continue
        t, dt = float(observation["t"]), float(observation["dt"])
        overlap = min(t, end) - max(t - dt, start)
        if overlap > 0:
            total += float(value) * overlap
            weight += overlap
    return total / weight if weight > 0 else None


def mean(values: list[Any]) -> float | None:
    known = [float(v) for v in values if v is not None]
    return sum(known) / len(known) if known else None
