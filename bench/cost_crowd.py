"""What the exporter costs the ranks of a crowded host, on a machine without a GPU.

    python3 -m bench.cost_crowd [--seconds 400] [--out FOLDER]

Eight ranks with 160 native threads and 64 workers in all share their cores; exporter and null
control have others. The turns are those of ``bench.cost``. ``crowd.json`` is for its ``--report``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.cost import prepare
from bench.cost_cores import here
from bench.cost_crowd_host import COMPUTING, WHOLE, Crowd
from bench.cost_measurement import Measurement

from bench import cost_report

START_S = 240.0
"""For all ranks and workers on few cores."""


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="bench.cost_crowd", description=__doc__.splitlines()[0])
    option = parser.add_argument
    option("--ranks", type=int, default=8, help="default: %(default)s")
    option("--threads", type=int, default=160, help="native, in all (default: %(default)s)")
    option("--workers", type=int, default=64, help="in all (default: %(default)s)")
    option("--seconds", type=float, default=400, help="for everything (default: %(default)s)")
    option("--window", type=float, default=4, help="seconds of a window (default: %(default)s)")
    option("--settle", type=float, default=14, help="seconds watched before the first window")
    option("--out", type=Path, default=Path(os.environ.get("OUT", ".")), help="folder of results")
    return parser.parse_args(arguments)


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The crowd under the exporter and its control, in turns."""
    cores, machine = here(), cost_report.machine()
    os.sched_setaffinity(0, cores.bench)
    threads, workers = options.threads // options.ranks, options.workers // options.ranks
    crowd = Crowd(options.ranks, threads, workers, cores.job, folder)
    one = Measurement(
        crowd,
        cores.exporter,
        folder / "watchers.log",
        window_s=options.window,
        settle_s=options.settle,
        peers=False,
        start_s=START_S,
    )
    began = time.time()
    one.run(time.monotonic() + options.seconds)
    shape = f"{options.ranks} ranks, {options.threads} threads, {options.workers} workers"
    return {
        "kind": "crowd",
        "t": began,
        "machine": machine,
        "cores": dataclasses.asdict(cores),
        "jobs": [
            {"variant": name, "job": shape, **one.result, "windows": timed(one.windows, name)}
            for name in (COMPUTING, WHOLE)
        ],
    }


def timed(windows: list[dict[str, Any]], series: str) -> list[dict[str, Any]]:
    """The same windows with the times of one series only: what a step computes, or whole steps."""
    kept = [{key: w[key] for key in w if key not in ("steps_us", WHOLE)} for w in windows]
    times = [w.get("steps_us" if series == COMPUTING else WHOLE, []) for w in windows]
    return [window | {"steps_us": steps} for window, steps in zip(kept, times, strict=True)]


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 when it was measured, else 1."""
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    prepare(options.seconds)
    folder = Path(tempfile.mkdtemp(prefix="crowd-"))
    try:
        result = measure(options, folder)
    except ValueError as error:
        sys.stderr.write(f"bench.cost_crowd: {error}\n")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    (options.out / "crowd.json").write_text(json.dumps(result, separators=(",", ":")))
    print(cost_report.text([result]))
    return 1 if "error" in result["jobs"][0] else 0


if __name__ == "__main__":
    sys.exit(main())
