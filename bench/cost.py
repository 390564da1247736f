"""What the exporter costs the jobs that it watches.

    python3 -m bench.cost --out "$OUT" --seconds 540
    python3 -m bench.cost --report cost.json [more.json ...] [alerts.json]

Planted jobs run one after the other on the GPU, each on cores of its own. The exporter at its
defaults and a null control (a process that sleeps) are started once for each job and switched on
and off, in an order drawn by lot, with a window without anything between any two; their peers
(py-spy, a poll of NVML) take a turn each. Step times are those of the job's own truth: on a GPU
between CUDA events, else on the host. ``cost.json`` is written after each job; ``--report`` pools
the files of several runs and writes the figures into ``docs/cost.md``. Needs Python 3.11.
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
from bench.cost_measurement import Measurement, Planted
from bench.cost_schedule import OTHERWISE, PLANS
from bench.h200.job import JOBS

from bench import cost_report

ROOT = Path(__file__).resolve().parents[1]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="bench.cost", description=__doc__.splitlines()[0])
    option = parser.add_argument
    option("variants", nargs="*", default=list(PLANS), help=f"default: {' '.join(PLANS)}")
    option("--seconds", type=float, default=540, help="for everything (default: %(default)s)")
    option("--window", type=float, help="seconds of a window; default: by job")
    option("--turns", type=int, help="watched windows a job; default: as many as there is time for")
    option("--settle", type=float, default=12, help="seconds watched before the first window")
    option("--no-peers", action="store_true", help="the exporter and the null control only")
    option("--out", type=Path, default=Path(os.environ.get("OUT", ".")), help="folder of results")
    option("--report", type=Path, nargs="+", metavar="FILE", help="write figures into the document")
    option("--document", type=Path, default=ROOT / "docs/cost.md", help="which document")
    return parser.parse_args(arguments)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All jobs, each with its part of the time that is left."""
    deadline = time.monotonic() + options.seconds
    cores = here()
    results: dict[str, Any] = {
        "kind": "cost",
        "t": time.time(),
        "machine": cost_report.machine(),
        "cores": dataclasses.asdict(cores),
        "jobs": [],
    }
    os.sched_setaffinity(0, cores.bench)
    folder = Path(tempfile.mkdtemp(prefix="cost-"))
    try:
        for number, variant in enumerate(options.variants):
            shares = [PLANS.get(name, OTHERWISE).share for name in options.variants[number:]]
            now = time.monotonic()
            own = folder / variant
            own.mkdir()
            one = measured(variant, options, cores, own, (deadline - now) * shares[0] / sum(shares))
            results["jobs"].append(one)
            for trouble in filter(None, (one.get("error"), *one.get("notes", ()))):
                sys.stderr.write(f"{variant}: {trouble}\n")
            (options.out / "cost.json").write_text(json.dumps(results, separators=(",", ":")))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return results


def measured(
    variant: str, options: argparse.Namespace, cores: Shares, folder: Path, seconds: float
) -> dict[str, Any]:
    """One job for so many seconds, its start included."""
    entry = json.loads((JOBS / "variants.json").read_text())[variant]
    plan = PLANS.get(variant, OTHERWISE)
    job = Planted(variant, entry, cores.job, folder)
    one = Measurement(
        job,
        cores.exporter,
        folder / "watchers.log",
        window_s=options.window or plan.window_s,
        settle_s=options.settle,
        peers=plan.peers and not options.no_peers,
        most=options.turns,
    )
    one.run(time.monotonic() + seconds)
    return {"variant": variant, "job": entry["job"], **job.about(), **one.result}


def prepare(seconds: float) -> None:
    """Our modules for every child; whatever hangs, nothing outlives ``seconds`` by much."""
    paths = [str(ROOT / "exporter"), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    sys.path[:0] = paths[:1]
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
