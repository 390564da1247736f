"""``nvidia-smi dmon``, best with ``-o DT``: one line for each GPU and second.

Columns depend on the options and the driver; two lines that begin with ``#`` name them and their
units, and come again every screen.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from gpuwhy.evidence.imports.text_table import LogError, each_second, moment, number
from gpuwhy.observe.observation import Observation

FIELDS = {
    "pwr": ("power_w", 1.0), "gtemp": ("temperature_c", 1.0),
    "mtemp": ("memory_temperature_c", 1.0), "sm": ("utilization", 0.01),
    "mem": ("memory_utilization", 0.01), "mclk": ("mem_mhz", 1.0),
    "pclk": ("sm_mhz", 1.0), "fb": ("memory_used", float(1 << 20)),
}  # fmt: skip
"""Column -> field and factor. ``sm`` is the utilisation of nvidia-smi, not SM activity."""


def is_it(head: str) -> bool:
    """Does a text begin like this log?"""
    first = next((line for line in head.splitlines() if line.strip()), "")
    words = first.replace("#", "# ").split()
    return first.startswith("#") and "gpu" in words and ("sm" in words or "pwr" in words)


def parse(text: str, name: str, zone_s: float, ends: float) -> list[Observation]:
    """Observations in the order of time. Lines without times are a second apart and end at
    ``ends``. Raises LogError where there is nothing to be had."""
    by_gpu: dict[int, list[tuple[float | None, dict[str, str]]]] = defaultdict(list)
    head: list[str] = []
    for line in text.splitlines():
        words = line.replace("#", "# ", 1).split()
        if line.startswith("#"):
            head = words[1:] if "gpu" in words else head
            continue
        if len(words) != len(head):
            continue
        row = dict(zip(head, words, strict=True))
        index = number(row.get("gpu", ""))
        if index is not None:
            by_gpu[int(index)].append((_time(row, zone_s), row))
    if not by_gpu:
        raise LogError(f"{name} holds no line of a GPU")
    made = [seen for index, rows in by_gpu.items() for seen in _gpu(index, rows, ends)]
    return sorted(made, key=lambda seen: float(seen["t"]))


def _time(row: dict[str, str], zone_s: float) -> float | None:
    date, clock = row.get("Date"), row.get("Time")
    return moment(f"{date} {clock}", "%Y%m%d %H:%M:%S", zone_s) if date and clock else None


def _gpu(
    index: int, rows: list[tuple[float | None, dict[str, str]]], ends: float
) -> list[Observation]:
    uuid = f"gpu-{index}"
    last = len(rows) - 1
    times = [ends - (last - i) if t is None else t for i, (t, _) in enumerate(rows)]
    info: Observation = {"t": times[0], "kind": "gpu_info", "uuid": uuid, "gpu": index}
    samples = [_sample(uuid, row) for _, row in rows]
    return [info, *({**samples[i], "t": t} for i, t in each_second(times))]


def _sample(uuid: str, row: dict[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": "gpu", "uuid": uuid}
    for column, (key, factor) in FIELDS.items():
        value = number(row.get(column, ""))
        if value is not None:
            made[key] = value * factor
    return made
