"""Sets of time on one axis: sorted, disjoint, half-open intervals, in whole nanoseconds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


class Intervals(NamedTuple):
    """``starts[i] < ends[i] < starts[i + 1]``."""

    starts: Times
    ends: Times

    @property
    def total(self) -> int:
        """Length of the set, ns."""
        return int((self.ends - self.starts).sum())


EMPTY = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def union(starts: Times, ends: Times) -> Intervals:
    """The union of any intervals, in any order; those of no length are left out."""
    kept = ends > starts
    if not kept.any():
        return EMPTY
    starts, ends = starts[kept], ends[kept]
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    first = np.flatnonzero(np.concatenate(([True], starts[1:] > reach[:-1])))
    last = np.concatenate((first[1:] - 1, [len(starts) - 1]))
    return Intervals(starts[first], reach[last])


def merge(*sets: Intervals) -> Intervals:
    """The union of sets."""
    return union(
        np.concatenate([one.starts for one in sets]), np.concatenate([one.ends for one in sets])
    )


def complement(of: Intervals, start: int, end: int) -> Intervals:
    """What of the window [start, end) is not in the set."""
    inside = clip(of, start, end)
    starts = np.concatenate((np.array([start], np.int64), inside.ends))
    ends = np.concatenate((inside.starts, np.array([end], np.int64)))
    kept = ends > starts
    return Intervals(starts[kept], ends[kept])


def clip(of: Intervals, start: int, end: int) -> Intervals:
    """The part of the set within [start, end)."""
    starts, ends = np.maximum(of.starts, start), np.minimum(of.ends, end)
    kept = ends > starts
    return Intervals(starts[kept], ends[kept])


def subtract(one: Intervals, other: Intervals) -> Intervals:
    """What is in ``one`` and not in ``other``."""
    if not len(one.starts) or not len(other.starts):
        return one
    start, end = int(one.starts[0]), int(one.ends[-1])
    return complement(merge(complement(one, start, end), other), start, end)


def intersect(one: Intervals, other: Intervals) -> Intervals:
    """What is in both."""
    if not len(one.starts) or not len(other.starts):
        return EMPTY
    start, end = int(one.starts[0]), int(one.ends[-1])
    return subtract(one, complement(other, start, end))


def covered(by: Intervals, until: Times) -> Times:
    """How much of the set lies before each of these times, ns."""
    if not len(by.starts):
        return np.zeros(len(until), np.int64)
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(by.ends - by.starts)))
    count = np.searchsorted(by.starts, until, side="right")
    open_end = by.ends[np.maximum(count - 1, 0)]
    beyond = np.where(count > 0, np.maximum(open_end - until, 0), 0)
    return np.asarray(before[count] - beyond, np.int64)


def overlap(by: Intervals, starts: Times, ends: Times) -> Times:
    """How much of each interval [starts[i], ends[i]) lies in the set, ns."""
    return covered(by, ends) - covered(by, starts)
