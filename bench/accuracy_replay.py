"""How fast an hour of one GPU is replayed: a kept recording, laid end to end.

    python -m bench.accuracy_replay [RECORDING] [--write]

``--write`` keeps the figure in ``bench/results/replay.json`` for docs/accuracy.md; the time depends
on the machine, so it is not measured with the rest.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.accuracy_jobs import RECORDINGS

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "replay.json"
HOUR_S = 3600.0
GRID_S = 0.2
"""A shift by whole cells keeps the rings on their grid."""


def hour(observations: list[Observation]) -> Iterator[Observation]:
    """The recording again and again, moved on in time, until an hour is full."""
    first, last = observations[0]["t"], max(o["t"] for o in observations)
    length = round((last - first) / GRID_S + 1) * GRID_S
    for turn in range(int(HOUR_S / length) + 1):
        for observation in observations:
            yield {**observation, "t": observation["t"] + turn * length}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recording", type=Path, nargs="?", default=RECORDINGS / "c09.gpuwhy.gz")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    observations = list(read(options.recording)[1])
    gpus = len({o["uuid"] for o in observations if o["kind"] == "gpu_info"})
    moved = list(hour(observations))
    began = time.process_time()
    pipeline = Pipeline()
    pipeline.feed(moved)
    pipeline.finish()
    pipeline.verdicts(60)
    took = time.process_time() - began
    found: dict[str, Any] = {
        "recording": options.recording.name,
        "gpus": gpus,
        "observations": len(moved),
        "observed_s": round(moved[-1]["t"] - moved[0]["t"]),
        "took_s": round(took, 1),
        "factor": round((moved[-1]["t"] - moved[0]["t"]) * gpus / took),
        "machine": f"one core of {_cpu()}, Python {platform.python_version()}",
    }
    print(json.dumps(found, indent=1))
    if options.write:
        RESULT.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    raise SystemExit(main())
