"""Who the GPU waited for, in all and in its longest waits."""

from __future__ import annotations

import numpy as np

from gpuwhy.evidence.traces.culprits import Culprits
from gpuwhy.evidence.traces.gaps import ACCOUNT_OF, PARTS
from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.kernels import short
from gpuwhy.evidence.traces.tables import WHO, Column, Row, Table, ratio, seconds

WORDS = {
    "startup": "compilation, module loading",
    "checkpoint": "a checkpoint",
    "evaluation": "evaluation on the host",
    "copy": "a copy call that holds the host",
    "data": "the input pipeline",
    "comm": "a collective on the host",
    "logging": "logging",
    "garbage-collection": "garbage collection",
    "synchronize": "the host, after a synchronisation",
    "profiler": "the profiler itself",
    "python": "Python, or an operator on the CPU",
    "dispatch": "the host, launching",
    "latency": "a launch to take effect",
    "between": "itself, from one queued kernel to the next",
    "queued": "something that the trace does not show",
    "blocked": "another thread or process, in a system call of the host",
    "blind": "something on the host that the trace does not show",
}
"""Who was waited for, of each part of a gap."""

LONGEST = 10

WAITS = Table(
    "waits",
    "Who the idle GPU waited for",
    (
        *WHO,
        Column("waited_for", "waited for"),
        Column("account", "account"),
        Column("gaps", "gaps", "count"),
        Column("time", "time", "s"),
        Column("ratio", "of the window", "ratio"),
        Column("longest", "longest", "s"),
    ),
)

LONGEST_WAITS = Table(
    "longest_waits",
    "The longest waits",
    (
        *WHO,
        Column("t", "UTC", "utc"),
        Column("at", "after the start", "s"),
        Column("time", "time", "s"),
        Column("waited_for", "waited for"),
        Column("where", "where"),
        Column("then", "then began"),
    ),
)


def table(who: Row, gpu: Gpu) -> list[Row]:
    """One row for each part of gaps, the largest first."""
    made = []
    for index, part in enumerate(PARTS):
        amount = gpu.gaps.amounts[:, index]
        if not amount.any():
            continue
        made.append(
            {
                **who,
                "waited_for": WORDS[part],
                "account": ACCOUNT_OF[part][0],
                "gaps": int(np.count_nonzero(amount)),
                "time": seconds(amount.sum()),
                "ratio": ratio(amount.sum(), gpu.window.length),
                "longest": seconds(amount.max()),
            }
        )
    return sorted(made, key=lambda row: -row["time"])


def longest(who: Row, gpu: Gpu, culprits: Culprits) -> list[Row]:
    """The longest gaps, each with its main part."""
    gaps = gpu.gaps
    order = np.argsort(gaps.start - gaps.end, kind="stable")[:LONGEST]
    made = []
    for row in order.tolist():
        start, end, following = int(gaps.start[row]), int(gaps.end[row]), int(gaps.next[row])
        one: Row = {**who, "at": seconds(start - gpu.window.start), "time": seconds(end - start)}
        if (utc := gpu.utc(start)) is not None:
            one["t"] = round(utc, 6)
        one["waited_for"] = WORDS[PARTS[int(gaps.amounts[row].argmax())]]
        function = culprits.at(row) if culprits.can_see else None
        if function is not None:
            one["where"] = f"{function[0]} ({function[1]}:{function[2]})"
        if following >= 0:
            one["then"] = short(gpu.trace.names[gpu.activities.name[following]])
        made.append(one)
    return made
