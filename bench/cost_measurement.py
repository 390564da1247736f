"""One job, watched in turns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Protocol

from bench.cost_schedule import GUARD_OFF_S, GUARD_ON_S, took_s, turns
from bench.cost_watchers import Exporter, Watcher, WatcherError, control, peers
from bench.h200.job import Job, JobError, free_port

from bench import cost_stats, truth

START_S = 60.0
UNBROKEN_S = 4.0
"""The end of the settling, in which the exporter's CPU is that of one that never was stopped."""
STEADY_STEPS_S = 2.0


class Subject(Protocol):
    """A job that is watched."""

    def start(self) -> None:
        """Start it."""

    def pids(self) -> list[int]:
        """Its ranks."""

    def steady(self, settle_s: float) -> bool:
        """Whether it has made steps for so long."""

    def check(self) -> None:
        """Raise ``JobError`` if it has ended."""

    def series(self) -> dict[str, list[dict[str, float]]]:
        """What is timed, by name: begin and end of each, UTC seconds."""

    def stop(self) -> None:
        """End it."""


class Planted:
    """A planted job on the first GPU."""

    def __init__(self, variant: str, entry: dict[str, Any], cores: list[int], folder: Path) -> None:
        self.gate = folder / "gate"
        self.job = Job(variant, entry, [0], cores, folder)

    def start(self) -> None:
        self.gate.touch()
        self.job.start(self.gate)

    def pids(self) -> list[int]:
        return [self.job.popens[0].pid]

    def steady(self, settle_s: float) -> bool:
        return self.job.steady(settle_s)

    def check(self) -> None:
        self.job.check()

    def series(self) -> dict[str, list[dict[str, float]]]:
        rank = self.job.ranks().get(0)
        return {"step": step_rows(rank) if rank else []}

    def about(self) -> dict[str, Any]:
        """By which clock its steps were timed, and how many of them come in a burst."""
        rank = self.job.ranks().get(0)
        clock = "device" if rank and rank.device else "host"
        return {"clock": clock, "round": burst(rank.steps) if rank else 1}

    def stop(self) -> None:
        self.job.stop(0.0)


class Measurement:
    """``result`` is what is kept of it, complete or with an ``error``. ``most`` bounds the watched
    windows, where not the time does."""

    def __init__(
        self,
        job: Subject,
        cores: list[int],
        log: Path,
        *,
        window_s: float,
        settle_s: float,
        peers: bool,
        start_s: float = START_S,
        most: int | None = None,
    ) -> None:
        self.job, self.cores, self.log = job, cores, log
        self.window_s, self.settle_s, self.start_s = window_s, settle_s, start_s
        self.wants_peers, self.most = peers, most
        self.exporter = Exporter(free_port(), cores, log)
        self.watchers: dict[str, Watcher] = {"on": self.exporter, "control": control(cores, log)}
        self.paused_at: float | None = None
        self.observer: list[int] = []
        self.windows: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.result: dict[str, Any] = {"window_s": window_s}

    def run(self, deadline: float) -> None:
        """Start everything, take windows until the deadline, end everything."""
        began = time.monotonic()
        try:
            self._start(deadline)
            self.result["start_s"] = round(time.monotonic() - began, 1)
            self._take_turns(deadline)
        except (JobError, WatcherError, OSError, ValueError) as error:
            self.result["error"] = f"{type(error).__name__}: {error}"
        finally:
            self._keep()
            for watcher in self.watchers.values():
                watcher.stop()
            self.job.stop()

    def _start(self, deadline: float) -> None:
        """The exporter first: it sees the job begin, and is at rest when the windows begin."""
        self.exporter.start()
        self.result["ready_s"] = self.exporter.wait_ready()
        self.job.start()
        until = min(deadline, time.monotonic() + self.start_s)
        listed: float | None = None
        while listed is None or not self.job.steady(STEADY_STEPS_S):
            self.job.check()
            if time.monotonic() > until:
                raise JobError("not steady, or not seen by the exporter, in time")
            if listed is None and self.exporter.lists(self.job.pids()):
                listed = time.monotonic()
            time.sleep(0.3)
        time.sleep(max(0.0, listed + self.settle_s - UNBROKEN_S - time.monotonic()))
        self.observer = self.exporter.observer()
        used, began = self.exporter.cpu_s(), time.monotonic()
        time.sleep(UNBROKEN_S)
        lasted = time.monotonic() - began
        self.result["unbroken_cores"] = (self.exporter.cpu_s() - used) / lasted
        for watcher in self.watchers.values():
            watcher.on()
            watcher.off()
        self.paused_at = time.monotonic()

    def _take_turns(self, deadline: float) -> None:
        """Windows with nothing before, between and after the watched ones."""
        if self.wants_peers:
            found = peers(self.job.pids()[0], self.cores, self.log)
            self.watchers |= {one.name: one for one in found}
        names = [name for name in self.watchers if name not in ("on", "control")]
        time.sleep(GUARD_OFF_S)
        self._window("off")
        order = turns(self.window_s, names, Random(), self._paused_s)
        for name in islice(order, self.most):
            peer = name in names
            if time.monotonic() + took_s(self.window_s, peer=peer) > deadline:
                return
            try:
                self._watched(self.watchers[name], name)
            except WatcherError as error:
                if not peer:
                    raise
                self.notes.append(str(error))
                self.watchers.pop(name).stop()
            time.sleep(GUARD_OFF_S)
            self._window("off")
            self.job.check()

    def _watched(self, watcher: Watcher, name: str) -> None:
        watcher.on()
        time.sleep(GUARD_ON_S)
        used, began = watcher.cpu_s(), time.monotonic()
        window = self._window(name)
        window["cores"] = (watcher.cpu_s() - used) / (time.monotonic() - began)
        window["pss"] = watcher.pss()
        try:
            watcher.check()
            watcher.off()
        except WatcherError:
            window["state"] = cost_stats.SPOILT
            raise
        if watcher is self.exporter:
            self.paused_at = time.monotonic()

    def _window(self, state: str) -> dict[str, Any]:
        window: dict[str, Any] = {"state": state, "t0": time.time()}
        time.sleep(self.window_s)
        window["t1"] = time.time()
        self.windows.append(window)
        return window

    def _paused_s(self) -> float:
        return time.monotonic() - (self.paused_at or time.monotonic())

    def _keep(self) -> None:
        """What the windows hold of the job's own truth: one list of times for each of its series,
        the first under ``steps_us``."""
        time.sleep(0.3)  # the job hands its lines over every 0.1 s
        for number, (name, rows) in enumerate(self.job.series().items()):
            for window in self.windows:
                inside = cost_stats.steps_inside(rows, window["t0"], window["t1"])
                window["steps_us" if number == 0 else name] = inside
        if self.observer and self.observer != self.exporter.observer():
            self.notes.append("the exporter replaced its observer in between")
        self.result |= {"windows": self.windows, "notes": self.notes}


def step_rows(rank: truth.Rank) -> list[dict[str, float]]:
    """Begin and end of each step: on the device where it was timed there, else on the host."""
    if not rank.device:
        return rank.steps
    return [
        {"t0": row["t"] - sum(seconds for _, seconds in row["laps"]), "t": row["t"]}
        for row in rank.device
    ]


def burst(steps: Sequence[dict[str, Any]]) -> int:
    """Batches that come together: as many as a loader has workers. Each is given two in advance."""
    return max(1, *(step.get("outstanding", 0) // 2 for step in steps), 1)
