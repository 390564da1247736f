"""What py-spy captured."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.recordings.raw.folder import Raw

from gpuwhy.observe.observation import Observation

CAPTURE_OFFSETS = {"dump1": 1.0, "stacks": 2.0, "timeline": 9.0, "dump2": 15.0, "speed": 16.5}
"""Seconds after the first row of nvml.jsonl at which each capture was started."""
RAW_SECONDS = 6.0


class Stacks:
    """py-spy captures of one process as ``stack`` and ``locals`` observations."""

    def __init__(self, raw: Raw, pid: int) -> None:
        self.raw, self.pid = raw, pid
        self.full: dict[str, str] = {}

    def observations(self) -> Iterator[Observation]:
        later = [*self.timeline(), *self.speedscope()]
        dumps = [*self.dump("dump1"), *self.dump("dump2")]
        yield from dumps
        yield from self.collapsed()
        yield from later

    def path(self, pattern: str) -> Path:
        return self.raw.folder / pattern.format(self.pid)

    def stack(self, t: float, dt: float, pid: int, thread: str, frames: list[Any]) -> Observation:
        main = thread == "MainThread"
        return {
            "t": t,
            "kind": "stack",
            "pid": pid,
            "dt": round(dt, 4),
            "thread": thread,
            "main": main,
            "frames": frames,
        }

    def dump(self, name: str) -> Iterator[Observation]:
        path = self.path(name + "-{}.log")
        try:
            threads = json.loads(path.read_text())
        except (OSError, json.JSONDecodeError):
            return
        t = self.raw.start + CAPTURE_OFFSETS[name]
        for thread in threads:
            frames = [[f["name"], f["filename"], f["line"]] for f in thread["frames"]]
            for f in thread["frames"]:
                self.full.setdefault(f["short_filename"] or f["filename"], f["filename"])
            found = self.stack(t, 0.1, self.pid, thread["thread_name"] or "", frames)
            yield {**found, "active": thread["active"], "gil": thread["owns_gil"]}
            if found["main"]:
                yield {"t": t, "kind": "locals", "pid": self.pid, "values": integers(thread)}

    def timeline(self) -> Iterator[Observation]:
        """Chrome trace: B/E events in microseconds since the capture began."""
        path = self.path("timeline-{}.json")
        if not path.exists():
            return
        start = self.raw.start + CAPTURE_OFFSETS["timeline"]
        open_: dict[Any, list[Any]] = {}
        names: dict[Any, str] = {}
        since: dict[Any, float] = {}
        for event in json.loads(path.read_text()):
            key, t = (event["pid"], event["tid"]), event["ts"] / 1e6
            frames = open_.setdefault(key, [])
            if frames and t > since[key]:
                yield from self.pieces(start + since[key], start + t, key[0], names[key], frames)
            since[key] = t
            if event["name"].startswith("thread ("):
                names[key] = event["name"].partition("): ")[2]
            elif event["ph"] == "B":
                file = event["args"]["filename"]
                frames.append([event["name"], file, event["args"]["line"]])
            elif frames:
                frames.pop()

    def pieces(
        self, start: float, end: float, pid: int, thread: str, frames: list[Any]
    ) -> Iterator[Observation]:
        while start < end:
            dt = min(0.5, end - start)
            yield self.stack(start, dt, pid, thread, list(reversed(frames)))
            start += dt

    def speedscope(self) -> Iterator[Observation]:
        path = self.path("speed-{}.json")
        if not path.exists():
            return
        data = json.loads(path.read_text())
        table = [[f["name"], f["file"], f["line"]] for f in data["shared"]["frames"]]
        for profile in data["profiles"]:
            pid = int(profile["name"].split()[1])
            thread = profile["name"].partition('"')[2].rstrip('"')
            t = self.raw.start + CAPTURE_OFFSETS["speed"]
            for frames, dt in runs(profile["samples"], profile["weights"]):
                yield from self.pieces(t, t + dt, pid, thread, [table[i] for i in frames])
                t += dt

    def collapsed(self) -> Iterator[Observation]:
        """Aggregated raw output has no order: each stack is spread evenly over the capture."""
        path = self.path("stacks-{}.raw")
        if not path.exists():
            return
        start = self.raw.start + CAPTURE_OFFSETS["stacks"]
        for line in path.read_text().splitlines():
            text, count = line.rsplit(" ", 1)
            parts = text.split(";")
            pids = [int(p.split(":")[0].split()[1]) for p in parts if p.startswith("process ")]
            at = next(i for i, p in enumerate(parts) if p.startswith("thread ("))
            thread = parts[at].partition("): ")[2]
            frames = [self.frame(part) for part in reversed(parts[at + 1 :])]
            seconds = int(count) / 100
            for k in range(int(RAW_SECONDS)):
                yield self.stack(start + k, seconds / RAW_SECONDS, pids[-1], thread, frames)

    def frame(self, text: str) -> list[Any]:
        name, _, place = text.rpartition(" (")
        file, _, line = place.rstrip(")").rpartition(":")
        return [name, self.full.get(file, guess(file)), int(line or 0)]


def guess(file: str) -> str:
    """A full path for a shortened one that no other capture has shown in full."""
    if file.removesuffix(".py") in sys.stdlib_module_names or file.split("/", maxsplit=1)[0] in (
        "multiprocessing",
        "importlib",
        "json",
        "concurrent",
    ):
        return f"/usr/lib/python3.12/{file}"
    return f"/venv/lib/python3.12/site-packages/{file}" if "/" in file else file


def runs(samples: list[list[int]], weights: list[float]) -> Iterator[tuple[list[int], float]]:
    current, total = None, 0.0
    for sample, weight in zip(samples, weights, strict=True):
        if sample != current and current is not None:
            yield current, total
            total = 0.0
        current, total = sample, total + weight
    if current is not None:
        yield current, total


def integers(thread: dict[str, Any]) -> list[list[Any]]:
    return [
        [frame["name"], frame["filename"], local["name"], int(local["repr"])]
        for frame in thread["frames"]
        for local in frame.get("locals") or []
        if local["repr"].lstrip("-").isdigit()
    ]
