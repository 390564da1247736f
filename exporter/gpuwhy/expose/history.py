"""The last minutes, second by second, as columns: what ``/api/v1/history`` answers.

Pure: entries of the ledger's book in, plain data out. With a run it is the run view of the ledger,
else the device view; every other value is the mean over the GPUs and ranks chosen, over those for
which it is known. A second that was not observed is null in every column, never idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuwhy.ledger.accounts import ACCOUNTS
from gpuwhy.ledger.book import device_view
from gpuwhy.ledger.entry import Entry
from gpuwhy.ledger.split import Split
from gpuwhy.signals.phase_rules import PHASES
from gpuwhy.signals.row import GpuRow, GpuSignals, RunSignals

SIGNALS = (
    "busy",
    "sm_active",
    "memory_controller",
    "sm_clock",
    "memory_clock",
    "power_w",
    "power_limit_w",
    "temperature_c",
    "slowdown_c",
    "pcie_rx",
    "pcie_tx",
)
"""Shares of the second; clocks as shares of the attainable; W; degrees Celsius; bytes/s."""
PROGRESS = ("ready", "capacity", "busy_workers", "workers", "steps_per_second")
"""Of one rank on the mean: batches, worker processes, steps/s."""

Values = dict[str, float]
Part = tuple[GpuRow, list[tuple[RunSignals, Split]]]
"""A GPU's row, and the runs on it that are looked at."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is looked at: everything, or one run, rank, GPU (UUID), or any of these together."""

    run: str | None = None
    rank: int | None = None
    gpu: str | None = None

    def takes(self, run: RunSignals) -> bool:
        """Whether a rank is looked at."""
        return self.run in (None, run.run) and self.rank in (None, run.rank)


@dataclass(slots=True)
class Moment:
    """One second: means by name; absent where nothing is known."""

    accounts: Values = field(default_factory=dict)
    signals: Values = field(default_factory=dict)
    phases: Values = field(default_factory=dict)
    progress: Values = field(default_factory=dict)


GROUPS = {"accounts": ACCOUNTS, "signals": SIGNALS, "phases": PHASES, "progress": PROGRESS}
"""The fields of a moment, and the order of their columns."""


WHOLES = ("accounts", "phases")
"""Shares of one whole: a name that a second does not hold had no share in it."""


def history(entries: Iterable[Entry], scope: Scope) -> dict[str, Any]:
    """``{"start", "seconds", "accounts", "signals", "phases", "progress"}``: each of the last four
    a mapping of names to a list of ``seconds`` values, the first of the second ``start`` (UTC).

    A column that would hold nothing is left out; ``start`` is null where there is no second.
    """
    moments = {entry.second.t: moment(entry, scope) for entry in entries}
    start, end = min(moments, default=0), max(moments, default=-1)
    seconds = [moments.get(t) for t in range(start, end + 1)]
    return {
        "start": start if moments else None,
        "seconds": len(seconds),
        **{name: _columns(seconds, name, columns) for name, columns in GROUPS.items()},
    }


def _columns(
    seconds: Sequence[Moment | None], group: str, names: Iterable[str]
) -> dict[str, list[float | None]]:
    rows: list[Mapping[str, float]] = [getattr(s, group) if s else {} for s in seconds]
    found = {name for row in rows for name in row}
    absent = 0.0 if group in WHOLES else None
    return {
        name: [row.get(name, absent if row else None) for row in rows]
        for name in names
        if name in found
    }


def moment(entry: Entry, scope: Scope) -> Moment:
    """One second, as means over what is looked at."""
    parts = list(_parts(entry, scope))
    runs = [run for _, chosen in parts for run, _ in chosen]
    gpus = [row.gpu for row, _ in parts if row.gpu is not None]
    return Moment(
        _accounts(parts, scope),
        _means(map(_signals, gpus)),
        _shares([run.phases for run in runs if run.phases is not None]),
        _means(map(_progress, runs)),
    )


def _parts(entry: Entry, scope: Scope) -> Iterator[Part]:
    for row in entry.second.rows:
        uuid = row.gpu.uuid if row.gpu else None
        if scope.gpu not in (None, uuid):
            continue
        chosen = [
            (run, entry.shares[(uuid, (run.run, run.rank), run.pid)])
            for run in row.runs
            if scope.takes(run)
        ]
        if chosen or (scope.run is None and scope.rank is None):
            yield row, chosen


def _accounts(parts: Sequence[Part], scope: Scope) -> Values:
    """Run view where runs were chosen, else device view; only of GPUs in sight."""
    seen = [(row, chosen) for row, chosen in parts if row.gpu is not None]
    if scope.run is None and scope.rank is None:
        shares = [
            _added((account, share) for (_, account, _), share in device_view(*part).items())
            for part in seen
        ]
    else:
        shares = [
            _added((account, share) for (account, _), share in split.shares.items())
            for _, chosen in seen
            for _, split in chosen
        ]
    return _shares(shares)


def _signals(gpu: GpuSignals) -> Iterator[tuple[str, float | None]]:
    yield "busy", gpu.busy
    yield "sm_active", gpu.sm_active
    yield "memory_controller", gpu.memory_utilization
    yield "sm_clock", _ratio(gpu.sm_mhz, gpu.attainable_sm_mhz)
    yield "memory_clock", _ratio(gpu.mem_mhz, gpu.max_mem_mhz)
    yield "power_w", gpu.power_w
    yield "power_limit_w", gpu.power_limit_w
    yield "temperature_c", gpu.temperature_c
    yield "slowdown_c", gpu.slowdown_c
    yield "pcie_rx", gpu.pcie_rx
    yield "pcie_tx", gpu.pcie_tx


def _progress(run: RunSignals) -> Iterator[tuple[str, float | None]]:
    yield "steps_per_second", run.steps_per_second
    if run.queue is not None:
        yield "ready", run.queue.ready
        yield "capacity", run.queue.capacity
        yield "busy_workers", run.queue.busy_workers
        yield "workers", run.queue.workers


def _ratio(value: float | None, of: float | None) -> float | None:
    return value / of if value is not None and of else None


def _added(pairs: Iterable[tuple[str, float]]) -> Values:
    """The sum by name."""
    out: Values = {}
    for name, value in pairs:
        out[name] = out.get(name, 0.0) + value
    return out


def _shares(parts: Sequence[Mapping[str, float]]) -> Values:
    """The mean of parts of a whole: what one of them does not name, it has none of."""
    total = _added(pair for part in parts for pair in part.items())
    return {name: _short(value / len(parts)) for name, value in total.items()}


def _means(parts: Iterable[Iterable[tuple[str, float | None]]]) -> Values:
    """The mean of each value over those for whom it is known."""
    known: dict[str, list[float]] = {}
    for part in parts:
        for name, value in part:
            if value is not None:
                known.setdefault(name, []).append(value)
    return {name: _short(sum(values) / len(values)) for name, values in known.items()}


def _short(value: float) -> float:
    """Four digits after the point of a share, none of a large number: a drawing needs no more."""
    return round(value, 4) if abs(value) < 100 else round(value)
