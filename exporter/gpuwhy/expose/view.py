"""The view: everything that one exposition is made of, as plain data at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuwhy.observe.observation import Observation
from gpuwhy.signals.row import GpuRow, GpuSignals, RunSignals, Second

RunOn = tuple[str | None, str, int | None]
"""One rank of a run on one GPU: (uuid or None, run, rank)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A GPU's other labels, and when it was last seen."""

    t: float
    gpu: str
    mig: str


@dataclass(frozen=True, slots=True)
class Accounts:
    """A copy of the book's totals, in GPU-seconds; keys as in ``ledger.book``."""

    device: Mapping[Any, float] = field(default_factory=dict)
    run: Mapping[Any, float] = field(default_factory=dict)
    observed: Mapping[str, float] = field(default_factory=dict)
    held: Mapping[Any, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Self:
    """What the exporter knows of itself."""

    version: str = ""
    python: str = ""
    recorded: bool = False
    window_s: float = 60.0
    gpu_hour_price: float | None = None
    overhead_limit: float | None = None
    notifications: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)  # series, by family
    failures: Mapping[str, int] = field(default_factory=dict)  # scrapes, by family


@dataclass(frozen=True, slots=True)
class View:
    """``now`` is the time of the scrape; ``second`` is None where there is none fresh enough."""

    now: float
    second: Second | None = None
    recent: tuple[Second, ...] = ()
    accounts: Accounts = field(default_factory=Accounts)
    seen: Mapping[RunOn, float] = field(default_factory=dict)  # ranks to expose: last seen at
    gpus: Mapping[str, Seen] = field(default_factory=dict)  # by uuid
    known: Mapping[str, Seen] = field(default_factory=dict)  # those that are gone as well
    facts: Mapping[str, Mapping[str, Observation]] = field(default_factory=dict)
    verdicts: Mapping[str, Any] | None = None
    last_t: int | None = None  # the last complete second, fresh or not
    left_out: int = 0  # ranks and GPUs present, beyond what is exposed
    about: Self = field(default_factory=Self)

    def gpu(self, uuid: str | None) -> tuple[str, str, str]:
        """Values of the GPU labels; all empty for a job whose GPU is not in sight."""
        if uuid is None:
            return ("", "", "")
        known = self.gpus.get(uuid) or self.known.get(uuid)
        return (uuid, known.gpu, known.mig) if known else (uuid, "", "")

    def run(self, on: RunOn) -> tuple[str, str, str, str, str]:
        """Values of the RUN labels."""
        uuid, run, rank = on
        return (*self.gpu(uuid), run, "" if rank is None else str(rank))

    def gpu_rows(self) -> Iterator[tuple[tuple[str, str, str], GpuSignals, GpuRow]]:
        """The GPUs of the last second with their labels."""
        for row in self.second.rows if self.second else ():
            if row.gpu is not None and row.gpu.uuid in self.gpus:
                yield self.gpu(row.gpu.uuid), row.gpu, row

    def ranks(self) -> Iterator[tuple[RunOn, RunSignals]]:
        """The ranks of the last second that are to be exposed."""
        yield from _ranks(self.second, self.seen)

    def ranks_over(self, seconds: float) -> dict[RunOn, list[RunSignals]]:
        """The last ``seconds`` of each rank that is present now, oldest first."""
        last = self.second.t if self.second else 0
        found: dict[RunOn, list[RunSignals]] = {on: [] for on, _ in self.ranks()}
        for second in self.recent:
            if last - seconds < second.t <= last:
                for on, signals in _ranks(second, self.seen):
                    if on in found:
                        found[on].append(signals)
        return found

    def fact(self, kind: str, key: str = "") -> Mapping[str, Any]:
        """The last observation of this kind, as it was read; empty where there is none."""
        return self.facts.get(kind, {}).get(key, {})


def _ranks(
    second: Second | None, exposed: Mapping[RunOn, float]
) -> Iterator[tuple[RunOn, RunSignals]]:
    for row in second.rows if second else ():
        for signals in row.runs:
            on = (row.gpu.uuid if row.gpu else None, signals.run, signals.rank)
            if on in exposed:
                yield on, signals
