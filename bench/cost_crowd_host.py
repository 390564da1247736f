"""The ranks of a crowded host, as one job that is measured."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

from bench.h200.job import JobError, free_port
from bench.h200.processes import descendants, end, spawn

SCRIPT = Path(__file__).with_name("cost_crowd_job.py")
COMPUTING, WHOLE = "computing", "whole step"


class Crowd:
    """``ranks`` processes on ``cores``, each with its threads and workers."""

    def __init__(self, ranks: int, threads: int, workers: int, cores: list[int], folder: Path):
        self.count, self.cores, self.folder = ranks, cores, folder
        self.options = ["--threads", str(threads), "--workers", str(workers)]
        self.workers, self.log = workers, folder / "crowd.log"
        self.popens: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start all ranks."""
        port = str(free_port())
        for rank in range(self.count):
            numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": self.count}
            env = {name: str(value) for name, value in numbers.items()}
            env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
            command = [sys.executable, str(SCRIPT), str(self._truth(rank)), *self.options]
            popen = spawn(command, env, self.log)
            os.sched_setaffinity(popen.pid, self.cores)
            self.popens.append(popen)

    def pids(self) -> list[int]:
        """The ranks."""
        return [popen.pid for popen in self.popens]

    def steady(self, settle_s: float) -> bool:
        """Every rank has its workers, and has made steps for ``settle_s`` seconds."""
        rows = [self._rows(rank) for rank in range(self.count)]
        if not all(rows) or any(time.time() - steps[0][0] < settle_s for steps in rows):
            return False
        return len(descendants(self.pids())) >= self.count * (1 + self.workers)

    def check(self) -> None:
        """Raise ``JobError`` if a rank has ended."""
        for popen in self.popens:
            if (code := popen.poll()) is not None:
                tail = self.log.read_text(errors="replace").strip().splitlines()[-3:]
                raise JobError(f"a rank ended with {code}: {' | '.join(tail)}")

    def series(self) -> dict[str, list[dict[str, float]]]:
        """Of all ranks together: the computing of each step, and the whole steps."""
        computing, whole = [], []
        for rank in range(self.count):
            rows = self._rows(rank)
            computing += [{"t0": began, "t": computed} for began, computed, _ in rows]
            ends = [ended for *_, ended in rows]
            whole += [{"t0": a, "t": b} for a, b in pairwise(ends)]
        return {COMPUTING: computing, WHOLE: whole}

    def stop(self) -> None:
        """End all ranks and their workers."""
        end(self.pids(), self.popens)

    def _truth(self, rank: int) -> Path:
        return self.folder / f"truth.{rank}"

    def _rows(self, rank: int) -> list[tuple[float, float, float]]:
        """Complete lines; none before the first."""
        with contextlib.suppress(OSError):
            lines = self._truth(rank).read_text().split("\n")[:-1]
            return [(float(b), float(c), float(e)) for _, b, c, e in map(str.split, lines)]
        return []
