"""A record -> where each thread was, and for how long, in absolute time.

py-spy samples at random moments (exponential gaps, so that no beat with the job's step can arise)
and a trace says only at which sample a stack was first seen. Each stack is taken to last until the
next sample: that gives every stack its true share on average, whatever the job does, but tells of
each change one mean gap late. So the whole record is moved back by that gap. Samples that failed
are credited to the stack that they most likely missed (`stacks_missed.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpuwhy.observe.observation import Frame
from gpuwhy.observe.pyspy_formats import FailedRead, Trace, TracedThread
from gpuwhy.observe.stacks_missed import BRIDGE_S, Piece, Stack, Still, credit
from gpuwhy.observe.stacks_still import stands_still
from gpuwhy.observe.stacks_torn import has_thread_root, is_torn

LONGEST_S = 1.0
"""The most that one observation of a stack covers."""
_FIRST_SAMPLE_S = 0.005  # threads are read one after the other within this time


@dataclass(frozen=True, slots=True)
class Span:
    """A thread in one stack (leaf first) from ``t`` (UTC) on, for ``dt`` seconds."""

    tid: int
    name: str
    t: float
    dt: float
    frames: list[Frame]


@dataclass(slots=True)
class Known:
    """What is kept of a process from one record to the next. ``until``: the end of its last span
    (UTC). ``rooted``: the threads that have shown a thread's root. ``last``: a thread's last stack;
    ``ran``: the last one in which it ran."""

    until: float | None = None
    rooted: set[int] = field(default_factory=set)
    last: dict[int, Stack] = field(default_factory=dict)
    ran: dict[int, Stack] = field(default_factory=dict)


def spans(
    trace: Trace,
    start: float,
    hz: float,
    known: Known,
    failed: Sequence[FailedRead] = (),
    stacks: int | None = None,
    still: Still = stands_still,
) -> tuple[list[Span], int]:
    """All spans of a record that began at ``start`` (UTC) and sampled at ``hz``, by time, and the
    number of torn stacks; ``failed`` are the samples that gave none. ``stacks``: how many it saw,
    of all samples and threads, where that was told."""
    if not trace.threads:
        return [], 0
    shifted = start - 1 / hz
    first = min(thread.changes[0][0] for thread in trace.threads)
    begin = first if known.until is None else max(known.until - shifted, first - BRIDGE_S)
    before = known.last if begin > first - BRIDGE_S else {}
    gap_s = _mean_gap(trace, begin, hz, stacks, len(failed))
    known.last = {}
    out, torn = [], 0
    for thread in trace.threads:
        early = thread.changes[0][0] <= first + _FIRST_SAMPLE_S
        pieces = _pieces(thread, min(begin, first) if early else None, trace.end, known)
        torn += sum(piece.frames is None for piece in pieces)
        if early and thread.tid in before and begin < first:
            pieces = _begun(pieces, first, before[thread.tid])
        moments = sorted(read.t - start for read in failed if read.key == thread.key)
        for piece in credit(pieces, moments, gap_s, still, known.ran.get(thread.tid)):
            known.last[thread.tid] = piece.frames
            if not still(piece.frames):
                known.ran[thread.tid] = piece.frames
            out += [
                Span(thread.tid, thread.name, shifted + t, dt, piece.frames)
                for t, dt in _cut(piece.start, piece.end)
            ]
    known.until = max((span.t + span.dt for span in out), default=known.until)
    return sorted(out, key=lambda span: span.t), torn


def _mean_gap(trace: Trace, begin: float, hz: float, stacks: int | None, failed: int) -> float:
    """Seconds between two samples: one sees all threads, or fails. A count that is far from what
    was asked for is not believed."""
    threads = sum(trace.end - thread.changes[0][0] for thread in trace.threads)
    if not stacks or not threads:
        return 1 / hz
    gap = 1 / (stacks / threads + failed / (trace.end - begin))
    return min(max(gap, 0.5 / hz), 2 / hz)


def _pieces(thread: TracedThread, begin: float | None, end: float, known: Known) -> list[Piece]:
    """The time between a thread's changes; torn stacks are dropped."""
    times = [at for at, _ in thread.changes]
    if begin is not None:
        times[0] = begin
    stacks = [frames for _, frames in thread.changes]
    if any(has_thread_root(frames) for frames in stacks):
        known.rooted.add(thread.tid)
    rooted = thread.tid in known.rooted
    return [
        Piece(t0, t1, None if is_torn(frames, rooted=rooted) else frames)
        for t0, t1, frames in zip(times, [*times[1:], end], stacks, strict=True)
    ]


def _begun(pieces: Sequence[Piece], first: float, last: Stack) -> list[Piece]:
    """The time between two records goes half to the last stack before and half to the first."""
    begun = pieces[0]
    middle = (begun.start + first) / 2
    return [
        Piece(begun.start, middle, last),
        Piece(middle, begun.end, begun.frames),
        *pieces[1:],
    ]


def _cut(start: float, end: float) -> Iterable[tuple[float, float]]:
    """(start, length) of equal parts none of which is longer than ``LONGEST_S``."""
    parts = max(1, -int(-(end - start) // LONGEST_S))
    dt = (end - start) / parts
    return [(start + i * dt, dt) for i in range(parts)] if dt > 0 else []
