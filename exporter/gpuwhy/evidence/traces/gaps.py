"""Idle stretches of a GPU and who was waited for.

A gap ends with an activity, and that with the call that launched it. If the call came only after
the gap began, the host was late: what its thread was doing meanwhile is the cause. From the call
on it is the latency of the launch. CUDA is asynchronous, so a wait of the host costs the GPU only
what the queue did not cover; looking within gaps alone counts just that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwhy.evidence.traces.host import Host
from gpuwhy.evidence.traces.intervals import Intervals, Times, overlap
from gpuwhy.evidence.traces.states import STATES
from gpuwhy.evidence.traces.trace import Activities, Calls, Ids

PARTS = (*STATES, "python", "dispatch", "latency", "between", "queued", "blocked", "blind")
"""What a piece of a gap is made of. ``python``: no operator and no call for a while; ``dispatch``:
operators and calls that follow each other closely; ``latency``: launched and not yet begun;
``between``: the GPU goes from one kernel to the next, which had been launched before;
``queued``: longer than a launch takes, so it waited for something else; ``blocked``: the thread
waits in the C library for another thread or process; ``blind``: no call, or no
host thread, is in the file."""

ACCOUNT_OF = {
    "startup": ("startup", ""),
    "checkpoint": ("checkpoint", ""),
    "evaluation": ("evaluation", ""),
    "copy": ("copy", ""),
    "data": ("data", "waiting"),
    "comm": ("comm", "waiting"),
    "logging": ("host", "logging"),
    "garbage-collection": ("host", "garbage-collection"),
    "synchronize": ("host", "synchronize"),
    "python": ("host", "python"),
    "dispatch": ("launch", ""),
    "latency": ("launch", ""),
    "between": ("compute", ""),  # the counters of a running GPU take it for busy as well
    "profiler": ("unknown", "no-evidence"),
    "queued": ("unknown", "no-evidence"),
    "blocked": ("unknown", "no-stacks"),
    "blind": ("unknown", "no-stacks"),
}
"""The account and reason of each part."""

LAUNCH_NS = 200_000
"""A kernel begins some 5 us after its launch on an idle GPU, a graph or a first launch later. What
waits longer than this waits for something else."""

AHEAD_NS = 20_000
"""What was launched this long before the GPU fell idle was in its queue by then."""
BETWEEN_NS = 10_000
"""A GPU needs 0.4 us (in a CUDA graph) to 1.3 us from one queued kernel to the next, up to 9 before
a copy: 99.9 of 100 such gaps of traces of V100, A100 and H200."""

MAIN_CAUSE = 0.5
"""A wait that fills this share of a gap caused the gap: refilling the queue belongs to it too."""

_INDEX = {part: i for i, part in enumerate(PARTS)}
_BLOCKING = np.array([_INDEX[part] for part in (*STATES, "python")])
_REFILL = np.array([_INDEX["dispatch"], _INDEX["latency"]])


@dataclass(slots=True)
class Gaps:
    """Gaps cut at the bounds of steps, one row each; ``amounts`` has a column for each of PARTS
    and its rows add up to the lengths, ns."""

    start: Times
    end: Times
    whole: Ids  # which whole gap a piece belongs to
    next: Ids  # row of the activity that ended the gap; -1 at the end of the window
    call: Ids  # row of the call that launched it; -1 if not known
    amounts: NDArray[np.float64]


def find(idle: Intervals, cuts: Times, activities: Activities, launch: Ids, host: Host) -> Gaps:
    """Take the idle time of a window apart; ``launch`` as in ``steps.find``."""
    whole, starts, ends = _cut(idle, cuts)
    following = np.searchsorted(activities.start, idle.ends)
    last = following >= len(activities.start)
    following = np.where(last, -1, following)
    call = np.where(last, -1, launch[np.maximum(following, 0)] if len(launch) else -1)
    gaps = Gaps(starts, ends, whole, following[whole], call[whole], _none(len(starts)))
    late = _late_until(idle, following, call, host.calls)[whole]
    late_end = np.clip(late, starts, ends)
    _host_parts(gaps, late_end, host)
    _launch_parts(gaps, late_end, idle, host)
    _between_parts(gaps, idle, activities, launch, host)
    _give_refill_to_its_cause(gaps, len(idle.starts))
    return gaps


def _none(rows: int) -> NDArray[np.float64]:
    return np.zeros((rows, len(PARTS)))


def _cut(idle: Intervals, cuts: Times) -> tuple[Ids, Times, Times]:
    """(whole gap, start, end) of the pieces between cuts."""
    inner = cuts[overlap(idle, cuts - 1, cuts + 1) == 2]  # a bound in the midst of a gap
    starts = np.sort(np.concatenate((idle.starts, inner)))
    whole = np.searchsorted(idle.starts, starts, side="right") - 1
    ends = np.minimum(idle.ends[whole], np.append(starts[1:], np.iinfo(np.int64).max))
    return whole, starts, ends


def _late_until(idle: Intervals, following: Ids, call: Ids, calls: Calls) -> Times:
    """Until when the host is who was waited for."""
    if not len(calls.start):
        return idle.ends
    launched = np.where(call >= 0, calls.start[np.maximum(call, 0)], idle.starts)
    return np.where(following < 0, idle.ends, np.minimum(launched, idle.ends))


def _host_parts(gaps: Gaps, late_end: Times, host: Host) -> None:
    """What the launching thread, or the main thread, did until the launch."""
    threads = (
        np.where(gaps.call >= 0, host.calls.thread[gaps.call], host.main)
        if len(host.calls.thread)
        else np.full(len(gaps.start), host.main)
    )
    for thread in np.unique(threads):
        rows = np.flatnonzero((threads == thread) & (late_end > gaps.start))
        starts, ends = gaps.start[rows], late_end[rows]
        before: NDArray[np.float64] = np.zeros(len(rows))
        for part, upto in host.states(int(thread)):
            within = overlap(upto, starts, ends).astype(np.float64)
            gaps.amounts[rows, _INDEX[part]] += within - before
            before = within
        rest = "dispatch" if host.is_seen(int(thread)) else "blind"
        gaps.amounts[rows, _INDEX[rest]] += (ends - starts) - before


def _launch_parts(gaps: Gaps, late_end: Times, idle: Intervals, host: Host) -> None:
    """From the call to the first activity; a copy call that holds the host is copying by then."""
    rest = (gaps.end - late_end).astype(np.float64)
    known = gaps.call >= 0
    gaps.amounts[~known, _INDEX["blind"]] += rest[~known]
    rows = np.flatnonzero(known & (rest > 0))
    if not len(rows):
        return
    begun = np.maximum(host.calls.start[gaps.call[rows]], idle.starts[gaps.whole[rows]])
    latency = np.clip(begun + LAUNCH_NS - late_end[rows], 0, rest[rows])
    gaps.amounts[rows, _INDEX["latency"]] += latency
    beyond = np.where(host.holds[gaps.call[rows]], _INDEX["copy"], _INDEX["queued"])
    gaps.amounts[rows, beyond] += rest[rows] - latency


def _between_parts(
    gaps: Gaps, idle: Intervals, activities: Activities, launch: Ids, host: Host
) -> None:
    """The first BETWEEN_NS before what had been launched well before, or before the recording."""
    if not len(host.calls.start) or not len(gaps.start):
        return
    begun = idle.starts[gaps.whole]
    called = host.calls.start[np.maximum(gaps.call, 0)]
    queued = (gaps.call >= 0) & (called <= begun - AHEAD_NS)
    first = int(np.argmax(launch >= 0)) if (launch >= 0).any() else 0
    queued |= (gaps.call < 0) & (gaps.next >= 0) & (gaps.next < first)
    most = np.clip(begun + BETWEEN_NS - gaps.start, 0, None)
    for part in ("latency", "blind"):
        column = gaps.amounts[:, _INDEX[part]]
        moved = np.where(queued, np.minimum(column, most), 0.0)
        column -= moved
        gaps.amounts[:, _INDEX["between"]] += moved


def _give_refill_to_its_cause(gaps: Gaps, wholes: int) -> None:
    """After a wait the queue is empty, and the GPU waits for the next launch because of it."""
    if not len(gaps.start):
        return
    sums = np.stack([np.bincount(gaps.whole, column, wholes) for column in gaps.amounts.T], axis=1)
    length = np.maximum(sums.sum(axis=1), 1.0)
    blocking = sums[:, _BLOCKING]
    largest = _BLOCKING[blocking.argmax(axis=1)]
    waited = blocking.sum(axis=1) >= MAIN_CAUSE * length
    synchronised = sums[:, _INDEX["synchronize"]] > 0
    cause = np.where(waited, largest, np.where(synchronised, _INDEX["synchronize"], -1))[gaps.whole]
    rows = np.flatnonzero(cause >= 0)
    moved = gaps.amounts[np.ix_(rows, _REFILL)].sum(axis=1)
    gaps.amounts[np.ix_(rows, _REFILL)] = 0.0
    gaps.amounts[rows, cause[rows]] += moved
