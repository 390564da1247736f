"""Records turned into time: nothing twice, nothing lost, no bias."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwhy.observe.observation import Frame
from gpuwhy.observe.pyspy_formats import FailedRead, Trace, TracedThread
from gpuwhy.observe.stacks_missed import BRIDGE_S
from gpuwhy.observe.stacks_spans import LONGEST_S, Known, spans

START = 1_700_000_000.0
HZ = 10


def _stack(name: str, root: str = "<module>") -> list[Frame]:
    return [[name, "/job/train.py", 1], [root, "/job/train.py", 9]]


WAIT: list[Frame] = [["wait", "/usr/lib/python3.12/threading.py", 5], *_stack("next")]
LOAD: list[Frame] = _stack("encode")


def _trace(changes: list[tuple[float, list[Frame]]], end: float) -> Trace:
    return Trace(end, [TracedThread(7, "MainThread", changes)])


@st.composite
def _traces(draw: st.DrawFn) -> Trace:
    gaps = draw(st.lists(st.floats(0.001, 3.0), min_size=1, max_size=30))
    names = draw(st.lists(st.sampled_from("abc"), min_size=len(gaps), max_size=len(gaps)))
    roots = draw(
        st.lists(
            st.sampled_from(["<module>", "<module>", "lost"]),
            min_size=len(gaps),
            max_size=len(gaps),
        )
    )
    at, changes = 0.0, []
    for gap, name, root in zip(gaps, names, roots, strict=True):
        at += gap
        changes.append((at, _stack(name, root)))
    return _trace(changes, at + draw(st.floats(0.001, 2.0)))


@given(_traces(), st.one_of(st.none(), st.floats(-5, 0.0)))
def test_spans_of_a_thread_never_overlap_and_are_short(trace: Trace, before: float | None) -> None:
    since = None if before is None else START + before
    found, torn = spans(trace, START, HZ, Known(since))
    changes = trace.threads[0].changes
    rooted = [frames[-1][0] == "<module>" for _, frames in changes]
    assert torn == (rooted.count(False) if any(rooted) else 0)
    for a, b in pairwise(found):
        assert a.t + a.dt <= b.t + 1e-5
    assert all(0 < span.dt <= LONGEST_S + 1e-9 for span in found)
    if found:
        last = found[-1].t + found[-1].dt
        assert last <= START + trace.end + 1e-5
        assert found[0].t >= START + changes[0][0] - BRIDGE_S - 1 / HZ - 1e-5


@given(_traces())
def test_without_torn_stacks_all_time_is_covered(trace: Trace) -> None:
    for _, frames in trace.threads[0].changes:
        frames[-1][0] = "<module>"
    found, torn = spans(trace, START, HZ, Known())
    assert torn == 0
    covered = sum(span.dt for span in found)
    assert covered == pytest.approx(trace.end - trace.threads[0].changes[0][0], abs=1e-6)


def test_the_time_between_two_records_belongs_half_to_either() -> None:
    known = Known()
    first, _ = spans(_trace([(0.1, _stack("a"))], 1.0), START, HZ, known)
    since = first[-1].t + first[-1].dt
    second, _ = spans(_trace([(0.25, _stack("b"))], 1.0), START + 1.05, HZ, known)
    assert [(span.frames[0][0], span.t, span.dt) for span in second] == [
        ("a", pytest.approx(since), pytest.approx(0.15)),
        ("b", pytest.approx(since + 0.15), pytest.approx(0.9)),
    ]


def test_a_long_time_between_two_records_stays_a_hole() -> None:
    known = Known()
    spans(_trace([(0.1, _stack("a"))], 1.0), START, HZ, known)
    late, _ = spans(_trace([(0.2, _stack("b"))], 1.0), START + 9, HZ, known)
    assert [span.frames[0][0] for span in late] == ["b", "b"]
    assert late[0].t == pytest.approx(START + 9 + 0.2 - BRIDGE_S - 1 / HZ)


def test_a_torn_sample_goes_to_its_neighbours() -> None:
    changes = [(0.1, _stack("a")), (0.5, _stack("x", "lost")), (0.7, _stack("b"))]
    found, torn = spans(_trace(changes, 1.0), START, HZ, Known())
    assert torn == 1
    assert [span.frames[0][0] for span in found] == ["a", "b"]
    assert [round(span.dt, 3) for span in found] == [0.5, 0.4]


def test_a_sample_that_failed_in_a_wait_goes_to_the_work_beside_it() -> None:
    changes = [(0.1, WAIT), (0.5, _stack("step"))]
    thread = TracedThread(7, "MainThread", changes, key=3)
    failed = [FailedRead(START + 0.45, 3), FailedRead(START + 0.7, 3), FailedRead(START + 0.3, 99)]
    found, torn = spans(Trace(1.0, [thread]), START, HZ, Known(), failed)
    assert torn == 0
    assert [(span.frames[0][0], round(span.dt, 3)) for span in found] == [
        ("wait", 0.35),
        ("step", 0.55),
    ]


def test_a_thread_that_waits_on_either_side_ran_where_it_last_did() -> None:
    known = Known()
    spans(_trace([(0.1, _stack("step")), (0.5, WAIT)], 0.9), START, HZ, known)
    thread = TracedThread(7, "MainThread", [(0.1, WAIT)], key=3)
    failed = [FailedRead(START + 1.5, 3)]
    found, _ = spans(Trace(1.0, [thread]), START + 1, HZ, known, failed)
    assert [span.frames[0][0] for span in found] == ["wait", "step", "wait"]
    assert found[1].dt == pytest.approx(0.1, abs=0.01)


def test_failed_samples_stand_for_one_mean_gap_each() -> None:
    """What lies between a failure and the next change may hide samples of the stack before it: the
    record's own count of samples tells how many."""
    failed = [FailedRead(START + t, 3) for t in (0.3, 0.32, 0.6)]
    waited = {}
    for stacks in (97, 47, 0, 10**12):
        changes = [(0.0, WAIT), (0.31, _stack("step")), (0.33, WAIT)]
        trace = Trace(1.0, [TracedThread(7, "MainThread", changes, key=3)])
        found, _ = spans(trace, START, 100, Known(), failed, stacks)
        waited[stacks] = sum(span.dt for span in found if span.frames == WAIT)
    assert waited[97] == pytest.approx(1 - 0.03 - 0.01)
    assert waited[47] == pytest.approx(1 - 0.03 - 0.04)
    assert waited[0] == waited[97]
    assert waited[10**12] == pytest.approx(1 - 0.02 - 0.005 - 0.005)


def test_threads_that_never_had_a_root_are_kept() -> None:
    thread = TracedThread(9, "", [(0.1, [["apply", "/job/ops.py", 4]])])
    found, torn = spans(Trace(0.5, [thread]), START, HZ, Known())
    assert (len(found), torn) == (1, 0)


def test_a_thread_that_came_later_does_not_begin_before_it() -> None:
    old = TracedThread(7, "MainThread", [(0.1, _stack("a"))])
    new = TracedThread(8, "new", [(0.6, _stack("b"))])
    found, _ = spans(Trace(1.0, [old, new]), START, HZ, Known(START - 0.2))
    assert min(span.t for span in found if span.tid == 8) == pytest.approx(START + 0.6 - 1 / HZ)


@pytest.mark.parametrize("away", [WAIT, LOAD])
@pytest.mark.parametrize("fails", [0.0, 0.15, 0.45])
@pytest.mark.parametrize(
    ("hz", "wait", "work"),
    [(10, 0.05, 0.1), (20, 0.1, 0.05), (50, 0.4, 0.6), (10, 1.5, 2.5), (100, 0.03, 0.03)],
)
def test_shares_are_not_biased(
    hz: int, wait: float, work: float, fails: float, away: list[Frame]
) -> None:
    """Random samples of a periodic job, as py-spy takes them: over many records the share of a
    phase is the true one, and a change is told at its own time. Some fail, all of them at work,
    which is a loop of calls; ``away`` from it the thread waits, or loops without a call."""
    rng = random.Random(1)
    now, waited, total = START, 0.0, 0.0
    known = Known()
    lags = []
    for _ in range(1500):
        changes: list[tuple[float, list[Frame]]] = []
        failed: list[FailedRead] = []
        at, seen = 0.03, 0
        while (at := at + rng.expovariate(hz)) < 2.0:
            waits = (now + at - START) % (wait + work) < wait
            if not waits and rng.random() < fails:
                failed.append(FailedRead(now + at, 3))
                continue
            seen += 1
            stack = away if waits else _stack(f"work{rng.randrange(9)}")
            if not changes or changes[-1][1] != stack:
                changes.append((at, stack))
        thread = TracedThread(7, "MainThread", changes, key=3)
        trace = Trace(at, [thread] if changes else [])
        found, _ = spans(trace, now, hz, known, failed, seen)
        total += sum(span.dt for span in found)
        waited += sum(span.dt for span in found if span.frames == away)
        for a, b in pairwise(found):
            if (a.frames == away) > (b.frames == away):
                lags.append((b.t - START - wait + (wait + work) / 2) % (wait + work))
        now += at + 0.05
    # a loop that lasts less than the time between two samples looks like any other call
    unclear = wait * hz < 1 and away is LOAD and fails
    assert waited / total == pytest.approx(
        wait / (wait + work), abs=0.005 + 0.2 * fails if unclear else 0.015
    )
    if wait > 3 / hz and not fails:
        assert sum(lags) / len(lags) - (wait + work) / 2 == pytest.approx(0, abs=0.3 / hz)
