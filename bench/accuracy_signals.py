"""Signals against truth, second by second: steps, phases, input queue, period of the activity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import mean

import numpy as np
from bench.accuracy_jobs import Job

from bench import truth
from gpuwhy.ledger.entry import Entry
from gpuwhy.signals import loader_index
from gpuwhy.signals.row import GpuRow, RunSignals
from gpuwhy.signals.tracks import GpuTrack
from gpuwhy.signals.wave import find_wave

WARM_S = 20
"""A rate and a period look back as far as this: they are held against truth from here on."""
SPAN = 10
"""Seconds over which phases are compared."""
WORK = frozenset(("forward", "backward", "optimizer", "sync", "grad_sync"))
"""Laps in which the device has work of the step; in the others its queue is empty."""
GAP = 0.05
"""A device that lacks work for less than this has no gap to find a period by."""
OF_THE_STEP = 0.03
"""A period this near to the step's is meant to be it: the GPU's power follows the step without a
gap in it. Further off it is made up."""
GROUPS = {
    "data": ("data_wait", "data_inline", "data_sampler", "data_worker_start"),
    "own Python": ("user", "logging", "gc"),
    "copies": ("h2d_copy", "d2h_copy"),
}
"""Phases whose host time does not depend on when an asynchronous wait happens to fall."""


@dataclass
class Signals:
    """What was found over the seconds of some ranks: lists of errors, or of hits."""

    seconds: int = 0
    step_seen: int = 0
    step_right: list[bool] = field(default_factory=list)
    index_right: list[bool] = field(default_factory=list)
    rate_error: list[float] = field(default_factory=list)
    phase_error: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    queue_error: list[float] = field(default_factory=list)
    queue_absent: int = 0
    period_error: list[float] = field(default_factory=list)
    period_missed: int = 0
    period_invented: int = 0
    period_inexact: int = 0
    period_none: int = 0

    def add(self, other: Signals) -> None:
        for name, value in vars(other).items():
            if isinstance(value, dict):
                for key, errors in value.items():
                    self.phase_error[key] += errors
            else:
                setattr(self, name, getattr(self, name) + value)


def measure(job: Job, entries: Sequence[Entry]) -> Signals:
    """Hold every second of a rank against what it wrote of itself."""
    found = Signals()
    rows = list(_rows(job, entries))
    for i, (t, row, run) in enumerate(rows):
        found.seconds += 1
        _step(found, job.rank, run)
        _queue(found, job.rank, run, t)
        if i >= WARM_S:
            _rate(found, job.rank, run, t, rows[0][0])
            _wave(found, job.rank, row, t)
    for i in range(0, len(rows) - SPAN + 1, SPAN):
        _phases(found, job.rank, rows[i : i + SPAN])
    return found


Row = tuple[int, GpuRow, RunSignals]


def _rows(job: Job, entries: Sequence[Entry]) -> Iterator[Row]:
    for entry in entries:
        for row in entry.second.rows:
            for run in row.runs:
                if run.pid == job.pid:
                    yield entry.second.t, row, run


def _step(found: Signals, rank: truth.Rank, run: RunSignals) -> None:
    """The step in progress at ``step_t``; frameworks count on before or after the work. Where the
    loop shows no counter, the loader's index stands for it."""
    if run.step is None or run.step_t is None:
        return
    real = truth.step_at(rank, run.step_t)
    if run.step_name == loader_index.NAME:
        if real is not None:
            found.index_right.append(abs(run.step - real) <= max(1, run.workers or 0))
        return
    found.step_seen += 1
    if real is not None:
        found.step_right.append(abs(run.step - real) <= 1)


def _rate(found: Signals, rank: truth.Rank, run: RunSignals, t: int, first: int) -> None:
    since = max(first, t - 29)
    steps = truth.progress(rank, since, t + 1)
    if run.steps_per_second is not None and steps > 0:
        found.rate_error.append(abs(run.steps_per_second * (t + 1 - since) / steps - 1))


def _queue(found: Signals, rank: truth.Rank, run: RunSignals, t: int) -> None:
    if "ready" not in rank.steps[-1]:
        return
    real = [q["ready"] for q in (truth.queue_at(rank, t + i / 5) for i in range(5)) if q]
    if run.queue is None or run.queue.ready is None:
        found.queue_absent += 1
    elif real:
        found.queue_error.append(abs(run.queue.ready - mean(real)))


def _phases(found: Signals, rank: truth.Rank, rows: Sequence[Row]) -> None:
    real = truth.phases(rank, rows[0][0], rows[-1][0] + 1)
    seen = [run.phases for _, _, run in rows if run.phases is not None]
    for group, names in GROUPS.items() if seen else ():
        share = mean(sum(phases.get(name, 0.0) for name in names) for phases in seen)
        found.phase_error[group].append(abs(share - sum(real.get(name, 0.0) for name in names)))


def _wave(found: Signals, rank: truth.Rank, row: GpuRow, t: int) -> None:
    """The period in the power ring against that in the job's own CUDA events. Either may be a whole
    multiple of the other: bursts of four workers are one period or four."""
    wave = row.gpu.wave if row.gpu is not None else None
    work = activity(rank, t - 19, t + 1)
    if wave is None or work is None:
        return
    if 1 - float(np.mean(work)) < GAP:
        found.period_none += 1
        off = 0.0 if wave.period_s is None else _off(wave.period_s, _step_s(rank, t))
        found.period_invented += off > OF_THE_STEP
        found.period_inexact += 0.01 < off <= OF_THE_STEP
        return
    real = _period(work)
    if real is None:
        return
    if wave.period_s is None:
        found.period_missed += 1
    else:
        found.period_error.append(_off(wave.period_s, real))


def activity(rank: truth.Rank, t0: float, t1: float, dt: float = 0.02) -> np.ndarray | None:
    """Share of each ``dt`` in which the device had work of a step; None without CUDA events."""
    if not rank.device or rank.device[0]["t"] > t0 or rank.device[-1]["t"] < t1:
        return None
    edges = np.linspace(t0, t1, round((t1 - t0) / dt) + 1)
    total = np.zeros(len(edges))
    for step in rank.device:
        at = step["t"]
        for name, seconds in reversed(step["laps"]):
            if name in WORK and at > t0 and at - seconds < t1:
                total += np.clip(edges, at - seconds, at) - (at - seconds)
            at -= seconds
    return np.diff(total) / dt


def _period(work: np.ndarray) -> float | None:
    """The same search as for the power ring, on the job's own account (scaled to a GPU's watts)."""
    track = GpuTrack("truth")
    ring = {"kind": "ring", "uuid": "truth", "ring": "power", "t": 0.0, "dt": 0.02}
    track.add({**ring, "values": [100 + 500 * float(x) for x in work]})
    wave = find_wave(track, len(work) * 0.02)
    return wave.period_s if wave is not None else None


def _off(period: float, real: float) -> float:
    """Relative distance, of whole multiples of either."""
    ratio = max(period, real) / min(period, real) if period and real else float("inf")
    return abs(ratio / max(1, round(ratio)) - 1)


def _step_s(rank: truth.Rank, t: int) -> float:
    steps = truth.progress(rank, t - 19, t + 1)
    return 20 / steps if steps else 0.0
