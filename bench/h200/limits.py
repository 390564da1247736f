"""CPU limits for a job: a cgroup of our own, version 2 or 1, made and removed."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


class Limits:
    """One job's cgroup. Raises ``OSError`` where the controllers cannot be had."""

    def __init__(self, name: str, root: Path = ROOT) -> None:
        self.version = 2 if (root / "cgroup.controllers").exists() else 1
        if self.version == 2:
            control = root / "cgroup.subtree_control"
            for controller in ("cpu", "cpuset"):
                if controller not in control.read_text().split():
                    control.write_text(f"+{controller}")
            self.cpu = self.cpuset = root / f"bench-{name}"
        else:
            self.cpu, self.cpuset = (
                root / "cpu" / f"bench-{name}",
                root / "cpuset" / f"bench-{name}",
            )
        for folder in {self.cpu, self.cpuset}:
            folder.mkdir(exist_ok=True)
        if self.version == 1:
            for file in ("cpuset.cpus", "cpuset.mems"):
                parent = self.cpuset.parent / file
                (self.cpuset / file).write_text(parent.read_text())

    def join(self, pid: int) -> None:
        """Move a process in; its later children follow."""
        for folder in {self.cpu, self.cpuset}:
            (folder / "cgroup.procs").write_text(str(pid))

    def quota(self, cores: float) -> None:
        """Allow ``cores`` cores of CPU time in each period."""
        quota_us = max(int(cores * PERIOD_US), 1000)
        if self.version == 2:
            (self.cpu / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (self.cpu / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.cpu / "cpu.cfs_quota_us").write_text(str(quota_us))

    def cores(self, cores: list[int]) -> None:
        """Allow these cores only."""
        (self.cpuset / "cpuset.cpus").write_text(",".join(map(str, cores)))

    def remove(self) -> None:
        """Remove the groups once their processes are gone."""
        for folder in {self.cpu, self.cpuset}:
            for _ in range(20):
                with contextlib.suppress(OSError):
                    folder.rmdir()
                if not folder.exists():
                    break
                time.sleep(0.1)


def tuned(cores: float, share: float, wanted: float) -> float:
    """The quota that should lose ``wanted`` where ``cores`` lost ``share``.

    A throttled job's rate is in proportion to its quota.
    """
    return cores * min(max((1 - wanted) / max(1 - share, 0.02), 0.3), 2.0)


def own_cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0))
