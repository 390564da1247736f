"""The host's processes, kept up to date at little cost.

Every PID is seen each time, but only those that are young, of interest or due are read: on a host
with thousands of processes a full look takes longer than all of ours.
"""

from __future__ import annotations

import pwd
from collections.abc import Callable, Container
from pathlib import Path

from gpuwhy.observe import cgroup, identity, procfs
from gpuwhy.observe.family import Process, is_multiprocessing_child

YOUNG_S = 60.0
"""What is younger may still become something else (exec), or load its framework."""
STEP_S = 0.5
"""A clock that is only slewed stays closer to the time since boot, which is slewed with it."""
ROUNDS = 30
"""Older ones are read once in so many updates, to notice a reused PID."""
_NAMESPACE = "root/var/run/secrets/kubernetes.io/serviceaccount/namespace"


class Census:
    """The table of processes under ``proc`` (``/proc``, or a tree like it)."""

    def __init__(self, proc: str = "/proc", booted: Callable[[], float] = procfs.booted_at) -> None:
        self.proc = proc
        self.table: dict[int, Process] = {}
        self._boot = procfs.boot_time(proc)
        self._booted, self._clock = booted, booted()
        self._next_look: dict[int, float] = {}
        self._round = 0

    def update(self, now: float, wanted: Container[int], frameworks: bool) -> dict[int, Process]:
        """The table at ``now`` (Unix seconds). ``wanted`` PIDs are read each time and looked at
        whether Python or not; with ``frameworks``, what Python processes have loaded is looked for.
        """
        self._round += 1
        self._follow_clock()
        pids = procfs.pids(self.proc)
        for pid in self.table.keys() - pids:
            self._drop(pid)
        for pid in sorted(pids):
            known = self.table.get(pid)
            if known is None or self._is_due(known, now) or pid in wanted:
                self._read(pid, now, pid in wanted, frameworks)
        return self.table

    def _follow_clock(self) -> None:
        """When the clock is set, every process has started by the new one: else a job would be
        younger than nothing after a step back, and no job for as long."""
        step = self._booted() - self._clock
        if abs(step) < STEP_S:
            return
        self._clock += step
        self._boot += step
        for process in self.table.values():
            process.start += step
            self._next_look[process.pid] += step

    def base(self, pid: int) -> str:
        """The folder of a process."""
        return f"{self.proc}/{pid}"

    def _is_due(self, process: Process, now: float) -> bool:
        young = now - process.start < YOUNG_S
        return young or process.pid % ROUNDS == self._round % ROUNDS

    def _drop(self, pid: int) -> None:
        self.table.pop(pid, None)
        self._next_look.pop(pid, None)

    def _read(self, pid: int, now: float, wanted: bool, frameworks: bool) -> None:
        stat = procfs.read_stat(self.base(pid))
        if stat is None:
            self._drop(pid)
            return
        known = self.table.get(pid)
        if known is None or known.ticks != stat.start:
            start = self._boot + stat.start * procfs.TICK
            known = Process(pid, stat.start, stat.ppid, stat.session, start, "")
            self.table[pid] = known
            self._next_look[pid] = 0.0
        known.ppid, known.session, known.stat = stat.ppid, stat.session, stat
        changed = known.name != stat.name  # renamed, or another program by exec
        known.name = stat.name
        if changed or now >= self._next_look[pid]:
            self._look(known, wanted, frameworks)
            self._next_look[pid] = now + self._pause(known, now)

    def _pause(self, process: Process, now: float) -> float:
        """Until the next look: soon at first, then rarely, and never where all is known."""
        if process.python is None:
            return float("inf")
        age = max(2.0, now - process.start)
        if age > YOUNG_S and (process.framework or is_multiprocessing_child(process, self.table)):
            return float("inf")
        return min(age, YOUNG_S)

    def _look(self, process: Process, wanted: bool, frameworks: bool) -> None:
        """Read what rarely changes in a process's life."""
        base = self.base(process.pid)
        process.argv = procfs.read_argv(base)
        process.python = procfs.read_python(base, process.argv)
        if process.python is None and not wanted:
            return
        process.cgroup = cgroup.path_of(
            cgroup.memberships(procfs.read_text(f"{base}/cgroup") or "")
        )
        process.env = self._environ(base)
        process.user = _user(base)
        if process.python is not None and not process.framework:
            self._look_at_maps(process, base, frameworks)

    def _look_at_maps(self, process: Process, base: str, frameworks: bool) -> None:
        parent = self.table.get(process.ppid)
        if parent is not None and is_multiprocessing_child(process, self.table):
            # Same program as its parent's: reading maps takes milliseconds in a large process.
            process.framework = process.framework or parent.framework
            process.python = process.python if "." in (process.python or "") else parent.python
        elif frameworks or "." not in (process.python or ""):
            loaded = procfs.read_loaded(base)
            process.framework = None if loaded is None else loaded.framework
            if loaded is not None and "." not in (process.python or ""):
                process.python = loaded.python or process.python

    def _environ(self, base: str) -> dict[str, str] | None:
        env = procfs.read_environ(base, identity.VARIABLES)
        if env and "KUBERNETES_SERVICE_HOST" in env and "POD_NAMESPACE" not in env:
            namespace = procfs.read_text(f"{base}/{_NAMESPACE}")
            if namespace and len(namespace) < 64:  # the limit of Kubernetes
                env["POD_NAMESPACE"] = namespace.strip()
        return env


def _user(base: str) -> str | None:
    """The owner's name on this host, or the number where it has none here."""
    try:
        uid = Path(base).stat().st_uid
    except OSError:
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
