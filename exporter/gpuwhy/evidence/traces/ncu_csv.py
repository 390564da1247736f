"""Nsight Compute's CSV (``ncu --csv``): kernels one by one, and what each of them is bound by.

Both pages are read: ``details`` (one row for each metric, with words) and ``raw`` (one row for
each kernel, a second header line with units). What ncu and the profiled program print around the
table is passed over.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuwhy.evidence.traces.opened import pieces
from gpuwhy.evidence.traces.trace import TraceError

MOST_BYTES = 1 << 30
MOST = 1e30
"""Beyond any counter: a larger number, infinite ones too, is damage."""

MEMORY = (
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "Memory Throughput",
    "Memory [%]",
)
COMPUTE = (
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "Compute (SM) Throughput",
    "SM [%]",
)
DRAM = (
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "DRAM Throughput",
)
DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg", "Duration")
OCCUPANCY = (
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "Achieved Occupancy",
)
LIMIT = ("sm__maximum_warps_per_active_cycle_pct", "Theoretical Occupancy")
WAVES = ("launch__waves_per_multiprocessor", "Waves Per SM")

_TIMES = {"second": 1.0, "s": 1.0, "msecond": 1e-3, "ms": 1e-3, "usecond": 1e-6, "us": 1e-6,
          "nsecond": 1e-9, "ns": 1e-9}  # fmt: skip
_STALL = re.compile(
    r"smsp__average_warps?_(?:latency_)?issue_stalled_(\w+?)(?:_per_issue_active)?(?:\.ratio)?$"
    r"|smsp__average_warps_issue_stalled_(\w+?)_per_issue_active"
    r"|smsp__pcsamp_warps_issue_stalled_(\w+)$"
)
_HEADS = ("Kernel Name", "ID")


@dataclass(slots=True)
class Kernel:
    """One launch. Metrics have their value and unit, by the name that the file uses."""

    name: str
    grid: str = ""
    block: str = ""
    device: str = ""
    metrics: dict[str, tuple[float, str]] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)  # what ncu's own rules said

    def percent(self, names: Sequence[str]) -> float | None:
        """A metric in percent, as a share."""
        found = next((self.metrics[n] for n in names if n in self.metrics), None)
        return None if found is None or found[1] not in ("%", "") else found[0] / 100

    def value(self, names: Sequence[str]) -> float | None:
        """A metric as it stands."""
        found = next((self.metrics[n] for n in names if n in self.metrics), None)
        return None if found is None else found[0]

    @property
    def duration_s(self) -> float | None:
        """How long it ran, alone on the GPU: for comparing only."""
        found = next((self.metrics[n] for n in DURATION if n in self.metrics), None)
        return None if found is None or found[1] not in _TIMES else found[0] * _TIMES[found[1]]

    @property
    def top_stall(self) -> tuple[str, float] | None:
        """The reason for which most warps waited, and the cycles (or samples) that it cost."""
        found = [
            (next(g for g in match.groups() if g), value)
            for name, (value, _) in self.metrics.items()
            if (match := _STALL.match(name))
        ]
        stalls = [one for one in found if one[0] not in ("selected", "not_selected")]
        return max(stalls, key=lambda one: one[1]) if stalls else None


def is_csv(head: bytes) -> bool:
    """Does a text begin like ncu's CSV, with or without what it prints before?"""
    text = head.decode("utf-8", "replace")
    return any(_is_head(line) for line in text.splitlines()) or text.startswith("==PROF==")


def read(path: Path) -> list[Kernel]:
    """The kernels of a file, plain or gzipped; raises TraceError where there are none."""
    text, size = [], 0
    for piece in pieces(path):
        size += len(piece)
        if size > MOST_BYTES:
            raise TraceError(f"{path} is larger than {MOST_BYTES >> 30} GB: profile fewer kernels")
        text.append(piece)
    return parse("".join(text), path.name)


def parse(text: str, name: str) -> list[Kernel]:
    """The kernels of a CSV text; raises TraceError where there are none."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if _is_head(line)), None)
    if start is None:
        raise TraceError(f"{name} is no CSV of Nsight Compute: it has no line with Kernel Name")
    table = [line for line in lines[start:] if line.startswith('"')]
    try:
        rows = list(csv.reader(io.StringIO("\n".join(table), newline="")))
    except csv.Error as error:
        raise TraceError(f"{name} is damaged: {error}") from error
    head, body = rows[0], rows[1:]
    kernels = list(_details(head, body) if "Metric Name" in head else _raw(head, body))
    if not kernels:
        raise TraceError(
            f"{name} holds no kernel: ncu profiled none (its filters may be too narrow)"
        )
    return kernels


def _is_head(line: str) -> bool:
    return line.startswith('"') and all(f'"{head}"' in line for head in _HEADS)


def _details(head: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[Kernel]:
    """One row for each metric or rule of a kernel; those of one kernel share an ID."""
    kernels: dict[tuple[str, str], Kernel] = {}
    for cells in body:
        row = dict(zip(head, cells, strict=False))
        key = (row.get("ID", ""), row.get("Process ID", ""))
        kernel = kernels.setdefault(key, _kernel(row))
        value = _number(row.get("Metric Value", ""))
        if row.get("Metric Name") and value is not None:
            kernel.metrics.setdefault(row["Metric Name"], (value, row.get("Metric Unit", "")))
        if row.get("Rule Description"):
            kernel.rules.append(row["Rule Description"])
    yield from kernels.values()


def _raw(head: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[Kernel]:
    """One row for each kernel; the line below the head holds the units."""
    units = dict(zip(head, body[0], strict=False)) if body and not body[0][0] else {}
    for cells in body[1 if units else 0 :]:
        row = dict(zip(head, cells, strict=False))
        kernel = _kernel(row)
        for name, cell in row.items():
            if (value := _number(cell)) is not None:
                kernel.metrics[name] = (value, units.get(name, ""))
        yield kernel


def _kernel(row: Mapping[str, str]) -> Kernel:
    name = row.get("Kernel Name") or "kernel"
    return Kernel(name, row.get("Grid Size", ""), row.get("Block Size", ""), row.get("Device", ""))


def _number(text: str) -> float | None:
    """``1,234.5``; some locales group thousands. None for ``(!) nan``, ncu's word for a
    counter that it could not read, and for whatever else is no number."""
    try:
        value = float(text.replace(",", "").replace(" ", "").replace("\u202f", ""))
    except ValueError:
        return None
    return value if abs(value) < MOST else None
