"""The thresholds as ``alerting/thresholds.yml`` has them, checked for names and kinds."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parents[1] / "thresholds.yml"
DURATION = re.compile(r"(\d+(ms|s|m|h|d|w|y))+")


class ThresholdError(Exception):
    """The file cannot be used; the message names the key."""


@dataclass(frozen=True)
class Thresholds:
    """Field names are the keys of the file, where each number has its reason."""

    window: str
    pending: str  # "for" in the file, a word of Python's own
    keep_firing_for: str
    health_for: str
    idle_window: str
    recent: str
    past: str
    cause_ratio: float
    throttle_ratio: float
    unknown_ratio: float
    warning_gpus: float
    critical_gpus: float
    wave_strength_ratio: float
    wave_depth_ratio: float
    lockstep_ratio: float
    lockstep_period_ratio: float
    slower_ratio: float
    idle_ratio: float
    memory_full_ratio: float
    no_work_ratio: float
    link_busy_ratio: float
    nvlink_errors: float
    pcie_replays: float
    critical_xids: list[int]
    lag_seconds: float
    overhead_factor: float
    runbook_base_url: str
    grafana_base_url: str


DURATIONS = (
    "window",
    "pending",
    "keep_firing_for",
    "health_for",
    "idle_window",
    "recent",
    "past",
)
URLS = ("runbook_base_url", "grafana_base_url")


def load(path: Path = FILE) -> Thresholds:
    """Read the file. Raises ThresholdError."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise ThresholdError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise ThresholdError(f"{path}: keys and values are wanted")
    found = {"pending" if key == "for" else key: value for key, value in found.items()}
    known = [field.name for field in dataclasses.fields(Thresholds)]
    if set(found) != set(known):
        odd = ", ".join(sorted(map(str, set(found) ^ set(known))))
        raise ThresholdError(f"{path}: unknown or missing: {odd}")
    for key, value in found.items():
        _check(path, key, value)
    return Thresholds(**found)


def _check(path: Path, key: str, value: Any) -> None:
    if key in DURATIONS:
        good = isinstance(value, str) and DURATION.fullmatch(value) is not None
    elif key in URLS:
        good = isinstance(value, str) and re.match(r"https?://[^/]", value) is not None
    elif key == "critical_xids":
        good = isinstance(value, list) and all(isinstance(xid, int) for xid in value)
    else:
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12
    if not good:
        raise ThresholdError(f"{path}: {key}: {value!r} is not of the right kind")
