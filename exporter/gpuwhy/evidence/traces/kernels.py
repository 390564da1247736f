"""Kernels: how long they take, how small they are, which operators launch them."""

from __future__ import annotations

import itertools
import re

import numpy as np
from numpy.typing import NDArray

from gpuwhy.evidence.traces import operators
from gpuwhy.evidence.traces.gaps import PARTS
from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.tables import WHO, Column, Row, Table, ratio, seconds
from gpuwhy.evidence.traces.trace import KERNEL, Mask

TINY_NS = 5_000
"""A kernel shorter than its own launch (some 5 us) cannot keep a GPU busy, whatever the host."""

EDGES_US = (2, 5, 10, 20, 50, 100, 500, 1000)
TOP = 25

_FUNCTOR = re.compile(r"\w*[Ff]unctor\w*")
_TEMPLATE = re.compile(r"<[^<>]*>|\([^()]*\)")


def window_kernels(gpu: Gpu) -> Mask:
    """The kernels that begin within the window."""
    start = gpu.activities.start
    inside = (start >= gpu.window.start) & (start < gpu.window.end)
    return np.asarray((gpu.activities.kind == KERNEL) & inside, np.bool_)


def tiny_ratio(gpu: Gpu) -> float | None:
    """Share of the kernels that are shorter than TINY_NS; None where there are none."""
    rows = window_kernels(gpu)
    if not rows.any():
        return None
    lengths = (gpu.activities.end - gpu.activities.start)[rows]
    return round(float(np.mean(lengths < TINY_NS)), 4)


def distribution(who: Row, gpu: Gpu) -> list[Row]:
    """Kernels by duration."""
    rows = window_kernels(gpu)
    lengths = (gpu.activities.end - gpu.activities.start)[rows]
    edges = np.array([0, *(edge * 1000 for edge in EDGES_US), np.iinfo(np.int64).max])
    which = np.searchsorted(edges, lengths, side="right") - 1
    count = np.bincount(which, minlength=len(edges) - 1)
    time = np.bincount(which, lengths, len(edges) - 1)
    labels = [
        "below 2 us",
        *(f"{a} to {b} us" for a, b in itertools.pairwise(EDGES_US)),
    ]
    labels.append(f"{EDGES_US[-1] // 1000} ms and more")
    return [
        {
            **who,
            "duration": label,
            "kernels": int(n),
            "kernel_ratio": ratio(n, len(lengths)),
            "time": seconds(t),
            "time_ratio": ratio(t, lengths.sum()),
        }
        for label, n, t in zip(labels, count, time, strict=True)
        if n
    ]


DISTRIBUTION = Table(
    "kernel_durations",
    "Kernels by duration",
    (
        *WHO,
        Column("duration", "duration"),
        Column("kernels", "kernels", "count"),
        Column("kernel_ratio", "of kernels", "ratio"),
        Column("time", "time", "s"),
        Column("time_ratio", "of kernel time", "ratio"),
    ),
)


def top(who: Row, gpu: Gpu) -> list[Row]:
    """Kernels by name, those with the most time first."""
    rows = window_kernels(gpu)
    names, which = np.unique(gpu.activities.name[rows], return_inverse=True)
    lengths = (gpu.activities.end - gpu.activities.start)[rows]
    count, time = np.bincount(which), np.bincount(which, lengths)
    order = np.argsort(-time, kind="stable")[:TOP]
    return [
        {
            **who,
            "kernel": short(gpu.trace.names[names[i]]),
            "name": gpu.trace.names[names[i]],
            "count": int(count[i]),
            "time": seconds(time[i]),
            "mean": seconds(time[i] / count[i]),
            "ratio": ratio(time[i], lengths.sum()),
        }
        for i in order
    ]


TOP_KERNELS = Table(
    "kernels",
    "Kernels with the most time",
    (
        *WHO,
        Column("kernel", "kernel"),
        Column("count", "count", "count"),
        Column("time", "time", "s"),
        Column("mean", "mean", "s"),
        Column("ratio", "of kernel time", "ratio"),
    ),
    shown=10,
)


def by_operator(who: Row, gpu: Gpu) -> list[Row]:
    """Operators by the time that the GPU idled before their kernels for want of a launch."""
    op = operators.names(gpu)
    if op is None:
        return []
    activities = gpu.activities
    inside = (activities.start >= gpu.window.start) & (activities.start < gpu.window.end)
    known = inside & (op >= 0)
    lengths = activities.end - activities.start
    width = len(gpu.trace.names)
    count = np.bincount(op[known], minlength=width)
    tiny = np.bincount(op[known & (lengths < TINY_NS)], minlength=width)
    time = np.bincount(op[known], lengths[known], width)
    waits = launch_waits(gpu)
    idle = np.bincount(op[known], waits[known], width)
    order = [i for i in np.argsort(-idle, kind="stable")[:TOP] if count[i]]
    return [
        {
            **who,
            "operator": gpu.trace.names[i],
            "kernels": int(count[i]),
            "tiny_ratio": ratio(tiny[i], count[i]),
            "time": seconds(time[i]),
            "idle": seconds(idle[i]),
            "idle_ratio": ratio(idle[i], gpu.window.length),
        }
        for i in order
    ]


OPERATORS = Table(
    "operators",
    "Operators whose launches the GPU waited for",
    (
        *WHO,
        Column("operator", "operator"),
        Column("kernels", "kernels, copies", "count"),
        Column("tiny_ratio", "below 5 us", "ratio"),
        Column("time", "GPU time", "s"),
        Column("idle", "idle before", "s"),
        Column("idle_ratio", "of the window", "ratio"),
    ),
    shown=8,
)


def launch_waits(gpu: Gpu) -> NDArray[np.float64]:
    """Idle time in the account ``launch`` before each activity, ns."""
    columns = [PARTS.index("dispatch"), PARTS.index("latency")]
    amount = gpu.gaps.amounts[:, columns].sum(axis=1)
    rows = gpu.gaps.next >= 0
    count = len(gpu.activities.start)
    return np.bincount(gpu.gaps.next[rows], amount[rows], count).astype(np.float64)


def short(name: str) -> str:
    """A kernel's name without return type, template arguments and parameters; with its functor,
    which says what one of PyTorch's elementwise kernels does."""
    functor = _FUNCTOR.search(name)
    shown = _bare(name).replace("at::native::", "").strip(" :") or "kernel"
    return f"{shown} ({functor[0]})" if functor and functor[0] not in shown else shown


def base(name: str) -> str:
    """The function's own name, without its namespace, by which ncu knows it."""
    return _bare(name).rpartition("::")[2].strip() or name


def _bare(name: str) -> str:
    shown = name.replace("(anonymous namespace)::", "")
    before = None
    while before != shown and len(shown) < 20_000:
        before, shown = shown, _TEMPLATE.sub("", shown)
    return shown.removeprefix("void ")
