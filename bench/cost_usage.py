"""What processes use, and what an exporter answers."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from typing import Any

import psutil


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and of the children that it has reaped; 0 once it is gone."""
    with contextlib.suppress(psutil.Error):
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0


def pss(pids: set[int]) -> int | None:
    """Bytes of proportional set size of these processes; None where the kernel tells of none."""
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.Error, OSError, AttributeError):
            found.append(int(psutil.Process(pid).memory_full_info().pss))
    return sum(found) or None


def answer(url: str, timeout_s: float = 2.0) -> dict[str, Any] | None:
    """The JSON object at ``url``; None where there is no answer."""
    with contextlib.suppress(OSError, ValueError):
        with urllib.request.urlopen(url, timeout=timeout_s) as response:
            found = json.load(response)
        return found if isinstance(found, dict) else None
    return None
