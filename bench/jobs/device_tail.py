"""Kernel and copy seconds of a few steps, profiled when the job is about to end anyway."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

Interval = tuple[float, float]


class DeviceTail:
    """Profiles the device side of ``steps`` steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.done = 0
        torch.cuda.synchronize()
        self.profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        self.profile.start()
        self.began = time.perf_counter()

    def enough(self) -> bool:
        """Count one more step."""
        self.done += 1
        return self.done >= self.steps

    def stop(self) -> dict[str, Any]:
        """Seconds over the profiled steps; ``devices`` lists each GPU apart."""
        torch.cuda.synchronize()
        wall = time.perf_counter() - self.began
        self.profile.stop()
        handle, name = tempfile.mkstemp(suffix=".json")
        os.close(handle)
        path = Path(name)
        self.profile.export_chrome_trace(name)
        events = json.loads(path.read_text())["traceEvents"]
        path.unlink()
        return {"steps": self.done, "wall_s": wall, "devices": summary(events)}


def summary(events: Iterable[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Per device: seconds with a kernel, with an NCCL kernel, with a copy and no kernel."""
    rows: dict[str, list[tuple[str, str, Interval]]] = {}
    for event in events:
        category = event.get("cat")
        if event.get("ph") == "X" and category in ("kernel", "gpu_memcpy", "gpu_memset"):
            span = (event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6)
            device = str(event.get("args", {}).get("device", 0))
            rows.setdefault(device, []).append((category, event["name"].lower(), span))
    return {device: _device(found) for device, found in rows.items()}


def _device(rows: list[tuple[str, str, Interval]]) -> dict[str, float]:
    kernels = [span for category, _, span in rows if category == "kernel"]
    nccl = [span for category, name, span in rows if category == "kernel" and "nccl" in name]
    own = [span for category, name, span in rows if category == "kernel" and "nccl" not in name]
    copies = [span for category, _, span in rows if category == "gpu_memcpy"]
    busy = union(kernels)
    return {
        "kernel_s": busy,
        "nccl_only_s": busy - union(own),
        "nccl_s": union(nccl),
        "copy_only_s": union(kernels + copies) - busy,
        "kernels": len(kernels),
    }


def union(spans: Iterable[Interval]) -> float:
    """Total length that the intervals cover."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted(spans):
        if stop > end:
            total += stop - max(start, end)
            end = stop
    return total
