"""Who watches the job in turns: the exporter as it is shipped, a null control, and its peers.

Each runs on cores that are not the job's. ``on`` and ``off`` switch it; what it uses is told by
``cpu_s`` (seconds so far, the processes that have ended included) and ``pss``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

import psutil
from bench.cost_switch import freeze, state, thaw, wait_ended
from bench.cost_usage import answer, cpu_s, pss
from bench.h200.processes import descendants, end, spawn, tell

READY_S = 30.0
END_S = 3.0
SLEEP = "import time; time.sleep(3600)"
NVML_POLL = Path(__file__).with_name("cost_nvml_poll.py")


class WatcherError(Exception):
    """A watcher does not come up, or does not see the job."""


class Watcher(Protocol):
    """Anything that can be switched on and off."""

    name: str

    def on(self) -> None:
        """From now on it watches."""

    def off(self) -> None:
        """It uses no CPU any more and touches nothing."""

    def stop(self) -> None:
        """End it and all below it."""

    def check(self) -> None:
        """Raise ``WatcherError`` if it has ended by itself."""

    def cpu_s(self) -> float:
        """CPU seconds so far."""

    def pss(self) -> int | None:
        """Bytes of memory, shared pages by their share."""


class Process:
    """A process tree of ours on given cores."""

    def __init__(self, name: str, command: Sequence[str], cores: list[int], log: Path) -> None:
        self.name, self.command, self.cores, self.log = name, list(command), cores, log
        self.env: dict[str, str] = {}
        self.popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        self.popen = spawn(self.command, self.env, self.log)
        os.sched_setaffinity(self.popen.pid, self.cores)

    def stop(self) -> None:
        """End it and all below it at once."""
        if self.popen:
            end([self.popen.pid], [self.popen])
            self.popen = None

    def check(self) -> None:
        """Raise ``WatcherError`` with its last words if it has ended."""
        if self.popen is None or self.popen.poll() is not None:
            tail = self.log.read_text(errors="replace").strip().splitlines()[-3:]
            raise WatcherError(f"{self.name} does not run: {' | '.join(tail)}")

    def cpu_s(self) -> float:
        """CPU seconds of the tree."""
        return sum(cpu_s(pid) for pid in descendants([self.popen.pid])) if self.popen else 0.0

    def pss(self) -> int | None:
        """Proportional set size of the tree in bytes."""
        return pss(descendants([self.popen.pid])) if self.popen else None


class Switched(Process):
    """Started once; stopped and continued from then on."""

    def on(self) -> None:
        """Let it go on; starts it the first time."""
        if self.popen is None:
            self.start()
        self.check()
        assert self.popen
        thaw(self.popen.pid)

    def off(self) -> None:
        """Stop it where it is."""
        if self.popen:
            freeze(self.popen.pid)


class Anew(Process):
    """Started for each window and asked to end after it: what may hold a thread of the job stopped
    must not be stopped itself."""

    def __init__(
        self, name: str, command: Sequence[str], cores: list[int], log: Path, job: int
    ) -> None:
        super().__init__(name, command, cores, log)
        self.job = job

    def on(self) -> None:
        """Start it."""
        self.start()

    def off(self) -> None:
        """SIGINT, and see that the job runs."""
        assert self.popen
        os.kill(self.popen.pid, signal.SIGINT)
        wait_ended([self.popen.pid], time.monotonic() + END_S)
        self.stop()
        if left := {pid for pid in descendants([self.job]) if state(pid) in ("T", "t")}:
            tell(left, signal.SIGCONT)
            raise WatcherError(f"{self.name} left {len(left)} processes of the job stopped")


class Exporter(Switched):
    """``gpuwhy serve`` at its defaults but for the port."""

    def __init__(self, port: int, cores: list[int], log: Path) -> None:
        super().__init__("on", [sys.executable, "-m", "gpuwhy", "serve"], cores, log)
        self.url = f"http://127.0.0.1:{port}"
        self.env = {"GPUWHY_WEB_LISTEN_ADDRESS": f"127.0.0.1:{port}"}

    def wait_ready(self) -> float:
        """Wait until it answers; returns the seconds that this took."""
        began = time.monotonic()
        while answer(f"{self.url}/api/v1/processes") is None:
            self.check()
            if time.monotonic() > began + READY_S:
                raise WatcherError(f"the exporter does not answer after {READY_S:.0f} s")
            time.sleep(0.05)
        return time.monotonic() - began

    def lists(self, pids: Collection[int]) -> bool:
        """Whether it knows these processes as parts of jobs."""
        listing = answer(f"{self.url}/api/v1/processes") or {}
        return {int(one["pid"]) for one in listing.get("processes", ())}.issuperset(pids)

    def observer(self) -> list[int]:
        """Its child that observes: another PID means that it was replaced."""
        with contextlib.suppress(psutil.Error):
            assert self.popen
            return [child.pid for child in psutil.Process(self.popen.pid).children()]
        return []


def control(cores: list[int], log: Path) -> Switched:
    """The null control: a process that sleeps."""
    return Switched("control", [sys.executable, "-c", SLEEP], cores, log)


def peers(job: int, cores: list[int], log: Path) -> list[Watcher]:
    """What others use, at the rates that are common, in the same turns."""
    from gpuwhy.observe import pyspy

    executable = str(pyspy.executable())
    found: list[Watcher] = []
    for hz in (20, 100):
        for way in ((), ("--nonblocking",)):
            name = f"py-spy record, {hz} Hz, {'non-blocking' if way else 'blocking'}"
            what = ("--idle", "--subprocesses", "--format", "raw", "--output", os.devnull)
            options = ("--rate", str(hz), "--duration", "3600", "--pid", str(job))
            command = [executable, "record", *way, *what, *options]
            found.append(Anew(name, command, cores, log, job))
    found.append(Switched("NVML, 10 Hz", [sys.executable, str(NVML_POLL)], cores, log))
    return found
