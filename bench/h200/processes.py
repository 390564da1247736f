"""Starting and ending processes of our own, their children included."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path


def spawn(
    command: list[str], env: dict[str, str], log: Path, cwd: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start ``command`` in a group of its own (not a session: it must not outlive ours)."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            process_group=0,
        )


def descendants(roots: Iterable[int]) -> set[int]:
    """The given processes that live and everything below them."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(folder.name))
    found: set[int] = set()
    waiting = [pid for pid in roots if Path(f"/proc/{pid}").exists()]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, [])
    return found


def alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def tell(pids: Iterable[int], what: signal.Signals = signal.SIGTERM) -> None:
    """Signal each process that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, what)


def end(roots: Iterable[int], popens: Iterable[subprocess.Popen[bytes]]) -> None:
    """Kill the processes, everything below them, and reap those that we started."""
    tell(descendants(roots), signal.SIGKILL)
    for popen in popens:
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(timeout=5)


def wait_gone(pids: Iterable[int], seconds: float) -> bool:
    """Wait until all are gone, at most ``seconds``."""
    until = time.monotonic() + seconds
    pids = list(pids)
    while any(alive(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True
