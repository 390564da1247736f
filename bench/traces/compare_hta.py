"""Idle time by stream, time and memory: gpuwhy trace against HolisticTraceAnalysis.

    python -m venv hta && hta/bin/pip install HolisticTraceAnalysis==0.5.0
    python bench/traces/compare_hta.py hta/bin/python TRACE... > bench/traces/results/hta.json

Both read the same file in turn, each in a process of its own, whole (HTA leaves out the last step
unless told not to) and with nanoseconds kept (HTA rounds to microseconds unless told not to).
gpuwhy makes its whole report; HTA the one breakdown.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def measured(command: list[str]) -> dict[str, Any]:
    """Output, seconds, CPU seconds and peak memory of a command."""
    environment = {**os.environ, "HTA_DISABLE_NS_ROUNDING": "1"}
    with tempfile.TemporaryFile() as out:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        out.seek(0)
        text = out.read().decode()
    if status:
        raise SystemExit(f"{command} ended with status {os.waitstatus_to_exitcode(status)}")
    return {
        "answer": json.loads(text[text.index("{") :]),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_bytes": usage.ru_maxrss * 1024,
    }


def ours(answer: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Stream -> category -> seconds, of ``gpuwhy trace --json``."""
    categories = ("host_wait", "kernel_wait", "other")
    rows = answer["tables"]["streams"]["rows"]
    return {str(row["stream"]): {c: row[c] for c in categories} for row in rows}


def largest_difference(
    one: dict[str, dict[str, float]], two: dict[str, dict[str, float]]
) -> dict[str, float]:
    """The largest difference of any stream's category, as a share of that stream's idle time, and
    of any stream's total."""
    by_category, by_total = 0.0, 0.0
    for stream, expected in two.items():
        total = sum(expected.values())
        for category, value in expected.items():
            difference = abs(one[stream].get(category, 0.0) - value)
            by_category = max(by_category, difference / total if total else difference)
        found = sum(one[stream].values())
        by_total = max(by_total, abs(found - total) / total if total else found)
    return {"category": round(by_category, 6), "total": round(by_total, 6)}


def compare(path: Path, hta_python: str) -> dict[str, Any]:
    """Both on one file."""
    command = [sys.executable, "-m", "gpuwhy.cli", "trace", "--json", str(path)]
    mine = measured(command)
    theirs = measured([hta_python, str(HERE / "hta_idle.py"), str(path)])
    streams, expected = ours(mine.pop("answer")), theirs.pop("answer")
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "gpuwhy": {**mine, "idle_seconds": streams},
        "hta": {**theirs, "idle_seconds": expected},
        "largest_difference": largest_difference(streams, expected),
        "times_faster": round(theirs["seconds"] / mine["seconds"], 1),
        "memory_ratio": round(mine["peak_bytes"] / theirs["peak_bytes"], 3),
    }


if __name__ == "__main__":
    made = []
    for name in sys.argv[2:]:
        made.append(compare(Path(name), sys.argv[1]))
        print(json.dumps({k: v for k, v in made[-1].items() if k not in ("gpuwhy", "hta")}),
              file=sys.stderr, flush=True)  # fmt: skip
    json.dump(made, sys.stdout, indent=1)
    print()
