"""The step in progress of a loop without a counter, from the batches that its workers make.

A ``DataLoader`` numbers its batches from 0 in each epoch and hands a worker the next number for
every batch that the loop takes. So the newest number, less the batches that are ready or being
made, is the one that the loop has. It counts batches of an epoch: where a step takes several, or a
run several epochs, it is not the step's own number, and it is named as what it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpuwhy.signals.row import InputQueue
from gpuwhy.signals.steps import RATE_S, Points, Steps, rate
from gpuwhy.signals.tracks import Samples

NAME = "loader index"
FRESH_S = 10.0
"""Workers are looked at in turn; one that waits for an index shows none."""


def loader_index(workers: Iterable[Samples], second: int, queue: InputQueue | None) -> Steps:
    """The batch in progress at ``t`` and batches a second; empty where no worker showed a number
    lately, or nothing tells how many are ready. Exact while workers wait; else one of the batches
    that they make, so within as many as there are workers."""
    seen = sorted(point for samples in workers for point in _numbers(samples, second))
    if not seen or queue is None or queue.ready is None:
        return Steps()
    handed_out = _newest(seen, queue.capacity or 0)
    t, number = handed_out[-1]
    if t < second - FRESH_S:
        return Steps()
    step = max(0, round(number - queue.busy_workers - queue.ready))
    return Steps(step=step, t=t, name=NAME, per_second=rate(handed_out))


def _numbers(samples: Samples, second: int) -> Points:
    near = samples.between(second - RATE_S, second + 1.0)
    return [
        (float(o["t"]), int(value))
        for o in near
        for _, _, name, value in o["values"]
        if name == "idx"
    ]


def _newest(seen: Points, capacity: int) -> Points:
    """Each number that was the newest when it was seen, of the last epoch: one that lies below what
    can be in flight is of a new one."""
    kept: Points = []
    for t, number in seen:
        if kept and number < kept[-1][1] - capacity:
            kept = []
        if not kept or number > kept[-1][1]:
            kept.append((t, number))
    return kept
