"""Does the exporter grow? Thousands of job lives, looked at again and again.

    python -m bench.soak [--lives 10000] [--gpus 4] [--out soak.json]
    python -m bench.soak --live [--lives 100]

The first runs what serves (state, ledger, exposition, history, verdicts) and what knows the jobs
(the table of processes, over files like those of /proc) in this process, as fast as they go. The
second runs ``gpuwhy serve`` beside real processes that live for seconds, py-spy included. Exit
status 1 where something grew.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from bench.soak_jobs import LIFE_S, Jobs
from bench.soak_processes import Churn

from gpuwhy.expose import exposition
from gpuwhy.expose.history import Scope, history
from gpuwhy.expose.state import State

SCRAPE_S = 5
VERDICTS_S = 60
MARKS = 12
ROOM = {"rss_mb": 4.0, "descriptors": 2.0, "threads": 1.0, "series": 0.0, "kept": 4.0}
"""How much the last third may lie above the middle one (medians)."""
ROOM_LIVE = {"rss_mb": 6.0, "descriptors": 4.0, "threads": 2.0, "series": 250.0}
"""The same where series are those of one moment, and a dozen jobs end in a minute."""


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="bench.soak", description=__doc__.splitlines()[0])
    option = parser.add_argument
    option("--lives", type=int, help="of jobs (default: 10000; 100 with --live)")
    option("--gpus", type=int, default=4, help="default: %(default)s")
    option("--live", action="store_true", help="real processes beside gpuwhy serve")
    option("--out", type=Path, help="file for the result as JSON")
    return parser.parse_args(arguments)


def soak(lives: int, gpus: int, folder: Path) -> list[dict[str, float]]:
    """Let so many jobs live and die; the marks on the way."""
    jobs, churn = Jobs(gpus), Churn(folder, gpus)
    state = State(clock=lambda: float(jobs.now))
    marks: list[dict[str, float]] = []
    series = 0
    while jobs.lives < lives:
        state.feed(jobs.second())
        churn.second()
        if jobs.now % SCRAPE_S == 0:
            series = max(series, exposition.render(state.view(), "")[2].series)
        if jobs.now % VERDICTS_S == 0:
            state.verdicts(300.0)
            history(state.entries(), Scope())
        if jobs.lives >= (len(marks) + 1) * lives / MARKS:
            marks.append(mark(jobs, series, churn))
            series = 0
    return marks


def mark(jobs: Jobs, series: int, churn: Churn) -> dict[str, float]:
    """What must not grow, as it is now."""
    gc.collect()
    own = psutil.Process()
    return {
        "lives": jobs.lives,
        "rss_mb": round(own.memory_info().rss / 1e6, 1),
        "descriptors": own.num_fds(),
        "threads": threading.active_count(),
        "series": series,
        "kept": churn.kept(),
    }


def grown(marks: Sequence[dict[str, float]], rooms: dict[str, float]) -> dict[str, float]:
    """What grew from the middle third to the last, and by how much. The first third warms up:
    buffers of 15 min and caches fill."""
    third = len(marks) // 3
    before, after = marks[third : 2 * third], marks[2 * third :]
    found = {}
    for name, room in rooms.items():
        more = median(m[name] for m in after) - median(m[name] for m in before)
        if more > room:
            found[name] = round(more, 1)
    return found


def median(values: Any) -> float:
    """The middle one."""
    ordered = sorted(values)
    return float(ordered[len(ordered) // 2])


def main() -> int:
    options = parse()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpuwhy-soak-") as folder:
        if options.live:
            from bench.soak_live import soak_live

            marks = soak_live(options.lives or 100, options.gpus, Path(folder))
        else:
            marks = soak(options.lives or 10_000, options.gpus, Path(folder))
    result = {
        "kind": "soak_live" if options.live else "soak",
        "seconds": round(time.monotonic() - began, 1),
        "life_s": LIFE_S,
        "marks": marks,
        "grown": grown(marks, ROOM_LIVE if options.live else ROOM),
    }
    text = json.dumps(result, indent=1)
    sys.stdout.write(text + "\n")
    if options.out:
        options.out.write_text(text + "\n")
    return 1 if result["grown"] else 0


if __name__ == "__main__":
    sys.exit(main())
