"""Checks of what it takes to see Python stacks and the processes of other users."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpuwhy.doctor_checks.check import (
    Check,
    Result,
    degraded,
    failed,
    not_applicable,
    ok,
    parts_of,
)
from gpuwhy.doctor_checks.host import Host
from gpuwhy.observe.observation import Observation

SYS_PTRACE = 19  # capabilities(7), linux/capability.h
DAC_READ_SEARCH = 2
NEWEST_PYTHON = (3, 15)  # that py-spy 0.4.3 reads
STACKS = "Python stacks: phases, functions with file and line, steps, the input queue"
MOST_TOLD = 4
NO_JOB = "no training job in sight"
RIGHTS = (
    "run as root, or: setcap cap_sys_ptrace,cap_dac_read_search+ep on py-spy; in a container: "
    "cap_add: [SYS_PTRACE, DAC_READ_SEARCH]"
)


def py_spy(host: Host) -> Result:
    """The sampler that comes with gpuwhy."""
    found = host.py_spy()
    if found is None:
        return failed(
            "py-spy is not installed beside gpuwhy", STACKS, "pip install 'py-spy>=0.4.1'"
        )
    path, version = found
    if parts_of(version) < (0, 4, 1):
        return degraded(f"py-spy {version} at {path}", STACKS, "pip install -U 'py-spy>=0.4.1'")
    return ok(f"{version} at {path}")


def ptrace_rights(host: Host) -> Result:
    """Whether we may read other processes at all: capability and Yama."""
    capable = host.has_capability(SYS_PTRACE)
    scope = (host.read("/proc/sys/kernel/yama/ptrace_scope") or "0").strip()
    if scope == "3":
        return failed(
            "Yama ptrace_scope is 3: nobody may attach",
            STACKS,
            "set kernel.yama.ptrace_scope below 3 in /etc/sysctl.d and reboot",
        )
    if capable:
        return ok("CAP_SYS_PTRACE")
    if scope in ("1", "2"):
        return failed(f"no CAP_SYS_PTRACE, and Yama ptrace_scope is {scope}", STACKS, RIGHTS)
    return degraded("no CAP_SYS_PTRACE", f"other users' jobs: {STACKS}", RIGHTS)


def memory_reads(host: Host) -> Result:
    """Whether a seccomp filter forbids both ways of reading a process's memory."""
    way = host.reads_memory()
    if not way:
        return failed(
            "process_vm_readv and /proc/PID/mem are refused even on ourselves (seccomp)",
            STACKS,
            "in a container: --security-opt seccomp=unconfined, or a profile that allows "
            "process_vm_readv (Docker's default does from kernel 4.8 on)",
        )
    return ok("" if way == "process_vm_readv" else f"through {way}: process_vm_readv is refused")


def attach(host: Host) -> Result:
    """Whether the stacks of each training job found were really read."""
    ranks = host.ranks()
    if not ranks:
        return not_applicable(NO_JOB)
    refused, dark = host.refusals("stacks"), _dark(host)
    if not dark:
        return ok(f"{len(ranks)} processes")
    said = [_refusal(rank, refused) for rank in dark]
    verdict = failed if len(dark) == len(ranks) else degraded
    return verdict(
        _listed([f"{_named([rank])}: {why}" for rank, (why, _) in zip(dark, said, strict=True)]),
        f"of these jobs: {STACKS}",
        _listed([remedy for _, remedy in said]),
    )


def _refusal(rank: dict[str, Any], refused: Mapping[int, Observation]) -> tuple[str, str]:
    """Why no stack of a job was read, and what mends that."""
    told = refused.get(rank["pid"])
    if told is None:
        return "no stack was read in the trial", "gpuwhy doctor again; then: " + RIGHTS
    return str(told.get("why", "refused")), str(told.get("remedy", RIGHTS))


def interpreter(host: Host) -> Result:
    """Whether the jobs' interpreters are ones that py-spy can read. One that was read is: a newer
    py-spy may know more than we do."""
    ranks = host.ranks()
    if not ranks:
        return not_applicable(NO_JOB)
    dark = _dark(host)
    free = [rank for rank in dark if _free_threaded(host, rank["pid"])]
    if free:
        return failed(
            f"{_named(free)}: free-threaded Python, which py-spy cannot read",
            f"of these jobs: {STACKS}",
            "run the job under the ordinary build of Python (python3.13, not python3.13t)",
        )
    new = [rank for rank in dark if _version(rank) > NEWEST_PYTHON]
    if new:
        return failed(
            f"{_named(new)}: Python {new[0]['python']} is newer than py-spy knows",
            f"of these jobs: {STACKS}",
            "pip install -U py-spy beside gpuwhy",
        )
    return ok(", ".join(dict.fromkeys(str(rank.get("python", "unknown")) for rank in ranks)))


def environment(host: Host) -> Result:
    """Whether the environment of each job can be read, which names its run and rank."""
    ranks = host.ranks()
    if not ranks:
        return not_applicable(NO_JOB)
    dark = [r for r in ranks if not host.can_open(host.path(f"/proc/{r['pid']}/environ"))]
    if not dark:
        return ok()
    lost = "run and rank from Slurm, torchrun or GPUWHY_RUN; the script below a home of mode 0700"
    held = host.has_capability(DAC_READ_SEARCH) and host.has_capability(SYS_PTRACE)
    remedy = "the job is in another user namespace: run gpuwhy on the host" if held else RIGHTS
    return degraded(f"{_named(dark)}: environ is refused", lost, remedy)


def job_processes(host: Host) -> Result:
    """The source that finds jobs."""
    states = host.sources("processes")
    if states and not states[0]["up"]:
        why, remedy = states[0].get("why", "it is down"), states[0].get("remedy", "")
        return failed(why, "all jobs: runs, ranks, workers", remedy)
    ranks = host.ranks()
    return ok(f"{len(ranks)} training processes: {_named(ranks)}") if ranks else ok(NO_JOB)


def nccl_ras(host: Host) -> Result:
    """The port on which a job of several ranks tells who is behind."""
    several = [rank for rank in host.ranks() if (rank.get("world_size") or 1) > 1]
    answers = [o for o in host.kind("nccl") if o.get("communicators")]
    if answers:
        return ok(f"{len(answers[-1]['communicators'])} communicators")
    if not several:
        return not_applicable("no job of several ranks in sight")
    states = host.sources("nccl_ras")
    why = states[0].get("why", "no answer") if states else "no answer"
    remedy = states[0].get("remedy") if states else None
    return degraded(
        str(why),
        "who is behind in a collective, across hosts",
        remedy
        or "NCCL 2.24 or newer without NCCL_RAS_ENABLE=0; in containers: the job's network "
        "namespace (docker run --network host)",
    )


def _dark(host: Host) -> list[dict[str, Any]]:
    """The training processes of which no stack was read."""
    sampled = {o["pid"] for o in host.kind("stack")}
    return [rank for rank in host.ranks() if rank["pid"] not in sampled]


def _listed(texts: Sequence[str]) -> str:
    """Each of them once."""
    once = list(dict.fromkeys(texts))
    return "; ".join(once[:MOST_TOLD]) + (
        f"; and {len(once) - MOST_TOLD} more" if once[MOST_TOLD:] else ""
    )


def _named(ranks: list[dict[str, Any]]) -> str:
    shown = [
        f"{rank['pid']} ({rank.get('script') or rank.get('name', '?')})"
        for rank in ranks[:MOST_TOLD]
    ]
    left = len(ranks) - MOST_TOLD
    return ", ".join(shown) + (f" and {left} more" if left > 0 else "")


def _version(rank: dict[str, Any]) -> tuple[int, ...]:
    return parts_of(str(rank.get("python", "")))[:2]


def _free_threaded(host: Host, pid: int) -> bool:
    """By the names of the executable and of the mapped library: python3.13t, libpython3.13t.so."""
    names = f"{host.link(f'/proc/{pid}/exe') or ''}\n{host.read(f'/proc/{pid}/maps') or ''}"
    return re.search(r"python3\.\d+t\b", names) is not None


CHECKS = (
    Check("processes", job_processes),
    Check("py-spy", py_spy),
    Check("ptrace-rights", ptrace_rights),
    Check("memory-reads", memory_reads),
    Check("stacks", attach),
    Check("interpreter", interpreter),
    Check("environment", environment),
    Check("nccl-ras", nccl_ras),
)
