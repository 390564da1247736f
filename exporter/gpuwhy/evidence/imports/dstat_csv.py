"""``dstat --output FILE`` (and dool, pcp-dstat): what the host did, a line each second.

The head has a line of groups (``"total cpu usage",,,,``) above one of columns. Values are per
second; an observation of the host is cumulative, so they are added up.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from gpuwhy.evidence.imports.text_table import LogError, csv_rows, moment, number
from gpuwhy.observe.observation import Observation

CPU = {"usr": "user", "sys": "system", "idl": "idle", "wai": "iowait", "hiq": "irq",
       "siq": "softirq", "stl": "steal"}  # fmt: skip
SUMS = {
    ("dsk/total", "read"): "disk_read_bytes",
    ("dsk/total", "writ"): "disk_write_bytes",
    ("net/total", "recv"): "network_receive_bytes",
    ("net/total", "send"): "network_transmit_bytes",
    ("paging", "in"): "swap_in",
    ("paging", "out"): "swap_out",
    ("system", "int"): "interrupts",
    ("system", "csw"): "context_switches",
}
LEVELS = {
    ("load avg", "1m"): "load1",
    ("load avg", "5m"): "load5",
    ("load avg", "15m"): "load15",
    ("procs", "run"): "running",
    ("procs", "blk"): "blocked",
}


def is_it(head: str) -> bool:
    """Does a text begin like this log?"""
    first = head.lstrip().split("\n", 1)[0].lower()
    return first.startswith(('"dstat', '"dool', '"pcp-dstat', '"pcp dstat'))


def parse(text: str, name: str, zone_s: float, year: int) -> list[Observation]:
    """Observations in the order of time; ``year`` is that of dates without one.

    Raises LogError where there is nothing to be had.
    """
    rows = csv_rows(text, name)
    place = next((i for i, row in enumerate(rows) if _is_columns(row)), None)
    if place is None or place == 0:
        raise LogError(f"{name} has no line of columns: is it cut short?")
    groups = _spread(rows[place - 1])
    columns = [(g, c.strip()) for g, c in zip(groups, rows[place], strict=False)]
    totals: dict[str, float] = {}
    cpu: dict[str, float] = {}
    made: list[Observation] = []
    for cells in rows[place + 1 :]:
        row = dict(zip(columns, cells, strict=False))
        t = _time(row, zone_s, year)
        if t is not None:
            made.append(_observation(t, row, totals, cpu))
    if not made:
        raise LogError(f"{name} holds no line with a time: dstat --time --cpu --disk --output FILE")
    return made


def _is_columns(row: list[str]) -> bool:
    return any(cell.strip() in ("time", "epoch", "usr") for cell in row)


def _spread(groups: list[str]) -> list[str]:
    """A group's name stands above its first column only."""
    spread: list[str] = []
    for group in groups:
        spread.append(group.strip() or (spread[-1] if spread else ""))
    return spread


def _time(row: dict[tuple[str, str], str], zone_s: float, year: int) -> float | None:
    for (_, column), cell in row.items():
        if column == "epoch":
            return number(cell)
        if column == "time":
            for form, shown in (("%Y %d-%m %H:%M:%S", f"{year} {cell}"),
                                ("%Y %b-%d %H:%M:%S", f"{year} {cell}"),
                                ("%Y-%m-%d %H:%M:%S", cell)):  # fmt: skip
                t = moment(shown, form, zone_s)
                if t is not None:
                    return t
    return None


def _observation(
    t: float, row: dict[tuple[str, str], str], totals: dict[str, float], cpu: dict[str, float]
) -> Observation:
    seen: dict[str, Any] = {"t": t, "kind": "host"}
    for (group, column), cell in row.items():
        value = number(cell)
        if value is None:
            continue
        if column in CPU and "cpu" in group:
            cpu[CPU[column]] = cpu.get(CPU[column], 0.0) + value / 100
        elif (group, column) in SUMS:
            key = SUMS[group, column]
            totals[key] = totals.get(key, 0.0) + value
        elif (group, column) in LEVELS:
            seen[LEVELS[group, column]] = value
    seen |= {key: int(value) for key, value in totals.items()}
    return seen | ({"cpu_seconds": dict(cpu)} if cpu else {})


def year_of(ends: float) -> int:
    """The year in which a file was last written."""
    return datetime.fromtimestamp(ends, timezone.utc).year
