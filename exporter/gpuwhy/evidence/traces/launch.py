"""Launches: how many a second, and how far the host runs ahead of the GPU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.kernels import launch_waits, tiny_ratio
from gpuwhy.evidence.traces.operators import REGIONS, region_of
from gpuwhy.evidence.traces.tables import WHO, Column, Row, Table, quantile, ratio
from gpuwhy.evidence.traces.trace import Ids

EMPTY_NS = 20_000
"""What begins within this of its launch found the queue empty: some 5 to 10 us are the launch."""


@dataclass(frozen=True, slots=True)
class Launches:
    """Over the window. ``ahead`` is from a launch to the beginning of its work on the GPU."""

    count: int
    per_second: float
    ahead_median: float | None = None  # s
    ahead_low: float | None = None  # s, of the tenth that is least ahead
    empty: float | None = None  # share that found the queue empty
    period: float | None = None  # s, median from one launch to the next of the same thread


def launches(gpu: Gpu) -> Launches:
    """Of everything that the host put on this GPU's streams."""
    rows = _rows(gpu)
    count = len(np.unique(gpu.launch[rows]))
    per_second = count / (gpu.window.length / 1e9)
    if not count:
        return Launches(0, 0.0)
    ahead = gpu.activities.start[rows] - gpu.calls.start[gpu.launch[rows]]
    return Launches(
        count,
        round(per_second, 1),
        quantile(ahead, 0.5),
        quantile(ahead, 0.1),
        round(float(np.mean(ahead < EMPTY_NS)), 4),
        _period(gpu, rows),
    )


def _rows(gpu: Gpu) -> Ids:
    start = gpu.activities.start
    inside = (start >= gpu.window.start) & (start < gpu.window.end)
    return np.flatnonzero(inside & (gpu.launch >= 0))


def _period(gpu: Gpu, rows: Ids) -> float | None:
    called = np.unique(gpu.launch[rows])
    threads = gpu.calls.thread[called]
    steps = [np.diff(gpu.calls.start[called[threads == t]]) for t in np.unique(threads)]
    together = np.concatenate(steps)
    return quantile(together, 0.5) if len(together) else None


def regions(gpu: Gpu) -> dict[str, float]:
    """Share of the time that the GPU waited for launches, by part of the step."""
    rows = _rows(gpu)
    found, waited = region_of(gpu, rows), launch_waits(gpu)[rows]
    known = found >= 0
    sums = np.bincount(found[known], waited[known], len(REGIONS))
    return {r: ratio(s, sums.sum()) for r, s in zip(REGIONS, sums, strict=True) if s}


LAUNCHES = Table(
    "launches",
    "Launches, and how far the host runs ahead",
    (
        *WHO,
        Column("launches", "launches", "count"),
        Column("per_second", "a second", "1/s"),
        Column("period", "one each", "s"),
        Column("ahead", "ahead (median)", "s"),
        Column("ahead_low", "least tenth", "s"),
        Column("empty_ratio", "queue empty", "ratio"),
        Column("tiny_ratio", "kernels below 5 us", "ratio"),
    ),
)


def table(who: Row, gpu: Gpu) -> list[Row]:
    """One row."""
    found = launches(gpu)
    if not found.count:
        return []
    row = {
        **who,
        "launches": found.count,
        "per_second": found.per_second,
        "period": found.period,
        "ahead": found.ahead_median,
        "ahead_low": found.ahead_low,
        "empty_ratio": found.empty,
        "tiny_ratio": tiny_ratio(gpu),
    }
    return [{key: value for key, value in row.items() if value is not None}]
