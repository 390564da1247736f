"""What an alert is timed on: a live job that is starved, then mended; or two recordings."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from bench.h200.job import JOBS, Job

START_S = 60.0


class Scene(Protocol):
    """A run with a fault that begins and ends. Times are UTC seconds; ``JobError`` if it fails."""

    run: str | None  # None: any run
    cause: str

    def begin(self) -> None:
        """Start the run; it may take its time to lose any."""

    def onset(self) -> float | None:
        """When the fault sets in (may lie ahead), None until that is known."""

    def mend(self) -> None:
        """End the fault: the job is stopped and started again without it."""

    def mended(self) -> float | None:
        """When the mended job makes its first step, None until then."""

    def check(self) -> None:
        """Raise ``JobError`` where the run has ended by itself."""

    def close(self) -> None:
        """End everything."""


class JobScene:
    """Planted jobs on the first GPU under one ``GPUWHY_RUN``: ``faulty``, then ``healthy``."""

    run: str | None = "starved-then-mended"

    def __init__(self, faulty: str, healthy: str, after_s: float, folder: Path) -> None:
        variants = json.loads((JOBS / "variants.json").read_text())
        self.cause = str(variants[faulty]["fault"])
        variants[faulty]["settings"]["after_s"] = after_s
        own = folder / "variants.json"
        own.write_text(json.dumps(variants))
        for name in (faulty, healthy):
            env = {"GPUWHY_RUN": str(self.run), "JOB_VARIANTS": str(own)}
            variants[name].setdefault("launch", {})["env"] = env
        self.gate = folder / "gate"
        cores = sorted(os.sched_getaffinity(0))
        self.jobs = [
            Job(name, variants[name], [0], cores, _made(folder / name))
            for name in (faulty, healthy)
        ]
        self.at = 0

    def begin(self) -> None:
        self.gate.touch()
        self.jobs[0].start(self.gate)
        self.jobs[0].wait(0.0, START_S)

    def onset(self) -> float | None:
        return self._starts(0)

    def mend(self) -> None:
        self.jobs[0].stop(0.0)
        self.at = 1
        self.jobs[1].start(self.gate)

    def mended(self) -> float | None:
        return self._starts(1)

    def check(self) -> None:
        self.jobs[self.at].check()

    def close(self) -> None:
        self.jobs[self.at].stop(0.0)

    def _starts(self, number: int) -> float | None:
        rank = self.jobs[number].ranks().get(0)
        return rank.fault_from if rank else None


class PlayedScene:
    """A faulty recording, then a healthy one; ``restart`` makes the exporter play another."""

    run: str | None = None

    def __init__(self, cause: str, files: list[Path], restart: Callable[[Path], None]) -> None:
        self.cause, self.files, self.restart = cause, files, restart
        self.times: list[float] = []

    def begin(self) -> None:
        self._play()

    def onset(self) -> float | None:
        return self.times[0] if self.times else None

    def mend(self) -> None:
        self._play()

    def mended(self) -> float | None:
        return self.times[1] if len(self.times) > 1 else None

    def check(self) -> None:
        """The exporter is looked after by whoever started it."""

    def close(self) -> None:
        """Nothing of its own runs."""

    def _play(self) -> None:
        self.restart(self.files[len(self.times)])
        self.times.append(time.time())


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
