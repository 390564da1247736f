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

REASONS: dict[str, tuple[str, ...]] = {
    "stalled": ("peer-missing", "no-progress"),
    "comm": ("waiting", "transfer"),
    "shared": ("other-process",),
    "throttle": ("limit-below-default", "at-default-limit", "thermal", "hardware"),
    "startup": ("", "compile", "import"),
    "quota": ("cpu-quota", "affinity", "host-cpu"),
    "copy": ("host-to-device", "device-to-host", "both-ways"),
    "data": ("waiting", "inline", "sampler", "worker-start", "straggler"),
    "host": ("python", "logging", "garbage-collection", "synchronize", "straggler"),
    "unknown": (
        "no-evidence",
        "no-stacks",
        "no-gpm",
        "no-sm-share",
        "no-cgroup",
        "no-processes",
        "no-utilization",
        "no-limits",
        "thread-wait",
    ),
}
"""Every reason an account may carry; the other accounts have none (\"\")."""

CAUSES = ("data", "launch", "host", "comm", "shared", "copy", "throttle", "quota", "stalled")
"""Accounts that are a cause; ``none`` and ``unknown`` are the other two answers."""
