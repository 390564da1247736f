"""The book: every second entered once, in both views, and the verdicts drawn from it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gpuwhy.ledger.entry import Entry, Gpu
from gpuwhy.ledger.recent import Recent, Stretch
from gpuwhy.ledger.split import Split, split
from gpuwhy.ledger.verdict import verdict
from gpuwhy.signals.row import GpuRow, RunKey, RunSignals, Second

Holder = tuple[Gpu, str | None, int | None]
"""(uuid, run, rank); run is None for time that belongs to no run."""
DeviceKey = tuple[Gpu, str | None, str, str]
"""(uuid, run, account, reason): device view."""
RunViewKey = tuple[Gpu, str, int | None, str, str]
"""(uuid, run, rank, account, reason): run view."""


RUN_KEEP_S = 120
"""Counters of a run stay this long after it was last seen: a few scrapes."""


@dataclass(slots=True)
class Book:
    """Cumulative accounts and the last ``keep_s`` seconds (those older than ``open_s`` packed).

    ``device`` and ``run`` are GPU-seconds since the book was opened. Identities, held by tests:
    over all keys of a GPU ``device`` and what is ``retired`` (of runs that ended) add up to
    ``observed[uuid]``; over all keys of a holder ``run`` adds up to ``held[holder]``. Time that
    was not observed is in neither.
    """

    keep_s: int = 900
    open_s: float | None = None
    device: dict[DeviceKey, float] = field(default_factory=lambda: defaultdict(float))
    run: dict[RunViewKey, float] = field(default_factory=lambda: defaultdict(float))
    observed: dict[Gpu, float] = field(default_factory=lambda: defaultdict(float))
    held: dict[Holder, float] = field(default_factory=lambda: defaultdict(float))
    retired: dict[Gpu, float] = field(default_factory=lambda: defaultdict(float))
    last_seen: dict[tuple[Gpu, str], int] = field(default_factory=dict)
    now: int = 0
    recent: Recent = field(init=False)

    def __post_init__(self) -> None:
        self.recent = Recent(self.keep_s, self.open_s)

    def enter(self, second: Second) -> None:
        """Enter one second in all accounts of both views at once."""
        if second.t < self.now:  # the clock was set back: these seconds will come once more
            self.recent = Recent(self.keep_s, self.open_s)
            self.last_seen = dict.fromkeys(self.last_seen, second.t)
        self.now = second.t
        shares: dict[tuple[Gpu | None, RunKey, int], Split] = {}
        for row in second.rows:
            parts = [(run, split(row, run)) for run in row.runs]
            uuid = row.gpu.uuid if row.gpu else None
            for run, part in parts:
                shares[(uuid, (run.run, run.rank), run.pid)] = part
                if uuid is not None:
                    self._enter_run(uuid, run, part)
            if row.gpu is not None and not row.gpu.divided:
                self._enter_device(row.gpu.uuid, row, parts)
        self._forget(second.t)
        self.recent.append(Entry(second, shares))

    def _enter_run(self, uuid: Gpu, run: RunSignals, part: Split) -> None:
        for (account, reason), share in part.shares.items():
            self.run[(uuid, run.run, run.rank, account, reason)] += share
        self.held[(uuid, run.run, run.rank)] += 1.0
        self.last_seen[(uuid, run.run)] = self.now

    def _enter_device(self, uuid: Gpu, row: GpuRow, parts: list[tuple[RunSignals, Split]]) -> None:
        self.observed[uuid] += 1.0
        for (run, account, reason), share in device_view(row, parts).items():
            self.device[(uuid, run, account, reason)] += share

    def _forget(self, now: int) -> None:
        """Drop the counters of runs that ended RUN_KEEP_S ago, so that memory stays bounded over
        any number of jobs."""
        ended = {key for key, t in self.last_seen.items() if now - t > RUN_KEEP_S}
        if not ended:
            return
        for account in [k for k in self.run if k[:2] in ended]:
            del self.run[account]
        for holder in [k for k in self.held if (k[0], k[1]) in ended]:
            del self.held[holder]
        for device in [k for k in self.device if (k[0], k[1]) in ended]:
            self.retired[device[0]] += self.device.pop(device)
        for key in ended:
            del self.last_seen[key]

    def stretch(self, window_s: float | None = None) -> Stretch:
        """The last ``window_s`` seconds entered (all that are kept if None), to be read at leisure
        and in any thread."""
        newest = self.recent.newest
        if newest is None or window_s is None:
            return self.recent.since(float("-inf"))
        return self.recent.since(math.floor(newest - window_s) + 1)

    def entries(self, window_s: float | None = None) -> list[Entry]:
        """The entries of the last ``window_s`` seconds (all that are kept if None)."""
        return list(self.stretch(window_s))

    def verdicts(self, window_s: float | None = None) -> dict[str, Any]:
        """The object of ``gpuwhy diagnose --json`` over the last ``window_s`` seconds."""
        return verdict(self.entries(window_s))


DeviceShares = dict[tuple[str | None, str, str], float]
"""(run, account, reason) -> share of the second."""


def device_view(row: GpuRow, parts: list[tuple[RunSignals, Split]]) -> DeviceShares:
    """The device view of one second, adding up to 1.

    Every tenant's work is its own here, so ``shared`` vanishes: what one run calls ``shared`` is
    in another's ``compute`` (or, for processes of no run, in ``compute`` without a run). The idle
    time of a GPU held by several runs is split equally between them.
    """
    if not parts:
        return dict(_without_run(row))
    out: DeviceShares = defaultdict(float)
    for run, part in parts:
        for (account, reason), share in part.busy.items():
            if account != "shared":
                out[(run.run, account, reason)] += share
        for (account, reason), share in part.idle.items():
            out[(run.run, account, reason)] += share / len(parts)
    return _filled(out)


def _filled(out: DeviceShares) -> DeviceShares:
    """What the runs did not account for is the work of processes that belong to no run; where the
    shares of several runs overlap (the driver rounds them), they are scaled to the second."""
    total = sum(out.values())
    if total > 1.0:
        return {key: share / total for key, share in out.items()}
    if total < 1.0:
        out[(None, "compute", "")] = out.get((None, "compute", ""), 0.0) + 1.0 - total
    return dict(out)


def _without_run(row: GpuRow) -> Iterator[tuple[tuple[str | None, str, str], float]]:
    busy = row.gpu.busy if row.gpu is not None else None
    if busy is None:
        yield (None, "unknown", "no-utilization"), 1.0
        return
    yield (None, "free", ""), 1.0 - busy
    if busy > 0:
        yield (None, "compute", ""), busy
