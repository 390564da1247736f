"""A row for each step: how long, how busy, where the rest went."""

from __future__ import annotations

import numpy as np

from gpuwhy.evidence.traces.gpu import Gpu, account_ratios
from gpuwhy.evidence.traces.tables import WHO, Column, Row, Table, seconds
from gpuwhy.ledger.accounts import ACCOUNTS

ROWS = 200
"""Steps that are told one by one; of a longer trace, the slowest."""


def table(who: Row, gpu: Gpu) -> list[Row]:
    """The steps in order, the accounts of each as shares of it."""
    steps = gpu.steps
    if steps is None:
        return []
    slowest = np.sort(np.argsort(-steps.durations, kind="stable")[:ROWS])
    made = []
    for i in slowest.tolist():
        start, end = int(steps.bounds[i]), int(steps.bounds[i + 1])
        one: Row = {**who, "step": steps.names[i] or str(i), "time": seconds(end - start)}
        if (utc := gpu.utc(start)) is not None:
            one["t"] = round(utc, 6)
        one["launched"] = _launched(gpu, i)
        ratios = account_ratios(gpu.shares_of(start, end), max(1, end - start))
        made.append(one | {account: round(share, 4) for account, share in ratios.items()})
    return made


def _launched(gpu: Gpu, step: int) -> int:
    """Kernels and copies that were launched within a step of the host."""
    if gpu.steps is None or not len(gpu.calls.start):
        return 0
    at = gpu.calls.start[gpu.launch[gpu.launch >= 0]]
    return int(((at >= gpu.steps.starts[step]) & (at < gpu.steps.ends[step])).sum())


def columns(rows: list[Row]) -> Table:
    """The table, with a column for each account that any step has."""
    seen = [a for a in ACCOUNTS if any(row.get(a, 0.0) >= 0.005 for row in rows)]
    return Table(
        "steps",
        "Steps",
        (
            *WHO,
            Column("step", "step"),
            Column("t", "UTC", "utc"),
            Column("time", "time", "s"),
            Column("launched", "launched", "count"),
            *(Column(account, account, "ratio") for account in seen),
        ),
        shown=12,
    )
