"""The accounts of GPU time: their names, their order, and what they are kept for."""

from __future__ import annotations

NO_JOB = ("free", "stalled")
BUSY = ("comm", "shared", "throttle", "compute")
PAUSES = ("startup", "checkpoint", "evaluation")
IDLE = (*PAUSES, "quota", "copy", "data", "comm", "host", "launch", "unknown")

ACCOUNTS = (
    "free",
    "stalled",
    "comm",
    "shared",
    "throttle",
    "compute",
    *PAUSES,
    "quota",
    "copy",
    "data",
    "host",
    "launch",
    "unknown",
)
"""Every account once, in the order in which a second is taken apart."""

CAUSES = ("data", "launch", "host", "comm", "shared", "copy", "throttle", "quota", "stalled")
"""Accounts that are a cause; ``none`` and ``unknown`` are the other two answers."""
