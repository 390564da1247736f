"""Kineto files made by hand, for cases whose answer is known."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Event = dict[str, Any]

MAIN, AUTOGRAD = 100, 101
BASE_NS = 1_700_000_000_000_000_000


class KinetoFile:
    """Adds events in microseconds; ids follow by themselves."""

    def __init__(self, device: int = 0, **header: Any) -> None:
        self.header: dict[str, Any] = {"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS, **header}
        self.events: list[Event] = []
        self.device = device
        self._correlation = 0

    def span(self, name: str, start: float, length: float, **more: Any) -> None:
        """Something that the host does."""
        tid = more.pop("tid", MAIN)
        event: Event = {"ph": "X", "cat": more.pop("cat", "cpu_op"), "name": name, "pid": 1}
        self.events.append({**event, "tid": tid, "ts": start, "dur": length, "args": more})

    def step(self, number: int, start: float, length: float) -> None:
        """A step, as the profiler marks it."""
        self.span(f"ProfilerStep#{number}", start, length, cat="user_annotation")

    def call(self, name: str, start: float, length: float, tid: int = MAIN) -> int:
        """A CUDA call; its correlation."""
        self._correlation += 1
        args = {"correlation": self._correlation}
        self.events.append(
            {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": tid, "ts": start,
             "dur": length, "args": args}
        )  # fmt: skip
        return self._correlation

    def activity(self, correlation: int | None, start: float, length: float, **more: Any) -> None:
        """Something that the GPU does."""
        cat, name = more.pop("cat", "kernel"), more.pop("name", "gemm")
        args: dict[str, Any] = {"device": self.device, "stream": more.pop("stream", 7), **more}
        if correlation is not None:
            args["correlation"] = correlation
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": self.device, "tid": args["stream"],
             "ts": start, "dur": length, "args": args}
        )  # fmt: skip

    def launch(self, at: float, start: float, length: float, tid: int = MAIN, **more: Any) -> None:
        """A kernel with its launch, a call of 5 us."""
        operator = more.pop("operator", None)
        if operator:
            external = self._correlation + 1_000
            self.span(operator, at - 2, 9, tid=tid, **{"External id": external})
            more["External id"] = external
        call = "cudaMemcpyAsync" if more.get("cat") == "gpu_memcpy" else "cudaLaunchKernel"
        self.activity(self.call(call, at, 5, tid), start, length, **more)

    def text(self) -> str:
        return json.dumps({**self.header, "traceEvents": self.events})

    def write(self, path: Path) -> Path:
        data = self.text().encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path


def busy_steps(
    steps: int = 4, kernels: int = 10, wait: float = 0.0, rank: int | None = None
) -> KinetoFile:
    """A loop whose host waits ``wait`` us for the loader at each step's beginning, then launches
    ``kernels`` kernels of 100 us far ahead of the GPU."""
    header = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 2}}
    made = KinetoFile(**header)
    at = 1_000.0
    for number in range(steps):
        begun, length = at, wait + 20.0 + kernels * 100.0
        made.step(number, begun, length)
        if wait:
            name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
            made.span(name, begun, wait, cat="user_annotation")
        for i in range(kernels):
            launched = begun + wait + 5 + i * 10
            start = begun + wait + 20 + i * 100.0
            made.launch(launched, start, 100.0, operator="aten::mm")
        at += length
    return made


def names_of(events: Iterable[Event]) -> list[str]:
    return [event["name"] for event in events]
