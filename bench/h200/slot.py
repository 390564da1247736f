"""The jobs that run at the same time, one a GPU, from their start to what is kept of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from bench.h200.job import Job, JobError
from bench.h200.packing import Place, Variants

START_S, TUNE_S = 100.0, 14.0
STOP_S, HUNG_STOP_S = 14.0, 2.0


class Slot:
    """Jobs side by side, and ``result``: what is written down of them."""

    def __init__(self, number: int, places: list[Place], variants: Variants, folder: Path) -> None:
        self.folder = folder / f"slot{number:02d}"
        self.folder.mkdir()
        self.gate = self.folder / "gate"
        self.jobs = [
            Job(p.variant, variants[p.variant], p.gpus, p.cores, self.folder) for p in places
        ]
        self.result: dict[str, Any] = {
            "slot": number,
            "places": [
                {"variant": j.variant, "gpus": j.gpus, "fault": j.entry["fault"]} | j.launch
                for j in self.jobs
            ],
        }
        self.names = "-".join(job.variant for job in self.jobs)

    def load(self) -> None:
        """Start every job up to its gate: libraries are loaded, no GPU is touched."""
        for job in self.jobs:
            self._quietly(partial(job.start, self.gate))

    def open(self, settle_s: float, seconds: float) -> list[Job]:
        """Open the gate; returns the jobs that have come to where they can be recorded."""
        began = time.monotonic()
        for job in self.jobs:
            self._quietly(job.companions)
        self.gate.touch()
        ready: list[Job] = []

        def await_job(job: Job, place: dict[str, Any]) -> None:
            try:
                job.ready(settle_s, min(START_S, seconds), TUNE_S)
                ready.append(job)
            except (JobError, OSError, ValueError) as error:
                place["error"] = f"{type(error).__name__}: {error}"

        with ThreadPoolExecutor(len(self.jobs)) as pool:
            for job, place in zip(self.jobs, self.result["places"], strict=True):
                pool.submit(await_job, job, place)
        self.result["start_s"] = round(time.monotonic() - began, 1)
        return ready

    def ask_to_stop(self) -> None:
        """Tell all jobs to end; they profile a few steps meanwhile."""
        for job in self.jobs:
            self._quietly(job.ask_to_stop)

    def stop(self, left_s: float) -> None:
        """Wait for the jobs, end what is left of them, keep their notes."""
        began = time.monotonic()
        for job, place in zip(self.jobs, self.result["places"], strict=True):
            hung = "stalled" in json.dumps(job.entry["fault"])
            limit = min(HUNG_STOP_S if hung else STOP_S, left_s)
            limit -= time.monotonic() - began
            self._quietly(partial(job.stop, max(limit, 0.5)))
            place["notes"] = job.notes

    def _quietly(self, do: Callable[[], object]) -> None:
        try:
            do()
        except Exception as error:
            self.result.setdefault("troubles", []).append(f"{type(error).__name__}: {error}")
