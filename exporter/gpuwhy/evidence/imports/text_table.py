"""What the readers of logs share: numbers with units, times of day, a bound on the size."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone

HELD_S = 15
"""A value stands until the next one, at most so long: after that the log has a gap."""

_NUMBER = re.compile(r"^\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z%/]*)\s*$")
_SCALE = {
    "": 1.0, "%": 0.01, "w": 1.0, "mw": 1e-3, "mhz": 1.0, "c": 1.0, "mib": float(1 << 20),
    "kib": 1024.0, "gib": float(1 << 30), "b": 1.0, "mb/s": 1e6,
}  # fmt: skip


MOST = 1e18
"""Beyond any count of bytes: a larger number is damage."""


class LogError(Exception):
    """A log cannot be read: the message names the file, the reason and the remedy."""


def csv_rows(text: str, name: str, *, skip_blanks: bool = False) -> list[list[str]]:
    """The cells of a CSV text; raises LogError where it is none."""
    try:
        return list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=skip_blanks))
    except csv.Error as error:
        raise LogError(f"{name} is damaged: {error}; copy it again") from error


def number(text: str) -> float | None:
    """``87 %`` is 0.87, ``1024 MiB`` are bytes; None for ``[N/A]``, ``-`` and the like."""
    found = _NUMBER.match(text)
    if not found or found[2].lower() not in _SCALE:
        return None
    value = float(found[1]) * _SCALE[found[2].lower()]
    return value if abs(value) < MOST else None


def moment(text: str, form: str, zone_s: float) -> float | None:
    """UTC Unix seconds of a local time; None where the text is none."""
    try:
        local = datetime.strptime(text.strip(), form).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return (local - timedelta(seconds=zone_s)).timestamp()


def each_second(times: Sequence[float]) -> Iterator[tuple[int, float]]:
    """(row, second) for every second that a row stands for: until the next row, at most HELD_S."""
    for row, t in enumerate(times):
        until = times[row + 1] if row + 1 < len(times) else t + 1.0
        for second in range(int(min(max(1.0, round(until - t)), HELD_S))):
            yield row, t + second


_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)|Z|UTC", re.ASCII)


def utc_offset(text: str) -> float:
    """Seconds of ``+02:00``; ValueError for anything else."""
    found = _OFFSET.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is no offset from UTC: write +02:00 or -0700")
    if found[1] is None:
        return 0.0
    seconds = int(found[2]) * 3600 + int(found[3]) * 60
    return float(seconds if found[1] == "+" else -seconds)
