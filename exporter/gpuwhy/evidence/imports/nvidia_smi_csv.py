"""``nvidia-smi --query-gpu=... --format=csv -l N``: one line for each GPU and time.

The header names the fields and their units (``utilization.gpu [%]``); with ``nounits`` the units
stand there alone. Fields: ``nvidia-smi --help-query-gpu``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from gpuwhy.evidence.imports.text_table import (
    LogError,
    csv_rows,
    each_second,
    moment,
    number,
)
from gpuwhy.observe.observation import Observation

FIELDS = {
    "utilization.gpu": "utilization",
    "utilization.memory": "memory_utilization",
    "clocks.sm": "sm_mhz",
    "clocks.current.sm": "sm_mhz",
    "clocks.mem": "mem_mhz",
    "clocks.current.memory": "mem_mhz",
    "power.draw.instant": "power_w",
    "power.draw": "power_mean_w",
    "power.draw.average": "power_mean_w",
    "temperature.gpu": "temperature_c",
    "temperature.memory": "memory_temperature_c",
    "memory.used": "memory_used",
}
LIMITS = {
    "power.limit": "power_limit_w",
    "enforced.power.limit": "power_limit_w",
    "power.default_limit": "power_default_w",
    "power.max_limit": "power_max_w",
    "clocks.max.sm": "max_sm_mhz",
    "clocks.max.memory": "max_mem_mhz",
    "clocks.applications.graphics": "application_sm_mhz",
}
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
PLAIN_UNITS = {"%": 0.01, "MiB": float(1 << 20)}  # of a header with ``nounits``


def is_it(head: str) -> bool:
    """Does a text begin like this log?"""
    first = head.lstrip().split("\n", 1)[0]
    asked = ("utilization.gpu", "power.draw", "gpu_uuid")
    return any(field in first for field in asked)


def parse(text: str, name: str, zone_s: float) -> list[Observation]:
    """Observations in the order of time; raises LogError where there is nothing to be had."""
    rows = csv_rows(text, name, skip_blanks=True)
    head, units = _header(rows[0] if rows else [])
    if "timestamp" not in head:
        raise LogError(
            f"{name} has no column timestamp, so its lines have no time: query "
            "timestamp,index,uuid,utilization.gpu,power.draw,... with --format=csv"
        )
    if not any(field in head for field in FIELDS):
        raise LogError(
            f"{name} tells nothing of a GPU's work: query "
            "timestamp,index,uuid,utilization.gpu,power.draw,... with --query-gpu"
        )
    by_gpu: dict[str, list[tuple[float, dict[str, str]]]] = defaultdict(list)
    for cells in rows[1:]:
        row = dict(zip(head, cells, strict=False))
        t = moment(row.get("timestamp", ""), "%Y/%m/%d %H:%M:%S.%f", zone_s)
        if t is not None:
            by_gpu[row.get("uuid") or f"gpu-{row.get('index', '0')}"].append((t, row))
    if not by_gpu:
        raise LogError(f"{name} holds no line with a time")
    made = [seen for uuid, own in by_gpu.items() for seen in _gpu(uuid, own, units)]
    return sorted(made, key=lambda seen: float(seen["t"]))


def _header(cells: list[str]) -> tuple[list[str], dict[str, str]]:
    """Names of the columns, and the unit of each."""
    parts = [cell.strip().partition(" [") for cell in cells]
    return [p[0] for p in parts], {p[0]: p[2].rstrip("]") for p in parts if p[2]}


def _gpu(
    uuid: str, rows: list[tuple[float, dict[str, str]]], units: dict[str, str]
) -> list[Observation]:
    first, start = rows[0][1], rows[0][0]
    info: Observation = {"t": start, "kind": "gpu_info", "uuid": uuid}
    if first.get("name") or first.get("gpu_name"):
        info["name"] = first.get("name") or first.get("gpu_name")
    index = number(first.get("index", ""))
    total = _value("memory.total", first, units)
    info |= {} if index is None else {"gpu": int(index)}
    info |= {} if total is None else {"memory_total": int(total)}
    limits: Observation = {"t": start, "kind": "gpu_limits", "uuid": uuid}
    for field, key in LIMITS.items():
        value = _value(field, first, units)
        if value is not None:
            limits.setdefault(key, value)
    samples = [_sample(uuid, row, units) for _, row in rows]
    held = [{**samples[i], "t": t} for i, t in each_second([t for t, _ in rows])]
    return [info, limits, *held]


def _sample(uuid: str, row: dict[str, str], units: dict[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": "gpu", "uuid": uuid}
    for field, key in FIELDS.items():
        value = _value(field, row, units)
        if value is not None:
            made.setdefault(key, int(value) if key == "memory_used" else value)
    for field in REASONS:
        try:
            reasons = int(row.get(field, ""), 16)
        except ValueError:
            continue
        if 0 <= reasons < 1 << 64:
            made.setdefault("reasons", reasons)
    return made


def _value(field: str, row: dict[str, str], units: dict[str, str]) -> float | None:
    cell = row.get(field, "")
    value = number(cell)
    if value is not None and cell.strip().replace(".", "", 1).isdigit():
        value *= PLAIN_UNITS.get(units.get(field, ""), 1.0)
    return value
