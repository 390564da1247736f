"""The exporter as it is shipped, on cores of its own, and what it costs itself."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
from bench.h200.processes import descendants, end, spawn

READY_S = 30.0


class ExporterError(Exception):
    """The exporter does not come up, or does not see the job."""


class Exporter:
    """``gpuwhy serve`` at its defaults but for the port."""

    def __init__(self, port: int, cores: list[int], log: Path) -> None:
        self.port, self.cores, self.log = port, cores, log
        self.popen: subprocess.Popen[bytes] | None = None

    def start(self, pid: int) -> float:
        """Start it and wait until it lists ``pid``; returns the seconds that this took."""
        began = time.monotonic()
        env = {"GPUWHY_WEB_LISTEN_ADDRESS": f"127.0.0.1:{self.port}"}
        self.popen = spawn([sys.executable, "-m", "gpuwhy", "serve"], env, self.log)
        os.sched_setaffinity(self.popen.pid, self.cores)
        while pid not in self._seen():
            if self.popen.poll() is not None or time.monotonic() > began + READY_S:
                tail = self.log.read_text(errors="replace").strip().splitlines()[-3:]
                self.stop()
                raise ExporterError(f"the exporter does not list the job: {' | '.join(tail)}")
            time.sleep(0.2)
        return time.monotonic() - began

    def stop(self) -> None:
        """End it and all below it at once."""
        if self.popen:
            end([self.popen.pid], [self.popen])
            self.popen = None

    def cpu_s(self) -> float:
        """CPU seconds used so far by the whole process tree, py-spy and what has ended included."""
        return sum(cpu_s(pid) for pid in descendants([self.popen.pid])) if self.popen else 0.0

    def pss(self) -> int | None:
        """Proportional set size of the process tree in bytes."""
        return pss(descendants([self.popen.pid])) if self.popen else None

    def _seen(self) -> set[int]:
        listing = answer(f"http://127.0.0.1:{self.port}/api/v1/processes") or {}
        return {int(one["pid"]) for one in listing.get("processes", ())}


class Control:
    """The null control: a process that sleeps in the exporter's place."""

    def __init__(self, cores: list[int], log: Path) -> None:
        self.cores, self.log = cores, log
        self.popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        self.popen = spawn([sys.executable, "-c", "import time; time.sleep(3600)"], {}, self.log)
        os.sched_setaffinity(self.popen.pid, self.cores)

    def stop(self) -> None:
        """End it."""
        if self.popen:
            end([self.popen.pid], [self.popen])
            self.popen = None


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and of the children that it has reaped; 0 once it is gone."""
    with contextlib.suppress(psutil.Error):
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0


def pss(pids: set[int]) -> int | None:
    """Bytes of proportional set size of these processes; None where the kernel tells of none."""
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.Error, OSError, AttributeError):
            found.append(int(psutil.Process(pid).memory_full_info().pss))
    return sum(found) or None


def answer(url: str, timeout_s: float = 2.0) -> dict[str, Any] | None:
    """The JSON object at ``url``; None where there is no answer."""
    with contextlib.suppress(OSError, ValueError):
        with urllib.request.urlopen(url, timeout=timeout_s) as response:
            found = json.load(response)
        return found if isinstance(found, dict) else None
    return None
