"""One job in a process of its own: warmed up, timed, run for as long as wanted, then profiled.

    python play.py NAME FOLDER

Writes FOLDER/NAME.json.gz, a Kineto trace without flow arrows, and FOLDER/NAME.truth.json. Files
tell the two processes of each other: NAME.go (may use the GPU), NAME.running, NAME.stop,
NAME.profiled.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, schedule
from torch.profiler import profile as torch_profile

from jobs import JOBS, Job, Step

WARM_UP, TIMED, ACTIVE = 10, 20, 4
FLOWS = ("ac2g", "fwdbwd", "async")
LONGEST_S = 60.0
POLL_S = 0.02


def synchronize(cuda: bool) -> None:
    """Wait for the GPU."""
    if cuda:
        torch.cuda.synchronize()


def timed(step: Step, cuda: bool) -> float:
    """Seconds of a step without the profiler, after the warm-up."""
    for number in range(WARM_UP):
        step(number)
    synchronize(cuda)
    begun = time.perf_counter()
    for number in range(TIMED):
        step(number)
    synchronize(cuda)
    return (time.perf_counter() - begun) / TIMED


def train(step_of: Step, stop: Path) -> dict[str, float]:
    """Run until the file is there; how many steps a second it did."""
    begun, step = time.perf_counter(), 0
    while not stop.exists() and time.perf_counter() < begun + LONGEST_S:
        step_of(step)
        step += 1
    seconds = time.perf_counter() - begun
    return {"steps": step, "seconds": seconds, "step_seconds": seconds / max(1, step)}


def profile(step: Step, path: Path, cuda: bool, *, stacks: bool) -> None:
    """Profile ACTIVE steps into PATH, not yet trimmed."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with torch_profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=3, active=ACTIVE, repeat=1),
        with_stack=stacks,
    ) as profiler:
        for number in range(1 + 3 + ACTIVE):
            step(number)
            profiler.step()
        synchronize(cuda)
    profiler.export_chrome_trace(str(path))


def trim(path: Path) -> None:
    """Leave out the arrows, which say what the correlations say, and pack the file."""
    trace = json.loads(path.read_text())
    trace["traceEvents"] = [e for e in trace["traceEvents"] if e.get("cat") not in FLOWS]
    with gzip.GzipFile(f"{path}.gz", "wb", 9, mtime=0) as packed:
        packed.write(json.dumps(trace, separators=(",", ":")).encode())
    path.unlink()


def truth(job: Job, cuda: bool) -> dict[str, Any]:
    """A step's time with and without the planted fault, and the share that it costs."""
    made: dict[str, Any] = {"step_seconds": timed(job.step, cuda)}
    if job.mended is not None:
        made["mended_step_seconds"] = timed(job.mended, cuda)
        made["lost"] = max(0.0, 1 - made["mended_step_seconds"] / made["step_seconds"])
    return made


def main(name: str, folder: Path) -> None:
    """All of it, in the order of the module's text."""
    go, running, stop, profiled = (
        folder / f"{name}.{mark}" for mark in ("go", "running", "stop", "profiled")
    )
    while not go.exists():
        time.sleep(POLL_S)
    cuda = torch.cuda.is_available()
    if not cuda:
        torch.set_num_threads(1)
    job = JOBS[name](torch.device("cuda" if cuda else "cpu"))
    made = truth(job, cuda)
    running.touch()
    made["while_recorded"] = train(job.step, stop)
    path = folder / f"{name}.json"
    profile(job.step, path, cuda, stacks=job.stacks)
    profiled.touch()
    trim(path)
    (folder / f"{name}.truth.json").write_text(json.dumps(made, indent=1))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
