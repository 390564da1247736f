"""Switching a watcher off and on without starting it anew: its processes are stopped, continued."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Collection, Iterable
from pathlib import Path

from bench.h200.processes import alive, descendants, tell

DEADLINE_S = 3.0


def freeze(root: int) -> None:
    """Stop ``root`` and everything below it but py-spy, which is ended: a capture that was stopped
    would make up for the samples that it missed, and one that hangs is killed by who started it.
    """
    deadline = time.monotonic() + DEADLINE_S
    while running := {pid for pid in _alive_below(root) if not _is_py_spy(pid) and _runs(pid)}:
        tell(running, signal.SIGSTOP)
        if time.monotonic() > deadline:
            break
        time.sleep(0.002)
    _end_captures({pid for pid in _alive_below(root) if _is_py_spy(pid)}, deadline)


def thaw(root: int) -> None:
    """Let all of them go on."""
    tell(descendants([root]), signal.SIGCONT)


def state(pid: int) -> str:
    """The letter of ``/proc/PID/stat``; empty once the process is gone."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def wait_ended(pids: Iterable[int], deadline: float) -> set[int]:
    """Wait until they are gone or zombies; what is left at ``deadline`` (monotonic seconds)."""
    left = {pid for pid in pids if alive(pid)}
    while left and time.monotonic() < deadline:
        time.sleep(0.005)
        left = {pid for pid in left if alive(pid)}
    return left


def _end_captures(pids: Collection[int], deadline: float) -> None:
    """A dump ends by itself; a record is asked to, and leaves what it has seen. What does neither
    is stopped like the rest."""
    for pid in pids:
        if "record" not in _command(pid):
            continue
        while alive(pid) and not _catches(pid, signal.SIGINT) and time.monotonic() < deadline:
            time.sleep(0.005)
        tell([pid], signal.SIGINT)
    tell(wait_ended(pids, deadline), signal.SIGSTOP)


def _catches(pid: int, number: signal.Signals) -> bool:
    """Whether it has taken over a signal: one that has only just started would be killed by it."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        status = Path(f"/proc/{pid}/status").read_text()
        return bool(int(status.partition("SigCgt:")[2].split()[0], 16) >> (number - 1) & 1)
    return False


def _alive_below(root: int) -> set[int]:
    return {pid for pid in descendants([root]) if alive(pid)}


def _runs(pid: int) -> bool:
    return state(pid) not in ("T", "t", "")


def _is_py_spy(pid: int) -> bool:
    return any(Path(word).name == "py-spy" for word in _command(pid)[:1])


def _command(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return []
