"""Copies: by direction, by kind of host memory, by size, and how much of them is hidden."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.intervals import merge, overlap
from gpuwhy.evidence.traces.tables import WHO, Column, Row, Table, quantile, ratio, seconds
from gpuwhy.evidence.traces.trace import MEMCPY, Ids

WAYS = {
    "HtoD": "host to device",
    "DtoH": "device to host",
    "DtoD": "device to device",
    "PtoP": "peer to peer",
    "HtoH": "host to host",
    "HtoA": "host to array",
    "AtoH": "array to host",
}
_WAY = re.compile(r"\b([HDPA]to[HDPA])\b")
_MEMORY = re.compile(r"pageable|pinned|managed|unified", re.IGNORECASE)


def table(who: Row, gpu: Gpu) -> list[Row]:
    """One row for each direction and kind of host memory."""
    activities, window = gpu.activities, gpu.window
    inside = (activities.start >= window.start) & (activities.start < window.end)
    rows = np.flatnonzero((activities.kind == MEMCPY) & inside)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in rows.tolist():
        groups[way(gpu.trace.names[activities.name[row]])].append(row)
    return sorted(
        ({**who, **_group(gpu, key, np.array(members))} for key, members in groups.items()),
        key=lambda made: -made["time"],
    )


def _group(gpu: Gpu, key: tuple[str, str], rows: Ids) -> Row:
    starts, ends = gpu.activities.start[rows], gpu.activities.end[rows]
    time = float((ends - starts).sum())
    hidden = float(overlap(merge(gpu.compute, gpu.comm), starts, ends).sum())
    sizes = gpu.activities.size[rows]
    made: Row = {"way": key[0], "copies": len(rows), "time": seconds(time)}
    if key[1]:
        made["memory"] = key[1]
    made["overlap_ratio"] = ratio(hidden, time)
    made["longest"] = quantile(ends - starts, 1.0)
    if (sizes >= 0).all():
        made["bytes"] = int(sizes.sum())
        made["median_bytes"] = int(np.median(sizes))
        if time:
            made["bandwidth"] = round(float(sizes.sum()) / time * 1e9)
    return made


COPIES = Table(
    "copies",
    "Copies",
    (
        *WHO,
        Column("way", "direction"),
        Column("memory", "host memory"),
        Column("copies", "count", "count"),
        Column("bytes", "bytes", "bytes"),
        Column("median_bytes", "median", "bytes"),
        Column("time", "time", "s"),
        Column("bandwidth", "rate", "bytes/s"),
        Column("overlap_ratio", "under kernels", "ratio"),
    ),
)


def way(name: str) -> tuple[str, str]:
    """(direction, host memory) of ``Memcpy HtoD (Pageable -> Device)``."""
    found, memory = _WAY.search(name), _MEMORY.search(name)
    return WAYS.get(found[1], found[1]) if found else name, memory[0].lower() if memory else ""
