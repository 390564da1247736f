"""The DataLoader workers of a rank: at work or waiting, at what, and how many batches are ready."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuwhy.signals.phases import WorkerPlace, classify_worker
from gpuwhy.signals.row import Function, InputQueue
from gpuwhy.signals.tracks import Samples

HOLD_S = 10.0
"""Workers are looked at in turn, at most once a second each."""
SMOOTH_S, FEW = 5.0, 4
"""Where fewer samples of a worker than these are near, it is looked at over so many seconds to
either side: how much of the time it works needs more than one glance."""
PREFETCH = 2
"""DataLoader's default prefetch_factor: batches in flight for each worker."""
STARVED_BEND = 1.75
"""How fast the ready batches of busy workers vanish as the rank waits for them (fitted to five
jobs whose loaders tell their queue: waits of 25 to 75 % of the time)."""
RESTARTS = 0.05
"""Share of the host's time spent starting workers from which a queue is too short-lived to tell."""


@dataclass(frozen=True, slots=True)
class Workers:
    """What their stacks show: the queue, and the function with the most time of the workers."""

    queue: InputQueue
    function: tuple[Function, float] | None


@dataclass(slots=True)
class _Crew:
    seen: int = 0
    samples: int = 0
    busy: float = 0.0  # workers at work, of those seen
    functions: dict[Function, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, places: Sequence[tuple[WorkerPlace, float]]) -> None:
        total = sum(weight for _, weight in places)
        if total <= 0:
            return
        self.seen += 1
        self.samples += len(places)
        self.busy += sum(weight for place, weight in places if place.busy) / total
        for place, weight in places:
            if place.function and place.busy:
                self.functions[place.function] += weight / total


def workers(
    stacks: Mapping[int, Samples],
    processes: Sequence[Mapping[str, Any]],
    second: int,
    phases: Mapping[str, float] | None,
) -> Workers | None:
    """State of the workers around a second; None where no worker's stack is near enough.
    ``phases`` are those of their rank."""
    crew = _Crew()
    for process in processes:
        crew.add(_places(stacks.get(int(process["pid"])), second))
    if not crew.seen:
        return None
    share = _at_work(crew, processes)
    queue = _queue(len(processes), share, phases or {})
    return Workers(queue, _hottest(crew.functions, crew.seen))


def _at_work(crew: _Crew, processes: Sequence[Mapping[str, Any]]) -> float:
    """Share of the time that a worker is at work. A few glances are inexact; where the time that
    the kernel counted (on a CPU, or runnable) is within their error, it is the better figure. It
    is less than that where workers wait for storage."""
    glanced = crew.busy / crew.seen
    counted = [
        min(1.0, float(p["cpu"]) + float(p.get("run_delay") or 0.0))
        for p in processes
        if p.get("cpu") is not None
    ]
    if not counted:
        return glanced
    exact = sum(counted) / len(counted)
    error = 2.0 * (max(0.02, glanced * (1.0 - glanced)) / crew.samples) ** 0.5
    return exact if abs(exact - glanced) <= error else glanced


def _queue(count: int, share: float, phases: Mapping[str, float]) -> InputQueue:
    """An estimate: all batches of a waiting worker are ready. A busy one makes one of its batches;
    the others are ready too, unless the rank waits for its pipeline while all workers are busy."""
    busy, idle = share * count, (1.0 - share) * count
    starved = min(1.0, phases.get("data_wait", 0.0)) * share
    ready = PREFETCH * idle + (PREFETCH - 1) * busy * (1.0 - starved) ** STARVED_BEND
    renewed = phases.get("data_worker_start", 0.0) >= RESTARTS
    return InputQueue(count, busy, idle, None if renewed else ready, PREFETCH * count)


def _places(stacks: Samples | None, second: int) -> list[tuple[WorkerPlace, float]]:
    if stacks is None:
        return []
    near = [s for s in stacks.between(second - 1.0, second + 2.0) if s.get("main")]
    if len(near) < FEW:
        near = [
            s for s in stacks.between(second - SMOOTH_S, second + 1.0 + SMOOTH_S) if s.get("main")
        ]
    if not near:
        last = stacks.around(second, HOLD_S)
        near = [last] if last is not None and last.get("main") else []
    placed = [(classify_worker(s["frames"]), max(float(s["dt"]), 1e-3)) for s in near]
    return [(place, weight) for place, weight in placed if place is not None]


def _hottest(
    functions: Mapping[Function, float], workers_seen: int
) -> tuple[Function, float] | None:
    """The function with the most time; lines of one function count together."""
    if not functions:
        return None
    names: dict[tuple[str, str], float] = defaultdict(float)
    for (name, file, _), weight in functions.items():
        names[(name, file)] += weight
    (name, file), weight = max(names.items(), key=lambda item: item[1])
    line = max((w, ln) for (n, f, ln), w in functions.items() if (n, f) == (name, file))[1]
    return (name, file, line), float(weight) / workers_seen
