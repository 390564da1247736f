"""The control groups that hold the jobs' processes: one observation for each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gpuwhy.observe import cgroup, procfs
from gpuwhy.observe.cadence import Every
from gpuwhy.observe.family import Life, Process
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.source_state import SourceState

MEMBERSHIP_S = 5.0
"""A process seldom moves to another group: its membership is read this often."""

REMEDY = (
    "give the exporter's container the host's cgroup namespace (cgroup: host) and mount "
    "/sys/fs/cgroup read-only"
)


class JobGroups:
    """Finds and reads the groups under ``mount``, or through the root of the processes in them."""

    def __init__(self, proc: str, mount: str) -> None:
        self._proc = Path(proc)
        self._mount = Path(mount)
        self._due = Every(MEMBERSHIP_S)
        self._texts: dict[Life, str] = {}
        self._groups: dict[str, cgroup.Group | None] = {}
        self._state = SourceState("cgroup")

    def poll(self, now: float, processes: Iterable[Process]) -> list[Observation]:
        """Observations of the groups of these processes, and the state of the source. Sets the
        ``cgroup`` of each process."""
        if self._due.due(now):
            self._texts.clear()
            self._groups.clear()
        texts: dict[Life, str] = {}
        pids: dict[str, list[int]] = {}
        for process in processes:
            text = texts[process.life] = self._text(process)
            pids.setdefault(text, []).append(process.pid)
        self._texts = texts
        found = [(self._group(text, those[0]), those) for text, those in pids.items()]
        observations = [
            cgroup.observe(group, sorted(those), now) for group, those in found if group is not None
        ]
        return observations + self._state.report(now, *self._sight([group for group, _ in found]))

    def _text(self, process: Process) -> str:
        """Its /proc/PID/cgroup: equal text is the same group."""
        known = self._texts.get(process.life)
        if known is None:
            known = procfs.read_text(self._proc / str(process.pid) / "cgroup") or ""
            process.cgroup = cgroup.path_of(cgroup.memberships(known)) or process.cgroup
        return known

    def _group(self, text: str, pid: int) -> cgroup.Group | None:
        if text not in self._groups:
            members = cgroup.memberships(text)
            self._groups[text] = cgroup.find(pid, members, self._proc, self._mount)
        return self._groups[text]

    def _sight(self, groups: list[cgroup.Group | None]) -> tuple[bool, str, str]:
        if any(groups) or (not groups and cgroup.version(self._mount) is not None):
            return True, "", ""
        if groups:
            return False, "the control groups of the jobs are not in sight", REMEDY
        return False, f"no control groups are mounted at {self._mount}", REMEDY
