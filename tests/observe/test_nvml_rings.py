"""Rings merged on a grid: no sample twice, none left out, lost time counted."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwhy.observe.nvml_rings import HOLE_CELLS, RingMerger, estimate_step

FIXTURES = Path(__file__).parent / "fixtures"
LENGTH = {"power": 119, "utilization": 71}
STEP = {"power": 0.02, "utilization": 0.2}
START = 1_790_000_000.0
BEFORE = START - 0.01


def rows(merger, samples):
    """What a read adds: {cell: value} and the lost seconds."""
    cells, lost = {}, 0.0
    for row in merger.merge(samples):
        lost += row.lost
        first = round(row.t / merger.step)
        assert row.t == pytest.approx(first * merger.step, abs=1e-5), "off the grid"
        assert row.values[0] is not None
        assert row.values[-1] is not None
        cells |= {first + i: v for i, v in enumerate(row.values) if v is not None}
    return cells, lost


def read_at(samples, t, length, shift=0.0):
    """The ring as a read at ``t`` finds it: every stamp moved by the same little."""
    return [(stamp + shift, value) for stamp, value in samples if stamp < t][-length:]


def even(step, count, start=START):
    """Samples at an even pace whose value is their number."""
    return [(start + i * step, float(i)) for i in range(count)]


def real(name):
    """Stamps and values of an H200's ring under load: [microseconds, value]."""
    entries = json.loads((FIXTURES / f"ring_{name}.json").read_text())
    return [(stamp * 1e-6, float(i)) for i, (stamp, _) in enumerate(entries)]


@pytest.mark.parametrize("name", ["power_idle_host", "power_throttled_host", "utilization"])
@pytest.mark.parametrize("reads_every_s", [0.5, 1.0, 1.3])
def test_a_real_ring_is_read_whole_and_once(name, reads_every_s):
    kind = name.split("_")[0]
    samples = real(name)
    merger = RingMerger(since=samples[0][0] - 0.5 * STEP[kind])
    cells: dict[int, float] = {}
    t, shift = samples[0][0] + 2.3 * len(samples) * STEP[kind] / 10, 0.0
    while t < samples[-1][0] + reads_every_s:
        shift = -shift + 0.00026  # as large as it was seen between two reads
        new, lost = rows(merger, read_at(samples, t, LENGTH[kind], shift))
        assert lost == 0.0
        assert not new.keys() & cells.keys(), "a cell was given twice"
        cells |= new
        t += reads_every_s
    assert merger.step == STEP[kind]
    in_order = [cells[c] for c in sorted(cells)]
    assert in_order == sorted(in_order), "samples changed places"
    # Late samples may share a cell; their mean is there. No more than what real jitter explains.
    assert len(cells) >= 0.97 * len(samples)
    span = max(cells) - min(cells) + 1
    assert len(cells) >= 0.93 * span


def test_a_start_that_the_ring_does_not_reach_back_to_is_counted():
    merger = RingMerger(since=START - 3.0)
    _, lost = rows(merger, even(0.02, 119))
    assert lost == pytest.approx(3.0 - 0.02)


def test_values_keep_their_time():
    samples = real("power_idle_host")
    merger = RingMerger(since=samples[0][0] - 0.01)
    cells, _ = rows(merger, samples[:119])
    off = [samples[int(v)][0] - c * merger.step for c, v in cells.items() if v == int(v)]
    assert max(off) - min(off) < 1.6 * merger.step
    assert abs(sum(off) / len(off)) < 0.8 * merger.step


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.1, 6.0), min_size=2, max_size=12),
    st.floats(0.0, 1.0),
    st.floats(-2e-4, 2e-4),
    st.integers(0, 2**32),
)
def test_every_sample_comes_once_or_is_counted_lost(pauses, phase, drift, seed):
    """Reads at any pace, a grid at any phase, a driver's clock that runs a little off."""
    step, length = 0.02, 119
    true_step = step * (1.0 + drift)
    samples = even(true_step, 5000, START + phase * step)
    merger = RingMerger(since=BEFORE)
    t = START + 2.0
    seen, cells, lost = [], {}, 0.0
    for i, wait in enumerate(pauses):
        shift = ((seed >> i) & 1) * 0.0005
        new, missed = rows(merger, read_at(samples, t, length, shift))
        assert not new.keys() & cells.keys()
        cells |= new
        seen += [new[c] for c in sorted(new)]
        lost += missed
        t += wait
    assert seen == sorted(seen)
    whole = [v for v in seen if v == int(v)]
    assert len(whole) == len(set(whole))
    # What a slip of the phase merges into one cell is not lost, but it is one value less.
    assert len(seen) - len(whole) <= 1
    expected = seen[-1] - seen[0] + 1
    assert len(seen) + lost / true_step == pytest.approx(expected, abs=3)
    assert merger.lost_s == pytest.approx(lost)


def drifting(drift, jitter, count):
    """A driver's clock that runs off, stamps that jitter; and what is read of it."""
    chance = random.Random(5)
    samples = [
        (START + 0.02 * (i * (1.0 + drift) + chance.uniform(-jitter, jitter)), float(i))
        for i in range(count)
    ]
    merger = RingMerger(since=BEFORE)
    cells: dict[int, float] = {}
    for second in range(2, count // 50):
        cells |= rows(merger, read_at(samples, START + second, 119))[0]
    return cells, {int(v): t for t, v in samples}


def test_jitter_at_the_edge_of_a_cell_makes_no_holes():
    cells, _ = drifting(drift=0.6 / 2000, jitter=0.2, count=2000)
    assert sorted(cells) == list(range(min(cells), max(cells) + 1))
    assert all(v == int(v) for v in cells.values()), "two samples share a cell"


@pytest.mark.parametrize("drift", [3 / 4000, -3 / 4000])
def test_a_clock_that_runs_off_is_followed(drift):
    cells, stamps = drifting(drift, jitter=0.0, count=4000)
    off = [stamps[int(v)] - cell * 0.02 for cell, v in cells.items() if v == int(v)]
    assert max(map(abs, off)) < 0.02
    assert len(cells) >= max(cells) - min(cells) - 3, "one hole for each slip at most"


def test_a_wrapped_ring_is_counted():
    samples = even(0.02, 1000)
    merger = RingMerger(since=BEFORE)
    rows(merger, read_at(samples, START + 3.0, 119))
    cells, lost = rows(merger, read_at(samples, START + 8.0, 119))
    assert lost == pytest.approx(5.0 - 119 * 0.02, abs=0.021)
    assert len(cells) == 119


def test_holes_are_null_and_long_ones_are_lost():
    samples = even(0.02, 300)
    holed = samples[:100] + samples[104:200] + samples[200 + HOLE_CELLS + 5 :]
    merger = RingMerger(since=BEFORE)
    first, second = merger.merge(holed)
    assert first.values[99:105] == [99.0, None, None, None, None, 104.0]
    assert second.lost == pytest.approx((HOLE_CELLS + 5) * 0.02)
    assert None not in second.values


def test_a_late_sample_does_not_push_the_next_out():
    samples = even(0.02, 100)
    late = [(t + 0.017 if v == 60 else t, v) for t, v in samples]
    merger = RingMerger(since=BEFORE)
    (row,) = merger.merge(late)
    assert row.values == [float(i) for i in range(100)]


def test_what_was_before_us_is_left_out():
    merger = RingMerger(since=START + 1.0)
    cells, lost = rows(merger, even(0.02, 100))
    assert min(cells.values()) == 51.0
    assert lost == 0.0


def test_a_clock_that_is_set_starts_the_merge_anew():
    samples = even(0.02, 400)
    merger = RingMerger(since=BEFORE)
    rows(merger, read_at(samples, START + 3.0, 119))
    back = [(t - 3600.0, v) for t, v in read_at(samples, START + 4.0, 119)]
    merger.resync(back)
    later = [(t - 3600.0, v) for t, v in read_at(samples, START + 5.0, 119)]
    cells, lost = rows(merger, later)
    assert sorted(cells.values()) == [v for t, v in samples if START + 4.0 <= t < START + 5.0]
    assert lost == 0.0


def test_too_little_to_tell_a_period():
    merger = RingMerger(since=BEFORE)
    assert merger.merge([]) == []
    assert merger.merge(even(0.02, 5)) == []
    cells, _ = rows(merger, even(0.02, 40))
    assert len(cells) == 40


@pytest.mark.parametrize(
    ("true", "found"),
    [(0.02, 0.02), (0.2, 0.2), (0.1, 0.1), (1.0, 1.0), (1 / 6, 0.167), (1 / 60, 0.0167)],
)
def test_period(true, found):
    stamps = [START + i * true + (0.04 * true if i % 3 else 0) for i in range(100) if i % 17]
    assert estimate_step(stamps) == found


def test_stamps_on_no_grid_have_no_period():
    assert estimate_step([START + i * i * 0.0137 % 7.0 for i in range(3)]) is None
    assert estimate_step([START] * 20) is None
