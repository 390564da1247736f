"""The PID namespace that we run in: which processes can be in sight at all."""

from __future__ import annotations

from pathlib import Path

INITIAL_PID = "pid:[4026531836]"
"""/proc/self/ns/pid in the host's own PID namespace (Linux, include/linux/proc_ns.h)."""


def in_host_pids(proc: Path) -> bool | None:
    """Whether we are in the host's own PID namespace; None where the kernel does not tell."""
    try:
        return str((proc / "self/ns/pid").readlink()) == INITIAL_PID
    except OSError:
        return None
