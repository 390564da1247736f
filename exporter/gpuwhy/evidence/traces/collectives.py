"""Collectives: their time, and how much of it nothing hides."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.intervals import intersect, overlap, union
from gpuwhy.evidence.traces.tables import WHO, Column, Row, Table, ratio, seconds
from gpuwhy.evidence.traces.trace import Message

_KIND = re.compile(
    r"(all_?reduce|reduce_?scatter|all_?gather|all_?to_?all|broadcast|send_?recv|reduce|send|recv"
    r"|barrier)",
    re.IGNORECASE,
)
_ON_THE_HOST = re.compile(r"^(gloo|mpi|ucc):")


def kind_of(name: str, message: Message | None) -> str:
    """``all_reduce`` of ``ncclDevKernel_AllReduce_Sum_f32_RING_LL``, or as the file tells."""
    told = message.collective if message else ""
    found = _KIND.search(told or name)
    if not found:
        return told or "collective"
    plain = found[1].lower().replace("_", "")
    return {"allreduce": "all_reduce", "reducescatter": "reduce_scatter",
            "allgather": "all_gather", "alltoall": "all_to_all", "sendrecv": "send_recv",
            }.get(plain, plain)  # fmt: skip


def table(who: Row, gpu: Gpu) -> list[Row]:
    """One row for each kind of collective and process group."""
    rows = _rows(gpu)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in rows.tolist():
        message = gpu.trace.messages.get(int(gpu.activities.correlation[row]))
        name = gpu.trace.names[gpu.activities.name[row]]
        groups[kind_of(name, message), message.group if message else ""].append(row)
    made = [{**who, **_group(gpu, key, np.array(m))} for key, m in groups.items()]
    made += [{**who, **row} for row in _host_rows(gpu)]
    return sorted(made, key=lambda row: -row["time"])


def _host_rows(gpu: Gpu) -> list[Row]:
    """Those of a library that works on the host: not hidden is what the GPU idled under them."""
    spans, made = gpu.trace.spans, []
    for name in host_names(gpu):
        rows = np.flatnonzero(spans.name == name)
        starts, ends = (np.clip(edge[rows], gpu.window.start, gpu.window.end)
                        for edge in (spans.start, spans.end))  # fmt: skip
        inside = ends > starts
        if not inside.any():
            continue
        exposed = intersect(gpu.idle, union(starts[inside], ends[inside])).total
        made.append(
            {
                "collective": f"{kind_of(gpu.trace.names[name], None)} on the host",
                "count": int(inside.sum()),
                "time": seconds((ends - starts)[inside].sum()),
                "exposed": seconds(exposed),
                "exposed_ratio": ratio(exposed, gpu.window.length),
            }
        )
    return made


def host_names(gpu: Gpu) -> list[int]:
    """Of names, those that are collectives of a library that works on the host."""
    return [i for i, name in enumerate(gpu.trace.names) if _ON_THE_HOST.match(name)]


def _rows(gpu: Gpu) -> NDArray[np.int64]:
    activities = gpu.activities
    inside = (activities.start >= gpu.window.start) & (activities.start < gpu.window.end)
    return np.flatnonzero(gpu.collective & inside)


def _group(gpu: Gpu, key: tuple[str, str], rows: NDArray[np.int64]) -> Row:
    starts, ends = gpu.activities.start[rows], gpu.activities.end[rows]
    told = [gpu.trace.messages.get(int(c)) for c in gpu.activities.correlation[rows]]
    sizes = [m.size for m in told if m is not None and m.size is not None]
    made: Row = {"collective": key[0], "count": len(rows), "time": seconds((ends - starts).sum())}
    if key[1]:
        made["group"] = key[1]
    exposed = float(overlap(gpu.exposed_comm, starts, ends).sum())
    made["exposed"] = seconds(exposed)
    made["exposed_ratio"] = ratio(exposed, gpu.window.length)
    if len(sizes) == len(rows):
        made["bytes"] = sum(sizes)
    return made


COLLECTIVES = Table(
    "collectives",
    "Collectives",
    (
        *WHO,
        Column("collective", "collective"),
        Column("group", "group"),
        Column("count", "count", "count"),
        Column("bytes", "bytes in", "bytes"),
        Column("time", "time", "s"),
        Column("exposed", "not hidden", "s"),
        Column("exposed_ratio", "of the window", "ratio"),
    ),
)
