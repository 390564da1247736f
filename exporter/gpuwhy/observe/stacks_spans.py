"""A record -> where each thread was, and for how long, in absolute time.

py-spy samples at random moments (exponential gaps, so that no beat with the job's step can arise)
and a trace says only at which sample a stack was first seen. Each stack is taken to last until the
next sample: that gives every stack its true share on average, whatever the job does, but tells of
each change one mean gap late. So the whole record is moved back by that gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpuwhy.observe.observation import Frame
from gpuwhy.observe.pyspy_formats import Trace, TracedThread
from gpuwhy.observe.stacks_torn import has_thread_root, is_torn

LONGEST_S = 1.0
"""The most that one observation of a stack covers."""
BRIDGE_S = 0.6
"""A hole up to this long is given to its neighbours: a torn sample to both, the time between two
records to the first sample after it. What is longer stays a hole."""
_FIRST_SAMPLE_S = 0.005  # threads are read one after the other within this time


@dataclass(frozen=True, slots=True)
class Span:
    """A thread in one stack (leaf first) from ``t`` (UTC) on, for ``dt`` seconds."""

    tid: int
    name: str
    t: float
    dt: float
    frames: list[Frame]


def spans(
    trace: Trace, start: float, hz: float, since: float | None, rooted: set[int]
) -> tuple[list[Span], int]:
    """All spans of a record that began at ``start`` (UTC) and sampled at ``hz``, by time, and the
    number of torn stacks. ``since``: the end of the last span of the record before. ``rooted`` is
    kept between records: the threads that have shown a thread's root."""
    if not trace.threads:
        return [], 0
    start -= 1 / hz
    first = min(thread.changes[0][0] for thread in trace.threads)
    begin = first if since is None else max(since - start, first - BRIDGE_S)
    out, torn = [], 0
    for thread in trace.threads:
        early = thread.changes[0][0] <= first + _FIRST_SAMPLE_S
        pieces = _pieces(thread, min(begin, first) if early else None, trace.end)
        if any(has_thread_root(frames) for _, _, frames in pieces):
            rooted.add(thread.tid)
        kept = [p for p in pieces if not is_torn(p[2], rooted=thread.tid in rooted)]
        torn += len(pieces) - len(kept)
        for t0, t1, frames in _bridge(kept, pieces[0][0], trace.end):
            out += [Span(thread.tid, thread.name, start + t, dt, frames) for t, dt in _cut(t0, t1)]
    return sorted(out, key=lambda span: span.t), torn


Piece = tuple[float, float, list[Frame]]


def _pieces(thread: TracedThread, begin: float | None, end: float) -> list[Piece]:
    """(from, to, frames) for the time between a thread's samples."""
    times = [at for at, _ in thread.changes]
    ends = [*times[1:], end]
    times[0] = times[0] if begin is None else begin
    return [
        (t0, t1, frames) for t0, t1, (_, frames) in zip(times, ends, thread.changes, strict=True)
    ]


def _bridge(kept: Sequence[Piece], begin: float, end: float) -> Iterator[Piece]:
    """Close the holes that torn samples left, each half from either side."""
    starts = [t0 for t0, _, _ in kept]
    ends = [t1 for _, t1, _ in kept]
    for i, (t0, t1, frames) in enumerate(kept):
        before = ends[i - 1] if i else begin
        after = starts[i + 1] if i + 1 < len(kept) else end
        lead = t0 - before if i == 0 else (t0 - before) / 2
        trail = after - t1 if i + 1 == len(kept) else (after - t1) / 2
        yield t0 - min(lead, BRIDGE_S / 2), t1 + min(trail, BRIDGE_S / 2), frames


def _cut(start: float, end: float) -> Iterable[tuple[float, float]]:
    """(start, length) of equal parts none of which is longer than ``LONGEST_S``."""
    parts = max(1, -int(-(end - start) // LONGEST_S))
    dt = (end - start) / parts
    return [(start + i * dt, dt) for i in range(parts)] if dt > 0 else []
