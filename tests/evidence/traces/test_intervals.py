"""Sets of time, against counting every nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuwhy.evidence.traces.intervals import (
    Intervals,
    clip,
    complement,
    covered,
    intersect,
    merge,
    overlap,
    subtract,
    union,
)

SPAN = 60
pairs = st.lists(st.tuples(st.integers(0, SPAN), st.integers(0, SPAN)), max_size=12)


def made(of: list[tuple[int, int]]) -> Intervals:
    starts = np.array([a for a, _ in of], np.int64)
    return union(starts, np.array([b for _, b in of], np.int64))


def moments(of: Intervals) -> set[int]:
    return {
        t for a, b in zip(of.starts.tolist(), of.ends.tolist(), strict=True) for t in range(a, b)
    }


def counted(of: list[tuple[int, int]]) -> set[int]:
    return {t for a, b in of for t in range(a, b)}


@given(pairs)
def test_a_union_is_sorted_disjoint_and_complete(of: list[tuple[int, int]]) -> None:
    found = made(of)
    assert moments(found) == counted(of)
    assert (found.starts < found.ends).all()
    assert (found.ends[:-1] < found.starts[1:]).all()
    assert found.total == len(counted(of))


@given(pairs, pairs)
def test_algebra_of_sets(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    a, b = made(one), made(two)
    assert moments(merge(a, b)) == counted(one) | counted(two)
    assert moments(subtract(a, b)) == counted(one) - counted(two)
    assert moments(intersect(a, b)) == counted(one) & counted(two)


@given(pairs, st.integers(0, SPAN), st.integers(0, SPAN))
def test_windows(of: list[tuple[int, int]], start: int, length: int) -> None:
    window = set(range(start, start + length))
    assert moments(complement(made(of), start, start + length)) == window - counted(of)
    assert moments(clip(made(of), start, start + length)) == window & counted(of)


@given(pairs, st.lists(st.tuples(st.integers(-5, SPAN + 5), st.integers(0, 20)), max_size=8))
def test_overlaps(of: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    starts = np.array([a for a, _ in asked], np.int64)
    ends = np.array([a + n for a, n in asked], np.int64)
    expected = [len(counted(of) & set(range(a, a + n))) for a, n in asked]
    assert overlap(made(of), starts, ends).tolist() == expected
    assert covered(made(of), ends).tolist() == [
        len({t for t in counted(of) if t < e}) for e in ends
    ]
