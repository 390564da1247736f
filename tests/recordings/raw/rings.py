"""The driver's rings, merged on a grid, and what each process had of the GPU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

from tests.recordings.raw.folder import Raw

from gpuwhy.observe.observation import Observation

SM_BUFFER_SECONDS = 14.2
"""What the driver averages per-process utilisation over when asked with time stamp 0."""
RINGS = {"ring_util": "utilization", "ring_mem": "memory_utilization", "ring_power": "power"}
RING_STEP = {"utilization": 0.2, "memory_utilization": 0.2, "power": 0.02}
RING_SCALE = {"utilization": 0.01, "memory_utilization": 0.01, "power": 0.001}


def rings(raw: Raw) -> Iterator[Observation]:
    """Merge every read on a grid by time stamp, one observation a second as gpuwhy writes them."""
    for file, ring in RINGS.items():
        step = RING_STEP[ring]
        for gpu in range(raw.gpus):
            cells: dict[int, float] = {}
            for owner, stamp, value in json.loads((raw.folder / f"{file}.json").read_text()):
                if owner == gpu:
                    cells.setdefault(round(stamp / 1e6 / step), value * RING_SCALE[ring])
            yield from ring_seconds(raw, gpu, ring, step, cells)


def ring_seconds(
    raw: Raw, gpu: int, ring: str, step: float, cells: dict[int, float]
) -> Iterator[Observation]:
    per_second = round(1 / step)
    first, last = min(cells), max(cells)
    for start in range(first, last + 1, per_second):
        values = [cells.get(i) for i in range(start, min(start + per_second, last + 1))]
        if any(value is not None for value in values):
            yield {
                "t": start * step,
                "kind": "ring",
                "uuid": raw.uuid(gpu),
                "ring": ring,
                "dt": step,
                "values": [None if v is None else round(v, 4) for v in values],
                "lost": round(sum(v is None for v in values) * step, 3),
            }


def sm_shares(raw: Raw) -> Iterator[Observation]:
    """SM shares from reads that average over the driver's whole buffer (asked with time stamp 0).

    Of the process that started last it is known what the buffer holds: nothing from before its
    start. Its share is therefore its content over the time since then, at most the buffer. Where
    there is another process, that has the rest of the GPU's busy time.
    """
    for gpu in range(raw.gpus):
        values: dict[int, list[tuple[float, float]]] = {}
        for row in raw.nvml:
            for pid, stamp, sm, _ in (row.get("slow") or [{}] * raw.gpus)[gpu].get(
                "proc_util"
            ) or []:
                values.setdefault(pid, []).append((stamp / 1e6, sm / 100 * SM_BUFFER_SECONDS))
        youngest = min(values, key=lambda pid: values[pid][0][1])
        reads = values[youngest]
        start = reads[0][0] - reads[0][1]
        for (before, _), (t, content) in pairwise(reads):
            busy = busy_between(raw, gpu, before, t)
            share = min(busy, content / min(SM_BUFFER_SECONDS, t - start))
            others = [pid for pid in values if pid != youngest]
            shares = [[youngest, round(share, 4)]]
            shares += [[pid, round((busy - share) / len(others), 4)] for pid in others]
            yield {
                "t": t,
                "kind": "sm_share",
                "uuid": raw.uuid(gpu),
                "dt": round(t - before, 3),
                "shares": shares,
            }


def busy_between(raw: Raw, gpu: int, start: float, end: float) -> float:
    seen = [
        row["gpus"][gpu]["gpm"]["graphics_util"] / 100
        for row in raw.nvml[1:]
        if start <= row["t"] < end and row["gpus"][gpu].get("gpm")
    ]
    return sum(seen) / len(seen) if seen else 1.0
