"""Processes as a family: who started whom, and how a Python process came to be.

Pure functions over a table of processes by PID.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from gpuwhy.observe import identity
from gpuwhy.observe.procfs import Stat

Life = tuple[int, int]
"""(PID, start in clock ticks after boot): a PID is used again, this is not."""


@dataclass(slots=True)
class Process:
    """One process of the host. What was not looked at or may not be read is None."""

    pid: int
    ticks: int
    ppid: int
    session: int
    start: float  # UTC, Unix seconds
    name: str
    argv: Sequence[str] = ()
    python: str | None = None  # version; "" unknown version; None: not Python
    framework: bool | None = None  # has a training framework loaded
    env: Mapping[str, str] | None = None  # identity.VARIABLES of it
    cgroup: str | None = None  # path
    user: str | None = None
    stat: Stat | None = None  # as last read

    @property
    def life(self) -> Life:
        return self.pid, self.ticks


Table = Mapping[int, Process]

WORKER_NAME = "pt_data_worker"
"""What recent torch calls a DataLoader's worker; older ones keep the name of their parent."""

_LAUNCHERS = frozenset(
    ("torchrun", "deepspeed", "composer", "horovodrun", "mpirun", "mpiexec", "mpiexec.hydra",
     "orterun", "prterun", "prte", "orted", "prted", "hydra_pmi_proxy", "srun", "slurmstepd",
     "slurm_script", "ibrun", "jsrun", "flux")
)  # fmt: skip
_LAUNCHER_MODULES = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "torch.distributed.elastic",
    "accelerate.commands.launch",
    "deepspeed.launcher",
    "horovod.runner",
    "paddle.distributed.launch",
    "composer.cli",
    "ray.",
)

_HELPER_MODULES = ("-m torch._", "-m joblib.", "-m multiprocessing.")


def is_launcher(argv: Sequence[str]) -> bool:
    """Does this command line start ranks, rather than being one?"""
    words = [PurePosixPath(word).name for word in argv[:4]]
    if not words:
        return False
    if words[0] in _LAUNCHERS:
        return True
    for before, word, after in zip(words, words[1:], [*words[2:], ""], strict=False):
        if before == "-m":
            return word.startswith(_LAUNCHER_MODULES)
        if before == "-c":
            return False
        if not word.startswith("-"):
            wrapped = (word, after) in (("accelerate", "launch"), ("fabric", "run"))
            return wrapped or word in _LAUNCHERS or word == "launch.py"
    return False


def is_multiprocessing_child(process: Process, table: Table) -> bool:
    """Was it made by ``multiprocessing`` (or ``os.fork``) in Python, and does it run its code?

    A forked child has its parent's command line, that of its fork server included; a spawned one
    says so. The fork server itself and the resource tracker run nothing of the job's.
    """
    if process.python is None:
        return False
    if any("multiprocessing.spawn import" in word for word in process.argv):
        return True
    parent = table.get(process.ppid)
    return parent is not None and parent.python is not None and parent.argv == process.argv


def runs_its_own_program(process: Process, above: Process) -> bool:
    """Was it started as a Python program of its own, another one than that of the process above
    it? So a notebook or a test runner starts a job. A library's helper is none: Inductor's compile
    workers, loky's, ``multiprocessing``'s (``-c``)."""
    script = identity.script_of(process.argv) if process.python is not None else None
    if script is None or script == "-c" or script.startswith(_HELPER_MODULES):
        return False
    installed = {"site-packages", "dist-packages"} & set(PurePosixPath(script).parts)
    return not installed and script != identity.script_of(above.argv)


def ancestors(process: Process, table: Table) -> Iterator[Process]:
    """Parent, its parent, and so on; ends at init, or where a parent is out of sight."""
    seen = {process.pid}
    while (parent := table.get(process.ppid)) is not None and parent.pid not in seen:
        seen.add(parent.pid)
        yield parent
        process = parent


def nearest(process: Process, table: Table, wanted: Container[int]) -> Process | None:
    """The nearest ancestor whose PID is among the wanted ones."""
    return next((a for a in ancestors(process, table) if a.pid in wanted), None)


def descendants(table: Table, roots: Container[int]) -> dict[int, int]:
    """PID of everything below the roots -> the nearest of them; the roots themselves only where
    they are below another one."""
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.ppid, []).append(process.pid)
    found: dict[int, int] = {}
    pending = [(child, pid) for pid in table if pid in roots for child in children.get(pid, ())]
    while pending:
        pid, root = pending.pop()
        if pid not in found:
            found[pid] = root
            if pid not in roots:
                pending += [(child, root) for child in children.get(pid, ())]
    return found


def is_pythonic(process: Process, table: Table) -> bool:
    """Python, or started by Python in the same session (a shell of its own starts a new one)."""
    if process.python is not None:
        return True
    session = process.session
    return any(a.python is not None for a in ancestors(process, table) if a.session == session)
