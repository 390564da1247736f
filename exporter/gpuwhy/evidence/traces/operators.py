"""Which operator launched an activity, and in which part of the step."""

from __future__ import annotations

import numpy as np

from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.intervals import Intervals, Times, covered, union
from gpuwhy.evidence.traces.trace import ANNOTATION, OPERATOR, Ids, Mask, Trace

REGIONS = ("forward", "backward", "optimizer", "data")


def names(gpu: Gpu) -> Ids | None:
    """The name's index of each activity's operator, -1 where not known; None where the trace has
    no operators. By the id that activities carry."""
    spans = gpu.trace.spans
    rows = np.flatnonzero((spans.kind == OPERATOR) & (spans.op >= 0))
    if not len(rows):
        return None
    order = rows[np.argsort(spans.op[rows], kind="stable")]
    ids = spans.op[order]
    place = np.minimum(np.searchsorted(ids, gpu.activities.op), len(ids) - 1)
    known = (ids[place] == gpu.activities.op) & (gpu.activities.op >= 0)
    return np.where(known, spans.name[order[place]], -1)


def region_of(gpu: Gpu, rows: Ids) -> Ids:
    """The index in REGIONS of the part of the step that launched these activities; -1 unknown.

    Backward is what autograd's own thread launches, or what runs below one of its functions.
    """
    call = gpu.launch[rows]
    known = call >= 0
    at = gpu.calls.start[np.maximum(call, 0)] if len(gpu.calls.start) else np.zeros(len(rows), int)
    thread = gpu.calls.thread[np.maximum(call, 0)] if len(gpu.calls.start) else at
    made = np.where(known, REGIONS.index("forward"), -1)
    backward = (thread != gpu.host.main) | inside(_spans(gpu.trace, "autograd::engine::"), at)
    made[known & backward] = REGIONS.index("backward")
    for region, prefix in (("optimizer", "Optimizer."), ("data", "enumerate(DataLoader)")):
        made[known & inside(_spans(gpu.trace, prefix), at)] = REGIONS.index(region)
    return made


def inside(of: Intervals, at: Times) -> Mask:
    """Which of these times lie in the set."""
    return np.asarray(covered(of, at + 1) > covered(of, at), np.bool_)


def _spans(trace: Trace, prefix: str) -> Intervals:
    wanted = [i for i, name in enumerate(trace.names) if name.startswith(prefix)]
    spans = trace.spans
    kinds = (spans.kind == OPERATOR) | (spans.kind == ANNOTATION)
    rows = np.isin(spans.name, wanted) & kinds
    return union(spans.start[rows], spans.end[rows])
