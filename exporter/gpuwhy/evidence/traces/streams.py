"""Idle time of each stream by itself, in the categories of HolisticTraceAnalysis.

A stream is idle while another may work; so this says more of the program's order than of the GPU.
It is the same breakdown as ``TraceAnalysis.get_idle_time_breakdown`` of HTA
(https://hta.readthedocs.io/en/latest/source/features/idle_time_breakdown.html).
"""

from __future__ import annotations

import numpy as np

from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.tables import WHO, Column, Row, Table, seconds

KERNEL_WAIT_NS = 30_000
"""A shorter gap before work that was already launched is the latency between two kernels."""

CATEGORIES = ("host_wait", "kernel_wait", "other")

STREAMS = Table(
    "streams",
    "Idle time within each stream",
    (
        *WHO,
        Column("stream", "stream"),
        Column("activities", "activities", "count"),
        Column("host_wait", "host wait", "s"),
        Column("kernel_wait", "kernel wait", "s"),
        Column("other", "other", "s"),
    ),
    note="Between the first and the last work of each stream of the whole file; host wait: the "
    "launch came after the end of the work before; kernel wait: launched in time, less than 30 us.",
)


def table(who: Row, gpu: Gpu) -> list[Row]:
    """One row for each stream, those with the most work first."""
    streams, counts = np.unique(gpu.activities.stream, return_counts=True)
    return [
        {
            **who,
            "stream": int(streams[i]),
            "activities": int(counts[i]),
            **{category: seconds(ns) for category, ns in breakdown(gpu, int(streams[i])).items()},
        }
        for i in np.argsort(-counts, kind="stable")
    ]


def breakdown(gpu: Gpu, stream: int) -> dict[str, int]:
    """Idle ns between the activities of one stream, by category."""
    rows = np.flatnonzero(gpu.activities.stream == stream)
    idle = gpu.activities.start[rows][1:] - gpu.activities.end[rows][:-1]
    launch = gpu.launch[rows][1:]
    ended = gpu.activities.end[rows][:-1]
    if len(gpu.calls.start):
        host = (launch >= 0) & (gpu.calls.start[np.maximum(launch, 0)] > ended)
    else:
        host = np.zeros(len(idle), np.bool_)
    kernel = ~host & (idle < KERNEL_WAIT_NS)
    parts = (host, kernel, ~host & ~kernel)
    return {c: int(idle[part].sum()) for c, part in zip(CATEGORIES, parts, strict=True)}
