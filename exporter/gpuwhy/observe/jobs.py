"""The life of jobs, in one place: ranks, their workers, children and launchers.

A rank is a Python process that the driver lists on a GPU. Where nothing is listed (no driver, or
another PID namespace) it is one that has loaded a training framework. Everything below a rank is a
worker (``multiprocessing`` made it: DataLoader workers) or another child. A process is known by its
PID *and* start, so a reused PID is a new one. Names and numbers, once given, stay for a life.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gpuwhy.observe import identity
from gpuwhy.observe.family import (
    WORKER_NAME,
    Life,
    Process,
    Table,
    descendants,
    is_multiprocessing_child,
)
from gpuwhy.observe.ranks import Group, candidates, groups, numbers, script_run, signed_run

SETTLED_S = 2.0
"""A rank must have lived this long: what is shorter is a check, not a job."""

Held = Mapping[int, tuple[str, ...]]
"""PID -> the GPUs on which the driver lists it."""


@dataclass(frozen=True, slots=True)
class Member:
    """A process of a job (or a tenant of a GPU) and what it is there."""

    life: Life
    role: str  # "rank", "worker", "child", "launcher", "tenant"
    run: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    rank_life: Life | None = None  # the rank that it belongs to; its own for a rank
    gpus: tuple[str, ...] = ()

    @property
    def pid(self) -> int:
        return self.life[0]


class JobTable:
    """Feed it who holds which GPU and the host's processes; it answers who is what.

    ``observer`` and everything below it, and its parent, are us and never part of a job.
    """

    def __init__(self, host: str, observer: int | None = None, parent: int | None = None) -> None:
        self._host = host
        self._observer = {pid for pid in (observer,) if pid is not None}
        self._ours = self._observer | {pid for pid in (parent,) if pid is not None}
        self._listed: dict[str, frozenset[int]] = {}
        self._workers: set[int] = set()
        self._have_held: set[Life] = set()
        self._runs: dict[Life, str] = {}
        self._members: dict[Life, Member] = {}

    def gpu_processes(self, uuid: str, pids: Iterable[int]) -> None:
        """The driver lists these processes on a GPU, and no other."""
        # A new table each time: this comes from another thread than ``update``.
        self._listed = {**self._listed, uuid: frozenset(pids)}

    def worker_seen(self, pid: int) -> None:
        """The stack of a process shows that it is a DataLoader's worker, whatever its name."""
        self._workers = self._workers | {pid}

    @property
    def holders(self) -> frozenset[int]:
        """All listed processes, in sight or not."""
        return frozenset().union(*self._listed.values())

    def update(self, now: float, table: Table) -> list[Member]:
        """Everyone of interest among the processes of the host at ``now`` (Unix seconds)."""
        ours = self._ours | descendants(table, self._observer).keys()
        table = {pid: process for pid, process in table.items() if pid not in ours}
        held = self._held(table)
        settled = {pid for pid, process in table.items() if now - process.start >= SETTLED_S}
        members = self._ranks(table, held, settled)
        members += self._below(table, members, held)
        known = {member.pid for member in members}
        members += [
            Member(table[pid].life, "tenant", self._run(Group(table[pid], [table[pid]])), gpus=gpus)
            for pid, gpus in held.items()
            if pid in settled and pid not in known
        ]
        self._remember(table, members)
        return members

    def _held(self, table: Table) -> Held:
        held: dict[int, tuple[str, ...]] = {}
        for uuid, pids in sorted(self._listed.items()):
            for pid in pids & table.keys():
                held[pid] = (*held.get(pid, ()), uuid)
        self._have_held |= {table[pid].life for pid in held}
        return held

    def _ranks(self, table: Table, held: Held, settled: set[int]) -> list[Member]:
        """The ranks, and the launchers above them."""
        # Who held a GPU stays a rank while it lives: the driver's list has gaps.
        holders = {pid for pid, process in table.items() if process.life in self._have_held}
        members: list[Member] = []
        found = candidates(table, holders, settled)
        for group in groups(table, found, holders, self._workers):
            run = self._run(group)
            members += [_rank(process, run, held.get(process.pid, ())) for process in group.ranks]
            if group.root not in group.ranks:
                gpus = held.get(group.root.pid, ())
                members.append(Member(group.root.life, "launcher", run, gpus=gpus))
        return self._numbered(table, members)

    def _run(self, group: Group) -> str:
        """A run keeps its name: while a rank of it lives, and while what starts its ranks does."""
        before = [self._members[p.life].run for p in group.ranks if p.life in self._members]
        kept = next((run for run in before if run is not None), self._runs.get(group.root.life))
        name = kept or signed_run(group, self._host) or self._own_name(group)
        self._runs[group.root.life] = name
        return name

    def _own_name(self, group: Group) -> str:
        """Script and start; with the PID where another job has that name (the same script, begun in
        the same second on each GPU): they are jobs of their own, no ranks of one."""
        name = script_run(group)
        others = {run for life, run in self._runs.items() if life != group.root.life}
        return f"{name}-{group.root.pid}" if name in others else name

    def _numbered(self, table: Table, members: list[Member]) -> list[Member]:
        """The same members, each rank with a number that no other rank of its run here has."""
        by_run: dict[str, dict[int, Member]] = {}
        for member in members:
            if member.role == "rank":
                by_run.setdefault(member.run or "", {})[member.pid] = member
        number: dict[int, int | None] = {}
        for ranks in by_run.values():
            before = {pid: self._members.get(member.life) for pid, member in ranks.items()}
            taken = {pid: m.rank for pid, m in before.items() if m and m.rank is not None}
            given = {pid: member.rank for pid, member in ranks.items()}
            number.update(numbers({pid: table[pid] for pid in ranks}, given, taken))
        return [
            replace(member, rank=number[member.pid]) if member.role == "rank" else member
            for member in members
        ]

    def _below(self, table: Table, members: list[Member], held: Held) -> list[Member]:
        """Workers and other children of the ranks; also those that outlived their rank."""
        ranks = {member.pid: member for member in members if member.role == "rank"}
        known = {member.pid for member in members}
        below: dict[int, Member] = {}
        for pid, rank_pid in descendants(table, ranks).items():
            if pid not in known:
                life, role = table[pid].life, self._role(table[pid], table, pid in held)
                gpus = held.get(pid, ())
                below[pid] = replace(ranks[rank_pid], life=life, role=role, gpus=gpus)
        for member in self._members.values():
            orphan = member.role in ("worker", "child") and member.pid not in known
            if orphan and member.pid in table and table[member.pid].life == member.life:
                below.setdefault(member.pid, member)
        return list(below.values())

    def _role(self, process: Process, table: Table, holds_gpu: bool) -> str:
        if process.name == WORKER_NAME or process.pid in self._workers:
            return "worker"
        made = is_multiprocessing_child(process, table)
        return "worker" if made and not holds_gpu else "child"

    def _remember(self, table: Table, members: list[Member]) -> None:
        alive = {process.life for process in table.values()}
        self._members = {member.life: member for member in members}
        self._have_held &= alive
        self._runs = {life: run for life, run in self._runs.items() if life in alive}
        self._workers = self._workers & table.keys()


def _rank(process: Process, run: str, gpus: tuple[str, ...]) -> Member:
    env = process.env or {}
    return Member(
        life=process.life,
        role="rank",
        run=run,
        rank=identity.rank_of(env),
        local_rank=identity.local_rank_of(env),
        world_size=identity.world_size_of(env),
        rank_life=process.life,
        gpus=gpus,
    )
