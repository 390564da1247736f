"""The training steps of a trace: as the profiler marked them, as someone named them, or found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwhy.evidence.traces.intervals import Times
from gpuwhy.evidence.traces.trace import ANNOTATION, Activities, Ids, Trace

LEAST = 3
"""A name that comes at least so often may be that of the step."""
ENCLOSES = 0.8
"""Share of all launches that must lie within ranges for them to be steps."""
MOST_LAUNCHED = 0.5
"""Share of the GPU's work whose calls must be in the file for the rest to have come before it."""
REPEATS = 0.9
"""Share of the kernels that must be the same one period later for their sequence to be steps."""

_PROFILER = re.compile(r"ProfilerStep[#*](\d*)")
_STEPLIKE = re.compile(r"step|iter|batch|train", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in the host's order. ``starts`` and ``ends`` are the host's; ``bounds`` are where the
    GPU goes from one to the next: the last work of the step before has ended, and the host has
    begun the new one. ``bounds`` has one entry more than there are steps."""

    found: str  # how, in words
    names: list[str]
    starts: Times
    ends: Times
    bounds: Times

    @property
    def durations(self) -> Times:
        """ns between bounds."""
        return np.diff(self.bounds)


def find(trace: Trace, activities: Activities, launch: Ids) -> Steps | None:
    """The steps of one GPU; ``launch`` is the row of the call behind each activity (-1: none)."""
    launched = launch >= 0
    launches = np.sort(trace.calls.start[launch[launched]])
    for found, names, starts, ends in _candidates(trace, launches):
        if len(starts):
            bounds = _bounds(trace, activities, launch, starts, ends)
            return Steps(found, names, starts, ends, bounds)
    return _by_sequence(trace, activities, launch)


def _candidates(trace: Trace, launches: Times) -> Iterator[tuple[str, list[str], Times, Times]]:
    spans = trace.spans
    rows = np.flatnonzero(spans.kind == ANNOTATION)
    by_name: dict[str, list[int]] = {}
    shown = [trace.names[i] for i in spans.name[rows]]
    for row, name in zip(rows.tolist(), shown, strict=True):
        by_name.setdefault(_NUMBER.sub("#", name), []).append(row)
    marked = next((r for name, r in by_name.items() if _PROFILER.match(name)), [])
    names = ["" if not (n := _PROFILER.match(trace.names[spans.name[r]])) else n[1] for r in marked]
    yield "marked by the profiler", names, spans.start[marked], spans.end[marked]
    named = _best_name(trace, by_name, launches)
    if named:
        numbers = [str(i) for i in range(len(by_name[named]))]
        rows = np.array(by_name[named])
        yield f"ranges named {named}", numbers, spans.start[rows], spans.end[rows]
    for what, pattern in (("optimizer", "Optimizer.step#"), ("loader", "enumerate(DataLoader)#")):
        found = next((r for name, r in by_name.items() if name.startswith(pattern)), [])
        if len(found) >= LEAST:
            edges = spans.end[found] if what == "optimizer" else spans.start[found]
            yield f"from one {what} call to the next", _counted(edges), edges[:-1], edges[1:]


def _best_name(trace: Trace, by_name: dict[str, list[int]], launches: Times) -> str | None:
    """The name of ranges that follow each other and enclose the launches."""
    best: tuple[bool, float, int] | None = None
    chosen = None
    for name, rows in by_name.items():
        starts, ends = trace.spans.start[rows], trace.spans.end[rows]
        if len(rows) < LEAST or (starts[1:] < ends[:-1]).any():
            continue
        inside = np.searchsorted(launches, ends) - np.searchsorted(launches, starts)
        share = float(inside.sum()) / max(1, len(launches))
        rank = (_STEPLIKE.search(name) is not None, share, -len(rows))
        if share >= ENCLOSES and (best is None or rank > best):
            best, chosen = rank, name
    return chosen


def _by_sequence(trace: Trace, activities: Activities, launch: Ids) -> Steps | None:
    """Steps found where the same sequence of kernels comes again and again."""
    rows = np.flatnonzero(launch >= 0)
    sequence = activities.name[rows]
    period, firsts = _period(sequence)
    if period is None:
        return None
    edges = trace.calls.start[launch[rows[firsts]]]
    if len(edges) < LEAST or (np.diff(edges) <= 0).any():
        return None
    bounds = _bounds(trace, activities, launch, edges[:-1], edges[1:])
    found = f"found by their sequence of {period} kernels and copies"
    return Steps(found, _counted(edges), edges[:-1], edges[1:], bounds)


def _period(sequence: Ids) -> tuple[int | None, NDArray[np.int64]]:
    """How many activities a step has, and where steps begin; by the rarest name that repeats."""
    names, counts = np.unique(sequence, return_counts=True)
    for name in names[np.argsort(counts, kind="stable")][:50]:
        places = np.flatnonzero(sequence == name)
        if len(places) < LEAST:
            continue
        period = int(np.median(np.diff(places)))
        if period < 2 or period * 2 > len(sequence):
            continue
        same = float(np.mean(sequence[period:] == sequence[:-period]))
        if same >= REPEATS:
            return period, places
    return None, np.empty(0, np.int64)


def _bounds(trace: Trace, activities: Activities, launch: Ids, starts: Times, ends: Times) -> Times:
    rows = np.flatnonzero(launch >= 0)
    called = trace.calls.start[launch[rows]]
    order = np.argsort(called, kind="stable")
    called, reach = called[order], np.maximum.accumulate(activities.end[rows][order])
    edges = np.concatenate((starts, ends[-1:]))
    before = np.searchsorted(called, edges)
    done = np.where(before > 0, reach[np.maximum(before - 1, 0)], edges) if len(reach) else edges
    done = np.maximum(done, _left_over(activities, launch))
    return np.maximum.accumulate(np.maximum(edges, done))


def _left_over(activities: Activities, launch: Ids) -> int:
    """When the GPU was done with what had been launched before the recording began: none of its
    calls is in the file. Where most have none the file tells of no calls, and nothing is known."""
    launched = launch >= 0
    if not launched.any() or launched.mean() < MOST_LAUNCHED:
        return 0
    first = int(np.argmax(launched))
    return int(activities.end[:first].max()) if first else 0


def _counted(edges: Times) -> list[str]:
    return [str(i) for i in range(max(0, len(edges) - 1))]
