"""Which processes are ranks, and which of them were started together.

Pure functions over a table of processes, what the driver lists, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field

from gpuwhy.observe import identity
from gpuwhy.observe.family import (
    WORKER_NAME,
    Process,
    Table,
    ancestors,
    is_launcher,
    is_multiprocessing_child,
    is_pythonic,
    nearest,
    runs_its_own_program,
)


@dataclass(slots=True)
class Group:
    """Ranks that were started together: below one launcher, or one by another. ``root`` is the
    uppermost process of that start, a rank itself where nothing launched it."""

    root: Process
    ranks: list[Process] = field(default_factory=list)


def candidates(table: Table, holders: Collection[int], settled: Container[int]) -> set[int]:
    """PIDs that may be ranks: GPU processes that are Python (or that Python started); where no GPU
    process is in sight, Python processes with a training framework. Launchers are none."""
    if holders:
        found = {pid for pid in holders if is_pythonic(table[pid], table)}
    else:
        found = {p.pid for p in table.values() if p.python is not None and p.framework}
    return {pid for pid in found if pid in settled and not is_launcher(table[pid].argv)}


def groups(
    table: Table, candidates: Collection[int], holders: Container[int], workers: Container[int]
) -> list[Group]:
    """The ranks among the candidates, by the start they share, oldest first.

    A candidate below another one is part of it, with three exceptions: its launcher gave it a
    number of its own (PyTorch Lightning starts the other ranks below the first); it is another
    program, and then another run (a notebook that starts a job); or it is one of several that the
    other one made for the GPUs (``torch.multiprocessing.spawn``), which then is no rank.
    ``workers`` are known to be DataLoader workers.
    """
    above = {
        pid: nearest(table[pid], table, candidates)
        for pid in candidates
        if pid not in workers and table[pid].name != WORKER_NAME
    }
    apart = {
        pid
        for pid, a in above.items()
        if a is not None and (_has_own_number(table[pid], a) or runs_its_own_program(table[pid], a))
    }
    made = Counter(
        parent.pid
        for pid, parent in above.items()
        if parent is not None
        and pid in holders
        and pid not in apart
        and is_multiprocessing_child(table[pid], table)
    )
    spawners = {pid for pid, count in made.items() if count > 1}
    ranks = {
        pid
        for pid, parent in above.items()
        if pid not in spawners and (parent is None or parent.pid in spawners or pid in apart)
    }
    return _grouped(table, ranks, spawners)


def _has_own_number(process: Process, parent: Process) -> bool:
    number = identity.rank_of(process.env or {})
    return number is not None and number != identity.rank_of(parent.env or {})


def _grouped(table: Table, ranks: set[int], spawners: set[int]) -> list[Group]:
    found: dict[int, Group] = {}
    for pid in sorted(ranks, key=lambda pid: (table[pid].start, pid)):
        root = table[pid]
        for parent in ancestors(root, table):
            starter = parent.pid in ranks or parent.pid in spawners or is_launcher(parent.argv)
            if not starter and not is_multiprocessing_child(root, table):
                break
            if parent.pid in ranks and runs_its_own_program(table[pid], parent):
                break
            root = parent
        found.setdefault(root.pid, Group(root)).ranks.append(table[pid])
    return list(found.values())


def signed_run(group: Group, host: str) -> str | None:
    """The name of a group's run by the best sign that any of its ranks carries; None without one.
    ``host`` stands for loopback addresses."""
    signs = []
    for process in group.ranks:
        env = process.env or {}
        sign = identity.run_of(env, identity.place_of(process.cgroup, env), host)
        if sign is not None:
            signs.append(sign)
    return min(signs)[1] if signs else None


def script_run(group: Group) -> str:
    """The name of a run that carries no sign: script and start."""
    runs_it = group.ranks[0] if is_launcher(group.root.argv) else group.root
    return identity.script_run(identity.script_of(runs_it.argv) or runs_it.name, group.root.start)


def numbers(
    ranks: Mapping[int, Process], given: Mapping[int, int | None], taken: Mapping[int, int]
) -> dict[int, int | None]:
    """PID -> rank within one run: the number that the launcher ``given`` it; a process without
    one, or with one that is ``taken`` by another process of the run here, gets the lowest that is
    free, in the order of their start (the order in which ``spawn`` numbers them). None where the
    environment that would tell may not be read."""
    used = set(taken.values())
    answer: dict[int, int | None] = dict(taken)
    waiting = []
    for pid, process in sorted(ranks.items(), key=lambda item: (item[1].start, item[0])):
        number = given[pid]
        if pid in taken:
            continue
        if number is not None and number not in used:
            used.add(number)
            answer[pid] = number
        elif process.env is None:
            answer[pid] = None
        else:
            waiting.append(pid)
    for pid in waiting:
        answer[pid] = next(n for n in range(len(used) + 1) if n not in used)
        used.add(answer[pid] or 0)
    return answer
