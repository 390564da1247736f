"""What the exporter costs the jobs that it watches.

    python3 -m bench.cost --out "$OUT" --seconds 200
    python3 -m bench.cost --report cost.json [more.json ...] [alerts.json]

Planted jobs run one after the other on the GPU, each on cores of its own. Windows without anything
alternate with windows of the exporter at its defaults and windows of a null control (a process that
sleeps), both on other cores; what starting costs is left out by a guard before each window. Step
times are those of the job's own truth: on a GPU between CUDA events, else on the host. The command
writes ``cost.json`` after each job and prints a table; ``--report`` pools the files of several runs
and writes the figures into ``docs/cost.md``. Needs Python 3.11.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.cost_cores import Shares, here
from bench.cost_exporter import Control, Exporter, ExporterError
from bench.h200.job import JOBS, Job, JobError, free_port

from bench import cost_report, cost_stats, truth

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_JOBS = ("c01", "c35", "c03")
"""A job that keeps its GPU busy, one bound by launches, one bound by its loader."""
START_S = 60.0
GUARD_S = 1.0
"""After a start (once the exporter lists the job) and after a stop, before a window begins."""


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="bench.cost", description=__doc__.splitlines()[0])
    option = parser.add_argument
    option("variants", nargs="*", default=list(DEFAULT_JOBS), help="default: %(default)s")
    option("--seconds", type=float, default=200, help="for everything")
    option("--window", type=float, default=3, help="seconds of a window")
    option("--settle", type=float, default=3, help="seconds of steps before the first window")
    option("--out", type=Path, default=Path(os.environ.get("OUT", ".")), help="folder of results")
    option("--report", type=Path, nargs="+", metavar="FILE", help="write figures into the document")
    option("--document", type=Path, default=ROOT / "docs/cost.md", help="which document")
    return parser.parse_args(arguments)


class Measurement:
    """One job, watched in turns; ``result`` is what is kept of it."""

    def __init__(self, variant: str, options: argparse.Namespace, cores: Shares, folder: Path):
        entry = json.loads((JOBS / "variants.json").read_text())[variant]
        self.options, self.folder = options, folder
        self.job = Job(variant, entry, [0], cores.job, folder)
        log = folder / "exporter.log"
        self.exporter = Exporter(free_port(), cores.exporter, log)
        self.control = Control(cores.exporter, log)
        self.windows: list[dict[str, Any]] = []
        self.own: list[dict[str, Any]] = []
        self.took: dict[str, float] = {}
        self.result: dict[str, Any] = {"variant": variant, "job": entry["job"]}

    def run(self, deadline: float) -> None:
        """Start the job, take windows until the deadline, end everything."""
        began = time.monotonic()
        try:
            gate = self.folder / "gate"
            gate.touch()
            self.job.start(gate)
            self.job.wait(self.options.settle, min(START_S, deadline - time.monotonic()))
            self.result["start_s"] = round(time.monotonic() - began, 1)
            self._alternate(deadline)
        except (JobError, ExporterError, OSError, ValueError) as error:
            self.result["error"] = f"{type(error).__name__}: {error}"
        finally:
            self.exporter.stop()
            self.control.stop()
            self._keep()
            self.job.stop(0.0)

    def _alternate(self, deadline: float) -> None:
        """off, on, off, control, off, on, ... as long as two more windows fit."""
        self._window("off")
        least = 2 * self.options.window + 4 * GUARD_S
        for number in range(10_000):
            began = time.monotonic()
            watch = self._on if number % 2 == 0 else self._control
            if began + max(least, self.took.get(watch.__name__, 0.0)) > deadline:
                return
            watch()
            time.sleep(GUARD_S)
            self._window("off")
            self.took[watch.__name__] = time.monotonic() - began
            self.job.check()

    def _on(self) -> None:
        pid = self.job.ranks()[0].header["pid"]
        start_s = self.exporter.start(pid)
        start_cpu_s = self.exporter.cpu_s()
        time.sleep(GUARD_S)
        before, began = self.exporter.cpu_s(), time.monotonic()
        self._window("on")
        used, lasted = self.exporter.cpu_s() - before, time.monotonic() - began
        self.own.append(
            {
                "cores": used / lasted,
                "pss": self.exporter.pss(),
                "start_s": start_s,
                "start_cpu_s": start_cpu_s,
            }
        )
        self.exporter.stop()

    def _control(self) -> None:
        self.control.start()
        time.sleep(GUARD_S)
        self._window("control")
        self.control.stop()

    def _window(self, state: str) -> None:
        t0 = time.time()
        time.sleep(self.options.window)
        self.windows.append({"state": state, "t0": t0, "t1": time.time()})

    def _keep(self) -> None:
        time.sleep(0.3)  # the job hands its lines over every 0.1 s
        rank = self.job.ranks().get(0)
        rows = step_rows(rank) if rank else []
        for window in self.windows:
            window["steps_us"] = cost_stats.steps_inside(rows, window["t0"], window["t1"])
        self.result |= {
            "clock": "device" if rank and rank.device else "host",
            "windows": self.windows,
            "exporter": self.own,
        }


def step_rows(rank: truth.Rank) -> list[dict[str, float]]:
    """Begin and end of each step: on the device where it was timed there, else on the host."""
    if not rank.device:
        return rank.steps
    return [
        {"t0": row["t"] - sum(seconds for _, seconds in row["laps"]), "t": row["t"]}
        for row in rank.device
    ]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All jobs, each with an equal part of the time that is left."""
    deadline = time.monotonic() + options.seconds
    cores = here()
    results: dict[str, Any] = {
        "kind": "cost",
        "t": time.time(),
        "machine": cost_report.machine(),
        "cores": dataclasses.asdict(cores),
        "window_s": options.window,
        "jobs": [],
    }
    os.sched_setaffinity(0, cores.bench)
    folder = Path(tempfile.mkdtemp(prefix="cost-"))
    try:
        for number, variant in enumerate(options.variants):
            left = len(options.variants) - number
            now = time.monotonic()
            own = folder / variant
            own.mkdir()
            one = Measurement(variant, options, cores, own)
            one.run(now + (deadline - now) / left)
            results["jobs"].append(one.result)
            if one.result.get("error"):
                sys.stderr.write(f"{variant}: {one.result['error']}\n")
            (options.out / "cost.json").write_text(json.dumps(results, separators=(",", ":")))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return results


def prepare(seconds: float) -> None:
    """Our modules for every child; whatever hangs, nothing outlives ``seconds`` by much."""
    paths = [str(ROOT / "exporter"), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, lambda *_: sys.exit(1))
    signal.alarm(int(seconds) + 15)


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 when every job was measured, 1 otherwise, 2 for bad usage."""
    options = parse(arguments)
    if options.report:
        return cost_report.write(options.report, options.document)
    known = json.loads((JOBS / "variants.json").read_text())
    if unknown := [name for name in options.variants if name not in known]:
        sys.stderr.write(f"bench.cost: no such variant: {', '.join(unknown)}\n")
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    prepare(options.seconds)
    try:
        results = measure(options)
    except ValueError as error:
        sys.stderr.write(f"bench.cost: {error}\n")
        return 1
    print(cost_report.text([results]))
    return 1 if any("error" in job for job in results["jobs"]) else 0


if __name__ == "__main__":
    sys.exit(main())
