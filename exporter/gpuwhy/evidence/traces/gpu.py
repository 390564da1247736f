"""One GPU of a trace: its time laid out, and every nanosecond of the window in an account."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuwhy.evidence.traces import gaps as gap
from gpuwhy.evidence.traces import steps as step
from gpuwhy.evidence.traces.host import Host
from gpuwhy.evidence.traces.intervals import (
    Intervals,
    clip,
    complement,
    merge,
    overlap,
    subtract,
    union,
)
from gpuwhy.evidence.traces.trace import (
    KERNEL,
    MEMCPY,
    UNKNOWN,
    Activities,
    Blind,
    Calls,
    Ids,
    Mask,
    Trace,
    select,
)

COLLECTIVE = re.compile(
    r"(?:^|[^a-z])(?:nccl|rccl|msccl)|nvshmem|cross_device_reduce|(?:one|two)_shot_all_reduce"
    r"|multimem_all_(?:reduce|gather)|all_?reduce_kernel",
    re.IGNORECASE,
)
"""Kernels that exchange data with other GPUs."""

SKEW_SHARE = 0.01
"""Share of the activities that may seem to begin before their launch without a remedy."""

Shares = dict[tuple[str, str], float]
"""(account, reason) -> ns."""


@dataclass(slots=True)
class Window:
    """What is told of: whole steps where there are any."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """ns, at least 1."""
        return max(1, self.end - self.start)


class Gpu:
    """The activities of one device in a trace, and what follows from them."""

    def __init__(self, trace: Trace, device: int, process: int) -> None:
        self.trace = trace
        self.device = device
        self.process = process
        mine = (trace.activities.device == device) & (trace.activities.process == process)
        self.activities: Activities = select(trace.activities, mine)
        self.calls: Calls = trace.calls
        self.launch = launches(self.activities, trace.calls)
        self.blind: list[Blind] = self._mend_skew()
        self.steps = step.find(trace, self.activities, self.launch)
        self.window = self._window()

    def _mend_skew(self) -> list[Blind]:
        """Move the GPU's clock where it runs ahead of the host's."""
        rows = np.flatnonzero(self.launch >= 0)
        lead = self.activities.start[rows] - self.calls.start[self.launch[rows]]
        if not len(rows) or np.mean(lead < 0) <= SKEW_SHARE:
            return []
        skew = -int(np.percentile(lead, 0.1))
        self.activities.start += skew
        self.activities.end += skew
        why = f"GPU times lay up to {skew / 1000:.0f} us before their launch: moved by as much"
        return [Blind("clock", why, "a current driver and profiler keep both clocks together")]

    def _window(self) -> Window:
        """Whole steps; else from the first launch to the end of the last work."""
        if self.steps is not None:
            return Window(int(self.steps.bounds[0]), int(self.steps.bounds[-1]))
        first = int(self.activities.start[0])
        if self.launch[0] >= 0:
            first = min(first, int(self.calls.start[self.launch[0]]))
        return Window(first, int(self.activities.end.max()))

    # -- what the GPU did, as sets of time within the window --------------------------------------

    @cached_property
    def collective(self) -> Mask:
        """Which activities are collectives."""
        names = [i for i in np.unique(self.activities.name).tolist() if self._is_collective(i)]
        found = np.isin(self.activities.name, names) & (self.activities.kind == KERNEL)
        return np.asarray(found, np.bool_)

    def _is_collective(self, name: int) -> bool:
        return COLLECTIVE.search(self.trace.names[name]) is not None

    @cached_property
    def compute(self) -> Intervals:
        """Time with a kernel of the job's own work, or a memset."""
        return self._set((self.activities.kind != MEMCPY) & ~self.collective)

    @cached_property
    def comm(self) -> Intervals:
        """Time with a collective's kernel."""
        return self._set(self.collective)

    @cached_property
    def copies(self) -> Intervals:
        """Time with a copy."""
        return self._set(self.activities.kind == MEMCPY)

    def _set(self, rows: Mask) -> Intervals:
        whole = union(self.activities.start[rows], self.activities.end[rows])
        return clip(whole, self.window.start, self.window.end)

    @cached_property
    def exposed_comm(self) -> Intervals:
        """A collective and no other kernel."""
        return subtract(self.comm, self.compute)

    @cached_property
    def exposed_copies(self) -> Intervals:
        """A copy and no kernel at all."""
        return subtract(self.copies, merge(self.compute, self.comm))

    @cached_property
    def idle(self) -> Intervals:
        """Neither a kernel nor a copy."""
        busy = merge(self.compute, self.comm, self.copies)
        return complement(busy, self.window.start, self.window.end)

    @cached_property
    def host(self) -> Host:
        """The host side."""
        return Host(self.trace, self.launch)

    @cached_property
    def gaps(self) -> gap.Gaps:
        """The idle time, taken apart."""
        cuts = self.steps.bounds if self.steps is not None else np.empty(0, np.int64)
        return gap.find(self.idle, cuts, self.activities, self.launch, self.host)

    # -- accounts --------------------------------------------------------------------------------

    @cached_property
    def shares(self) -> Shares:
        """(account, reason) -> ns of the window; adds up to its length."""
        return self.shares_of(self.window.start, self.window.end)

    def shares_of(self, start: int, end: int) -> Shares:
        """The same for a part of the window that begins and ends at its bounds or at a step's."""
        edges = (np.array([start]), np.array([end]))
        made: Shares = {
            ("comm", "waiting"): float(overlap(self.exposed_comm, *edges)[0]),
            ("compute", ""): float(overlap(self.compute, *edges)[0]),
            ("copy", self.copy_reason): float(overlap(self.exposed_copies, *edges)[0]),
        }
        rows = (self.gaps.start >= start) & (self.gaps.end <= end)
        for part, amount in zip(gap.PARTS, self.gaps.amounts[rows].sum(axis=0), strict=True):
            account, reason = gap.ACCOUNT_OF[part]
            key = (account, self.copy_reason if account == "copy" else reason)
            made[key] = made.get(key, 0.0) + float(amount)
        return {key: amount for key, amount in made.items() if amount > 0}

    @property
    def accounts(self) -> dict[str, float]:
        """account -> share of the window; adds up to 1."""
        return account_ratios(self.shares, self.window.length)

    @cached_property
    def copy_reason(self) -> str:
        """Which way the copies went that the GPU idled under."""
        rows = np.flatnonzero(self.activities.kind == MEMCPY)
        times = overlap(self.exposed_copies, self.activities.start[rows], self.activities.end[rows])
        into = sum(
            t for t, r in zip(times.tolist(), rows.tolist(), strict=True) if self._way(r) > 0
        )
        out = sum(t for t, r in zip(times.tolist(), rows.tolist(), strict=True) if self._way(r) < 0)
        if into and out and min(into, out) >= 0.2 * (into + out):
            return "both-ways"
        if not into and not out:
            return ""
        return "device-to-host" if out > into else "host-to-device"

    def _way(self, row: int) -> int:
        """1 to the device, -1 from it, 0 neither."""
        name = self.trace.names[self.activities.name[row]]
        return 1 if "HtoD" in name else -1 if "DtoH" in name else 0

    def utc(self, ns: int) -> float | None:
        """Unix seconds of a time of the trace."""
        origin = self.trace.origin_ns
        return None if origin is None else (origin + ns) / 1e9


def account_ratios(shares: Mapping[tuple[str, str], float], length: float) -> dict[str, float]:
    """account -> share of ``length``."""
    made: dict[str, float] = {}
    for (account, _), amount in shares.items():
        made[account] = made.get(account, 0.0) + amount / length
    return made


def launches(activities: Activities, calls: Calls) -> Ids:
    """The row of the call that launched each activity, -1 where the file has none."""
    if not len(calls.start):
        return np.full(len(activities.start), -1)
    order = np.argsort(calls.correlation, kind="stable")
    sorted_ids = calls.correlation[order]
    place = np.minimum(np.searchsorted(sorted_ids, activities.correlation), len(order) - 1)
    known = (sorted_ids[place] == activities.correlation) & (activities.correlation != UNKNOWN)
    return np.where(known, order[place], -1)


def gpus_of(trace: Trace) -> list[Gpu]:
    """One entry for each device that did something, for each process."""
    pairs = np.unique(
        np.stack((trace.activities.process, trace.activities.device)), axis=1
    ).T.tolist()
    return [Gpu(trace, device, process) for process, device in pairs]
