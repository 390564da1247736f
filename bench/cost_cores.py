"""Cores of their own for the job and for who watches it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOPOLOGY = Path("/sys/devices/system/cpu")
JOB_SHARE = 0.7


@dataclass(frozen=True)
class Shares:
    """CPU numbers: the job's, the exporter's, and those of the measurement itself."""

    job: list[int]
    exporter: list[int]
    bench: list[int]


def split(groups: Sequence[Sequence[int]]) -> Shares:
    """Share out physical cores (lists of their hardware threads), none to two.

    Where there are fewer than three, exporter and measurement share one; raises ``ValueError``
    where the job cannot be kept apart from them.
    """
    if len(groups) < 2:
        raise ValueError("job and exporter need a core each: this machine allows one")
    job = min(max(int(len(groups) * JOB_SHARE), 1), len(groups) - 1)
    rest = len(groups) - job
    own = max(rest // 4, 1) if rest > 1 else 0
    exporter = groups[job : len(groups) - own]
    return Shares(_flat(groups[:job]), _flat(exporter), _flat(groups[-own:] if own else exporter))


def physical(allowed: Sequence[int], root: Path = TOPOLOGY) -> list[list[int]]:
    """The allowed CPUs by physical core; each is taken for one where the kernel does not say."""
    groups: dict[str, list[int]] = {}
    for cpu in sorted(allowed):
        try:
            key = (root / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip()
        except OSError:
            key = str(cpu)
        groups.setdefault(key, []).append(cpu)
    return list(groups.values())


def here() -> Shares:
    """Of the CPUs that this process may use."""
    return split(physical(sorted(os.sched_getaffinity(0))))


def _flat(groups: Sequence[Sequence[int]]) -> list[int]:
    return sorted(cpu for group in groups for cpu in group)
