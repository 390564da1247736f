"""The exporter on that host: started, waited for, its CPU and memory read part by part."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from typing import Any

import psutil
from bench.h200.job import free_port
from bench.h200.processes import descendants, end, spawn
from bench.own_cost_host import Host, HostError

READY_S = 90.0


class Exporter:
    """``gpuwhy serve`` at its defaults but for the port. A context manager."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.url = f"http://127.0.0.1:{free_port()}"
        self.popen: subprocess.Popen[bytes]

    def __enter__(self) -> Exporter:
        address = self.url.removeprefix("http://")
        env = {**self.host.environment, "GPUWHY_WEB_LISTEN_ADDRESS": address}
        command = [sys.executable, "-m", "gpuwhy", "serve"]
        self.popen = spawn(command, env, self.host.folder / "exporter.log")
        return self

    def __exit__(self, *_: object) -> None:
        end([self.popen.pid], [self.popen])

    def wait(self, ranks: int) -> None:
        """Until it has seen all ranks."""
        until = time.monotonic() + READY_S
        while self._ranks() < ranks:
            if time.monotonic() > until:
                raise HostError(f"the exporter does not list the ranks:\n{self.said()}")
            self.pass_time(0.5)

    def pass_time(self, seconds: float) -> None:
        """Wait; raises HostError where the exporter ends meanwhile."""
        time.sleep(seconds)
        if self.popen.poll() is not None:
            raise HostError(f"the exporter has ended:\n{self.said()}")

    def said(self) -> str:
        """The last of its log."""
        log = self.host.folder / "exporter.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-5:])

    def usage(self) -> dict[str, Any]:
        """CPU seconds so far by part of the tree, and by source as it says itself."""
        cpu: Counter[str] = Counter()
        own = self.popen.pid
        for pid in descendants([own]):
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                times, name = process.cpu_times(), process.name()
                part = "server" if pid == own else "py-spy" if name == "py-spy" else "observer"
                cpu[part] += times.user + times.system
                # What the observer has reaped was py-spy; what the server has, an observer.
                reaped = "py-spy" if part == "observer" else "ended"
                cpu[reaped] += times.children_user + times.children_system
        return {
            "t": time.monotonic(),
            "cpu_s": {**cpu, "all": cpu.total()},
            "sources": self._told("gpuwhy_source_cpu_seconds_total"),
            "limits": self._told("gpuwhy_source_cpu_limit_ratio"),
        }

    def pss(self) -> dict[str, float]:
        """Proportional set size by part of the tree, in MB."""
        found: Counter[str] = Counter()
        for pid in descendants([self.popen.pid]):
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                name = "py-spy" if process.name() == "py-spy" else "observer"
                part = "server" if pid == self.popen.pid else name
                found[part] += process.memory_full_info().pss / 1e6
        return {part: round(size, 1) for part, size in {**found, "all": found.total()}.items()}

    def _ranks(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            with urllib.request.urlopen(f"{self.url}/api/v1/processes", timeout=5) as response:
                listed = json.load(response)["processes"]
            return sum(one.get("role") == "rank" for one in listed)
        return 0

    def _told(self, metric: str) -> dict[str, float]:
        """The values of a metric by source."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=20) as response:
            lines = response.read().decode().splitlines()
        found = (line.split() for line in lines if line.startswith(metric + "{"))
        return {words[0].split('"')[1]: float(words[1]) for words in found}
