"""Which rank the others wait for in collectives, and how long.

A collective's kernel begins on each rank when that rank gets there, and ends on all of them
together. So the rank with the shortest kernel came last, and what the others' kernels took longer
is their wait: durations alone tell, whatever the clocks of the hosts say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwhy.evidence.traces.collectives import host_names, kind_of
from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.intervals import Times
from gpuwhy.evidence.traces.tables import WHO, Column, Row, Table, ratio, seconds

TOGETHER = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier")
"""Collectives that end on every rank at once: none can leave before the last has come."""

Key = tuple[str, str, str]
"""Kind, process group, step."""

LATE_NS = 50_000
"""A rank that comes later than this on average is late; less is the jitter of launches."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """How the ranks of a run met in their collectives, by position in the list given."""

    collectives: int  # matched on all ranks
    waited: list[float]  # ns that each rank waited in them for a later one
    last: list[float]  # share of the collectives to which each rank came last
    late: list[float]  # ns, mean time by which each was later than the earliest
    straggler: int | None  # the rank that the others wait for, if one stands out


def find(gpus: Sequence[Gpu]) -> Lateness | None:
    """Match the collectives of several ranks by kind and order; None where they do not match."""
    sequences = [_sequence(gpu) for gpu in gpus]
    common = set.intersection(*(set(one) for one in sequences)) if len(gpus) > 1 else set()
    matched: list[NDArray[np.float64]] = []
    for key in sorted(common):
        lengths = [one[key] for one in sequences]
        if len({len(one) for one in lengths}) == 1:  # else the traces begin at different steps
            matched.append(np.stack(lengths).astype(np.float64))
    if not matched:
        return None
    durations, own = np.moveaxis(np.concatenate(matched, axis=1), 2, 0)
    waited = np.clip(own - own.min(axis=0), 0, None)
    late = (durations.max(axis=0) - durations).mean(axis=1)
    last = np.bincount(durations.argmin(axis=0), minlength=len(gpus)) / durations.shape[1]
    first = int(late.argmax())
    others = np.delete(late, first)
    stands_out = late[first] > LATE_NS and late[first] > 2 * others.max() and last[first] > 0.5
    return Lateness(
        durations.shape[1],
        waited.sum(axis=1).tolist(),
        last.tolist(),
        late.tolist(),
        first if stands_out else None,
    )


def _sequence(gpu: Gpu) -> dict[Key, NDArray[np.int64]]:
    """The collectives of each step, kind and group, in order; whole file: how long each took, and
    how much of that no earlier one covers. Those that do not end on all ranks together (broadcast,
    send) are left out."""
    rows = np.flatnonzero(gpu.collective)
    found = _host_sequence(gpu)
    for row, step in zip(rows.tolist(), _step_names(gpu, rows), strict=True):
        message = gpu.trace.messages.get(int(gpu.activities.correlation[row]))
        kind = kind_of(gpu.trace.names[gpu.activities.name[row]], message)
        if kind in TOGETHER:
            length = int(gpu.activities.end[row] - gpu.activities.start[row])
            found[kind, message.group if message else "", step].append((length, length))
    return {key: np.array(lengths) for key, lengths in found.items()}


def _host_sequence(gpu: Gpu) -> dict[Key, list[tuple[int, int]]]:
    """The same of a library that works on the host (gloo): several may be under way at once."""
    found: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    spans = gpu.trace.spans
    for name in host_names(gpu):
        kind = kind_of(gpu.trace.names[name], None)
        rows = np.flatnonzero(spans.name == name)
        if kind in TOGETHER:
            starts, ends = spans.start[rows], spans.end[rows]
            covered = np.maximum.accumulate(np.append(starts[:1], ends[:-1]))
            own = np.clip(ends - np.maximum(starts, covered), 0, None)
            lengths = zip((ends - starts).tolist(), own.tolist(), strict=True)
            for length, step in zip(lengths, _steps_at(gpu, starts), strict=True):
                found[kind, "on the host", step].append(length)
    return found


def _step_names(gpu: Gpu, rows: NDArray[np.int64]) -> list[str]:
    """The name of the step in which each was launched; ranks may have been cut differently."""
    if not len(gpu.calls.start):
        return [""] * len(rows)
    return _steps_at(gpu, gpu.calls.start[np.maximum(gpu.launch[rows], 0)])


def _steps_at(gpu: Gpu, at: Times) -> list[str]:
    """The step of the host at each of these times."""
    steps = gpu.steps
    if steps is None:
        return [""] * len(at)
    place = np.searchsorted(steps.starts, at, side="right") - 1
    return [steps.names[i] if i >= 0 else "before" for i in place.tolist()]


RANKS = Table(
    "ranks",
    "Who is late to the collectives",
    (
        *WHO,
        Column("late", "later than the first", "s"),
        Column("last_ratio", "came last", "ratio"),
        Column("waited", "waited for others", "s"),
        Column("waited_ratio", "of the window", "ratio"),
    ),
    shown=64,
)


def rank_rows(whos: Sequence[Row], gpus: Sequence[Gpu], met: Lateness) -> list[Row]:
    """One row for each rank."""
    return [
        {
            **who,
            "late": seconds(met.late[i]),
            "last_ratio": round(met.last[i], 4),
            "waited": seconds(met.waited[i]),
            "waited_ratio": ratio(met.waited[i], gpu.window.length),
        }
        for i, (who, gpu) in enumerate(zip(whos, gpus, strict=True))
    ]
