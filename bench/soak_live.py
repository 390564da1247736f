"""``gpuwhy serve`` beside real processes that come, are sampled by py-spy, and go."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import psutil
from bench.h200.processes import descendants, end, spawn
from bench.own_cost_exporter import Exporter
from bench.own_cost_host import Host
from bench.own_cost_readers import series

LIFE_S = 4.0
MARKS = 12
JOB = """
import time

def wait_for_gpu():
    time.sleep(0.05)

def train():
    for step in range(100_000):
        wait_for_gpu()

train()
"""


class Lives(Host):
    """A host on whose GPUs one short job follows another. ``lives`` counts them."""

    def __init__(self, folder: Path, gpus: int) -> None:
        super().__init__(folder, gpus, workers=0)
        self.lives = 0
        self._until = [0.0] * gpus

    def turn(self) -> None:
        """End those whose time is over and begin others in their place."""
        now = time.monotonic()
        for i, job in enumerate(self.ranks):
            if now >= self._until[i]:
                end([job.pid], [job])
                self.ranks[i] = self._start(i)
        self._write()

    def _start(self, rank: int) -> subprocess.Popen[bytes]:
        self.lives += 1
        self._until[rank] = time.monotonic() + LIFE_S * (1 + rank / self.gpus / 2)
        env = {"GPUWHY_RUN": f"job-{self.lives}", "RANK": "0"}
        return spawn([sys.executable, "-c", JOB], env, self.log)


def soak_live(lives: int, gpus: int, folder: Path) -> list[dict[str, float]]:
    """Let so many jobs live and die; the marks on the way."""
    marks: list[dict[str, float]] = []
    host = Lives(folder, gpus)
    with host, Exporter(host) as exporter:
        while host.lives < lives:
            host.turn()
            exporter.pass_time(0.3)
            if host.lives >= (len(marks) + 1) * lives / MARKS:
                marks.append(mark(host, exporter))
    return marks


def mark(host: Lives, exporter: Exporter) -> dict[str, float]:
    """What must not grow, of the server and the observer; py-spy's processes come and go."""
    found = {"lives": host.lives, "rss_mb": 0.0, "descriptors": 0, "threads": 0}
    for pid in descendants([exporter.popen.pid]):
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.name() != "py-spy":
                found["rss_mb"] += process.memory_full_info().uss / 1e6
                found["descriptors"] += process.num_fds()
                found["threads"] += process.num_threads()
    return {**found, "series": series(exporter.url)["all"]}
