"""The source of ``processes`` and ``cgroup``: the jobs of this host and what they use."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

from gpuwhy.observe import identity, namespaces, procfs, secrets
from gpuwhy.observe.census import Census
from gpuwhy.observe.family import Life, Process
from gpuwhy.observe.job_groups import JobGroups
from gpuwhy.observe.jobs import JobTable, Member
from gpuwhy.observe.nccl_ras_pids import RankHere
from gpuwhy.observe.numa import node_of_cpus
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.source_state import SourceState
from gpuwhy.observe.usage import Meter

MOST = 2048
"""Processes observed at most: eight ranks with 128 workers each, twice."""

REFUSED_REMEDY = (
    "run gpuwhy as root or as the job's user; in a container add the capabilities SYS_PTRACE and "
    "DAC_READ_SEARCH"
)
HIDDEN_REMEDY = "run gpuwhy as root and in the host's PID namespace (pid: host)"
INITS = ("tini", "docker-init", "catatonit", "dumb-init")
"""What may stand as PID 1 before a container's main process."""


class ProcessSource:
    """Emits the process table and the control groups of all training jobs in sight.

    ``proc``, ``cgroup_mount`` and ``sys`` are where those file systems are mounted; ``observer``
    and ``parent`` are our own PIDs, which with all below the observer are no job.
    """

    name = "processes"
    period_s = 1.0
    deadline_s = 5.0

    def __init__(
        self,
        *,
        proc: str = "/proc",
        cgroup_mount: str = "/sys/fs/cgroup",
        sys: str = "/sys",
        observer: int | None = None,
        parent: int | None = None,
    ) -> None:
        self.jobs = JobTable(platform.node(), observer, parent)
        self.members: list[Member] = []
        self._census = Census(proc)
        self._groups = JobGroups(proc, cgroup_mount)
        self._meter = Meter()
        self._texts: dict[Life, tuple[object, dict[str, Any]]] = {}
        self._state = SourceState(self.name)
        self._refused: dict[Life, SourceState] = {}
        self._own_pids: dict[Life, int] = {}
        self._node_of_cpus = node_of_cpus(sys)
        self._main = parent
        self._at_home = namespaces.in_host_pids(Path(proc))

    def poll(self, now: float) -> list[Observation]:
        """The jobs at ``now`` (Unix seconds)."""
        holders = self.jobs.holders
        wanted = holders | {member.pid for member in self.members}
        frameworks = holders.isdisjoint(self._census.table)
        table = self._census.update(now, wanted, frameworks)
        members = self.jobs.update(now, table)[:MOST]  # ranks come first
        self.members = sorted(members, key=lambda member: member.life)
        groups = self._groups.poll(now, [table[member.pid] for member in self.members])
        items = [self._item(member, table[member.pid]) for member in self.members]
        self._forget()
        found: Observation = {"t": now, "kind": "processes", "processes": items}
        return [found, *groups, *self._state.report(now, *self._sight()), *self._refusals(now)]

    def ras_addresses(self) -> frozenset[tuple[str, int]]:
        """The ports that the jobs have chosen for NCCL's RAS, where they are not the usual one."""
        envs = (self._census.table[m.pid].env for m in self.members if m.role == "rank")
        found = (identity.ras_address_of(env or {}) for env in envs)
        return frozenset(address for address in found if address is not None)

    def ras_ranks(self) -> list[RankHere]:
        """The ranks here, with the PIDs by which NCCL's RAS knows them."""
        ranks = [member for member in self.members if member.role == "rank"]
        for member in ranks:
            if member.life not in self._own_pids:
                pids = procfs.read_namespace_pids(self._census.base(member.pid))
                self._own_pids[member.life] = pids[-1] if pids else member.pid
        return [RankHere(m.pid, self._own_pids[m.life], m.rank) for m in ranks]

    def close(self) -> None:
        """Nothing is held open."""

    def _item(self, member: Member, process: Process) -> dict[str, Any]:
        item = dict(self._lasting(member, process))
        if process.stat is not None:
            item["ppid"], item["state"] = process.ppid, process.stat.state
            base = self._census.base(member.pid)
            item.update(self._meter.read(member.life, base, process.stat))
            if member.role == "rank" and process.stat.processor in self._node_of_cpus:
                item["numa"] = self._node_of_cpus[process.stat.processor]
        return item

    def _lasting(self, member: Member, process: Process) -> dict[str, Any]:
        """What seldom changes of a process; made anew only when it does."""
        sign = (member, process.name, tuple(process.argv), process.cgroup, process.python)
        known = self._texts.get(member.life)
        if known is None or known[0] != sign:
            known = self._texts[member.life] = sign, describe(member, process)
        return known[1]

    def _sight(self) -> tuple[bool, str, str]:
        if any(member.role == "rank" for member in self.members):
            return True, "", ""
        table = self._census.table
        shut = [p for p in table.values() if p.python is not None and p.env is None]
        if shut:
            why = f"{len(shut)} Python processes of other users may not be looked into"
            return False, why, REFUSED_REMEDY
        if 1 not in table:
            return False, "/proc shows our own processes alone", HIDDEN_REMEDY
        if self._at_home is False and self._is_own_container():
            why = "gpuwhy runs in a PID namespace of its own: jobs outside it are out of sight"
            return False, why, HIDDEN_REMEDY
        return True, "", ""

    def _is_own_container(self) -> bool:
        """Whether we are what it was made for. In somebody's container, beside a job or before it,
        what matters is in sight."""
        first, main = self._census.table.get(1), self._census.table.get(self._main or 0)
        if first is None or main is None:
            return False
        return main is first or (main.ppid == 1 and first.name in INITS)

    def _refusals(self, now: float) -> list[Observation]:
        """A rank whose environment is refused has no name or number but what its script tells."""
        said: list[Observation] = []
        for member in self.members:
            process = self._census.table[member.pid]
            if member.role == "rank" and process.env is None:
                state = self._refused.setdefault(member.life, SourceState(self.name))
                why = f"the environment of PID {member.pid} (user {process.user}) may not be read"
                said += state.report(now, False, why, REFUSED_REMEDY, pid=member.pid)
        return said

    def _forget(self) -> None:
        lives = {member.life for member in self.members}
        self._meter.keep(lives)
        self._own_pids = {life: pid for life, pid in self._own_pids.items() if life in lives}
        self._texts = {life: kept for life, kept in self._texts.items() if life in lives}
        self._refused = {life: kept for life, kept in self._refused.items() if life in lives}


def describe(member: Member, process: Process) -> dict[str, Any]:
    """The fields of a process that seldom change; those that are not known are absent."""
    place = identity.place_of(process.cgroup, process.env or {})
    values: dict[str, Any] = {
        "pid": member.pid,
        "start": round(process.start, 2),
        "role": member.role,
        "run": member.run,
        "rank": member.rank,
        "local_rank": member.local_rank,
        "world_size": member.world_size,
        "rank_pid": member.rank_life[0] if member.rank_life else None,
        "gpus": list(member.gpus) or None,
        "name": process.name,
        "user": process.user,
        "python": process.python or None,
        "script": identity.script_of(process.argv) if process.python is not None else None,
        "command": secrets.mask(process.argv) or None,
        "cgroup": process.cgroup,
        "container": place.container,
        "pod": place.pod,
        "namespace": place.namespace,
    }
    return {name: value for name, value in values.items() if value is not None}
