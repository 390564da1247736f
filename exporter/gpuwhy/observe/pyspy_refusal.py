"""Why a process gives no Python stacks, and what to do about it.

py-spy says little ("Permission Denied", "Failed to find python version"): the kernel has one error
for half a dozen causes. What tells them apart is read from /proc.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuwhy.observe import procfs

PROC = Path("/proc")
_NOT_FOUND = re.compile(r"Failed to find (?:python version|a python interp)|No python processes")
_SYS_PTRACE = 1 << 19  # CAP_SYS_PTRACE, linux/capability.h
_GRANT = (
    "give gpuwhy CAP_SYS_PTRACE: run it as root, in Docker --cap-add SYS_PTRACE, in Kubernetes"
    " securityContext.capabilities.add: [SYS_PTRACE]"
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """``gone``: the process has ended, so there is nothing to mend and nothing to try again."""

    why: str
    remedy: str
    gone: bool = False


def stopped(pid: int, state: str) -> Refusal:
    """A process that does not run is reported, not sampled."""
    if state == "t":
        return Refusal(
            f"process {pid} is held by a debugger or tracer", "detach the debugger from it"
        )
    return Refusal(f"process {pid} is stopped (SIGSTOP)", f"let it go on: kill -CONT {pid}")


def costly(pid: int, cpu_s: float) -> Refusal:
    """A process of which one look takes more CPU than there is for many."""
    return Refusal(
        f"one look at the stacks of process {pid} takes {cpu_s:.1f} s of CPU: it is seldom looked"
        " at, to keep the budget",
        "have fewer threads in it, or give more CPU: --max-overhead",
    )


def explain(pid: int, messages: str, proc: Path = PROC) -> Refusal:
    """What py-spy's error about a process means."""
    if procfs.read_stat(f"{proc}/{pid}") is None:
        return Refusal(f"process {pid} has ended", "none needed", gone=True)
    if re.search(r"Permission Denied|Operation not permitted|os error (?:1|13)\b", messages):
        return _permission(pid, proc)
    if found := re.search(r"Unsupported version of Python: (\S+)", messages):
        return Refusal(
            f"process {pid} runs Python {found[1]}, which this py-spy cannot read",
            "upgrade py-spy beside gpuwhy (pip install -U py-spy), or run the job on another"
            " Python version",
        )
    if (_python(pid, proc) or "").endswith("t"):
        return Refusal(
            f"process {pid} runs a free-threaded Python, which py-spy cannot read",
            "run the job on the usual build of Python (python3.N, not python3.Nt)",
        )
    if _NOT_FOUND.search(messages) and (version := _python(pid, proc)):
        return Refusal(
            f"process {pid} runs Python {version}, and this py-spy does not find its interpreter",
            "upgrade py-spy beside gpuwhy (pip install -U py-spy): it may be older than this"
            " Python; if it is the newest, run the job on another build of Python, not a stripped"
            " or static one",
        )
    if _NOT_FOUND.search(messages):
        return Refusal(
            f"process {pid} has no Python interpreter in sight",
            "none if it has just started or is no Python program; a stripped, static or embedded"
            " Python cannot be read",
        )
    return Refusal(f"py-spy failed on process {pid}: {_first_lines(messages)}", _see_doctor(pid))


def _permission(pid: int, proc: Path) -> Refusal:
    ours, theirs = _status(proc / "self"), _status(proc / str(pid))
    capable = bool(int(ours.get("CapEff", "0"), 16) & _SYS_PTRACE)
    yama = _yama(proc)
    if yama == 3:
        return Refusal(
            "the kernel forbids reading other processes (Yama ptrace_scope is 3)",
            "set kernel.yama.ptrace_scope below 3 in /etc/sysctl.d and reboot",
        )
    if not capable:
        our_uid, their_uid = _uid(ours), _uid(theirs)
        if our_uid != their_uid:
            return Refusal(
                f"process {pid} belongs to {_user(their_uid)}, gpuwhy runs as {_user(our_uid)}"
                " without CAP_SYS_PTRACE",
                f"run gpuwhy as {_user(their_uid)}, or {_GRANT}",
            )
        if yama:
            return Refusal(
                f"Yama ptrace_scope is {yama}: a process may only read its own children",
                f"{_GRANT}, or sysctl kernel.yama.ptrace_scope=0",
            )
        return Refusal(f"process {pid} holds rights that gpuwhy lacks", _GRANT)
    if _namespace(pid, "user", proc) != _namespace("self", "user", proc):
        return Refusal(
            f"process {pid} is in another user namespace", "run gpuwhy on the host, as root"
        )
    if file := _unreadable(pid, proc):
        return Refusal(
            f"gpuwhy may not read {file}, the interpreter of process {pid}",
            "run gpuwhy as root, or give it CAP_DAC_READ_SEARCH too",
        )
    return Refusal(
        f"the kernel refused to read process {pid} in spite of CAP_SYS_PTRACE"
        + (" (a seccomp filter is active)" if ours.get("Seccomp") == "2" else ""),
        "allow process_vm_readv: in Docker --security-opt seccomp=unconfined and --security-opt"
        " apparmor=unconfined; on SELinux setsebool deny_ptrace off",
    )


def _status(directory: Path) -> Mapping[str, str]:
    lines = (procfs.read_text(directory / "status") or "").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _uid(status: Mapping[str, str]) -> int | None:
    """The effective user: ``Uid: real effective saved filesystem``."""
    fields = status.get("Uid", "").split()
    return procfs.number(fields[1]) if len(fields) > 1 else None


def _user(uid: int | None) -> str:
    if uid is None:
        return "another user"
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _yama(proc: Path) -> int:
    return procfs.number(procfs.read_text(proc / "sys/kernel/yama/ptrace_scope") or "") or 0


def _namespace(pid: int | str, kind: str, proc: Path) -> str | None:
    try:
        return str((proc / str(pid) / "ns" / kind).readlink())
    except OSError:
        return None


def _unreadable(pid: int, proc: Path) -> str | None:
    """The interpreter's library, where its file is closed to us: py-spy reads symbols from it."""
    base = f"{proc}/{pid}"
    found = re.search(r"\S+/libpython3\S+\.so\S*", procfs.read_text(f"{base}/maps") or "")
    if found is None or os.access(f"{base}/root{found[0]}", os.R_OK):
        return None
    return found[0]


def _python(pid: int, proc: Path) -> str | None:
    """ "3.14", or "3.14t", by the name of the executable or of the library in the memory map."""
    base = proc / str(pid)
    try:
        name = (base / "exe").readlink().name
    except OSError:
        return None
    maps = procfs.read_text(base / "maps") or ""
    found = re.search(r"^python(3\.\d+t?)$", name) or re.search(r"/libpython(3\.\d+t?)\.so", maps)
    return found[1] if found else None


def _first_lines(messages: str) -> str:
    head = messages.partition("Stack backtrace:")[0]
    lines = [line.strip() for line in head.splitlines() if line.strip()]
    return "; ".join(lines[:3])[:300] or "it gave no reason"


def _see_doctor(pid: int) -> str:
    return f"gpuwhy doctor checks what py-spy needs; py-spy dump --nonblocking --pid {pid} shows it"
