"""What the host's threads did over time, as sets of time for each state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpuwhy.evidence.traces.intervals import (
    EMPTY,
    Intervals,
    Times,
    intersect,
    merge,
    subtract,
    union,
)
from gpuwhy.evidence.traces.states import BLOCKED, STATES, call_state, state_of
from gpuwhy.evidence.traces.trace import (
    ANNOTATION,
    OPERATOR,
    PYTHON,
    SYSTEM,
    Calls,
    Ids,
    Mask,
    Trace,
)

LULL_NS = 300_000
"""A thread that dispatches begins or ends an operator or a call every few microseconds: 99 of 100
such edges came within 0.1 ms of the one before in traces of V100 and A100 jobs. After this long
without any it is doing something else."""

BLOCKING_COPY_NS = 50_000
"""A copy call of pinned memory returns after some 10 us; one that takes longer holds the host."""


class Host:
    """The host side of one GPU. ``states`` of a thread are those of it and of the main thread:
    while autograd's thread launches, the main thread waits for it, and the other way round."""

    def __init__(self, trace: Trace, launch: Ids) -> None:
        self.calls: Calls = trace.calls
        self._trace = trace
        self.main = main_thread(trace, launch)
        self._span_state = _states_of_spans(trace)
        self._call_state = _states_of_calls(trace)
        self._tells_python = bool(np.isin(trace.spans.kind, (OPERATOR, PYTHON)).any())
        self._tells_system = any(BLOCKED.match(name) for name in trace.names)
        self._cache: dict[int, list[tuple[str, Intervals]]] = {}

    @property
    def holds(self) -> Mask:
        """Which calls are copies that hold the host until the data has left it."""
        return np.asarray(self._call_state == STATES.index("copy"), np.bool_)

    def is_seen(self, thread: int) -> bool:
        """Is there anything of this thread in the file?"""
        return bool(
            (self.calls.thread == thread).any() or (self._trace.spans.thread == thread).any()
        )

    def states(self, thread: int) -> Iterator[tuple[str, Intervals]]:
        """(state, all time in it or in one before it), in the order in which they decide."""
        if thread not in self._cache:
            self._cache[thread] = list(self._build(thread))
        yield from self._cache[thread]

    def _build(self, thread: int) -> Iterator[tuple[str, Intervals]]:
        spans, calls = self._trace.spans, self._trace.calls
        whose = (thread, self.main)
        mine = np.isin(spans.thread, whose) | (spans.kind == SYSTEM)
        called = np.isin(calls.thread, whose)
        upto = EMPTY
        for index, state in enumerate(STATES):
            span = mine & (self._span_state == index)
            call = called & (self._call_state == index)
            if span.any() or call.any():
                upto = merge(
                    upto,
                    union(spans.start[span], spans.end[span]),
                    union(calls.start[call], calls.end[call]),
                )
                yield state, upto
        yield from self._lulls(upto, thread, mine & (spans.kind == OPERATOR), called)

    def _lulls(
        self, upto: Intervals, thread: int, working: Mask, called: Mask
    ) -> Iterator[tuple[str, Intervals]]:
        """Where neither an operator nor a call goes on: Python, if the file would show it; else
        what the system calls tell; else nothing is known."""
        calls = self._trace.calls
        lulls = subtract(
            _lulls(_edges(self._trace, working, called)),
            union(calls.start[called], calls.end[called]),
        )
        if self._tells_python:
            yield "python", merge(upto, lulls)
            return
        if self._tells_system:
            upto = merge(upto, intersect(lulls, self._blocked(thread)))
            yield "blocked", upto
            yield "python", merge(upto, lulls)
            return
        yield "blind", merge(upto, lulls)

    def _blocked(self, thread: int) -> Intervals:
        """Time in which both the thread and the main thread wait in the C library."""
        spans = self._trace.spans
        names = [i for i, name in enumerate(self._trace.names) if BLOCKED.match(name)]
        waiting = (spans.kind == SYSTEM) & np.isin(spans.name, names)
        sets = [
            union(spans.start[rows], spans.end[rows])
            for rows in (waiting & (spans.thread == one) for one in {thread, self.main})
        ]
        return sets[0] if len(sets) == 1 else intersect(*sets)


def main_thread(trace: Trace, launch: Ids) -> int:
    """The thread that runs the training loop: of the steps' ranges; else of most of the Python;
    else of most launches. -1 where the file has no thread."""
    spans = trace.spans
    steps = [i for i, name in enumerate(trace.names) if name.startswith("ProfilerStep")]
    for threads in (
        spans.thread[(spans.kind == ANNOTATION) & np.isin(spans.name, steps)],
        spans.thread[spans.kind == PYTHON],
        trace.calls.thread[launch[launch >= 0]],
        spans.thread,
    ):
        if len(threads):
            return int(np.bincount(threads).argmax())
    return -1


def _states_of_spans(trace: Trace) -> Ids:
    """The index of each span's state in STATES, -1 for none."""
    spans = trace.spans
    made = np.full(len(spans.start), -1)
    for kind in (OPERATOR, ANNOTATION, PYTHON, SYSTEM):
        rows = np.flatnonzero(spans.kind == kind)
        if not len(rows):
            continue
        table = np.full(len(trace.names), -1)
        for name in np.unique(spans.name[rows]):
            state = state_of(trace.names[name], kind)
            table[name] = -1 if state is None else STATES.index(state)
        made[rows] = table[spans.name[rows]]
    return made


def _states_of_calls(trace: Trace) -> Ids:
    calls = trace.calls
    table = np.full(len(trace.names) + 1, -1)
    for name in np.unique(calls.name):
        state = call_state(trace.names[name])
        table[name] = -1 if state is None else STATES.index(state)
    made = table[calls.name]
    copying = STATES.index("copy")
    made[(made == copying) & (calls.end - calls.start < BLOCKING_COPY_NS)] = -1
    return made


def _edges(trace: Trace, spans: Mask, calls: Mask) -> Times:
    """Every moment at which one of these begins or ends, in order."""
    parts = (
        trace.spans.start[spans], trace.spans.end[spans],
        trace.calls.start[calls], trace.calls.end[calls],
    )  # fmt: skip
    return np.sort(np.concatenate(parts))


def _lulls(edges: Times) -> Intervals:
    """Stretches without an edge; before the first and after the last edge there is nothing to be
    told."""
    if not len(edges):
        return EMPTY
    starts, ends = edges[:-1], edges[1:]
    long = ends - starts >= LULL_NS
    return Intervals(starts[long], ends[long])
