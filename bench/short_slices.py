"""What short time slices on the CPU change on a full host: `python -m bench.short_slices [PAIRS]`.

A loop that waits for its one worker for two thirds of each step is sampled in windows, in turn with
the kernel's own slices and with short ones (`observe/time_slice.py`), on two of the CPUs: with the
loop and the worker both are busy in its last third. Told are, for each kind, the share of the
waits that was seen less the true one, steps a second, and the sampler's CPU, each with a 95 %
interval over the pairs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from bench.cost_stats import student

from gpuwhy.observe import pyspy, pyspy_formats
from gpuwhy.observe.stacks_spans import Known, spans
from gpuwhy.observe.time_slice import ask_for_short_slices

JOB = Path(__file__).parents[1] / "tests/end_to_end/job.py"
WORK = ("1", "8", "20", "tiny")  # workers, milliseconds for an item and for a step
HZ, WINDOW_S, PAIRS = 100, 5.0, 12
WAITS = ("dataloader.py", "queues.py", "connection.py", "selectors.py")
Figures = tuple[float, float, float]
"""Error of the share (points), steps a second, CPU of the sampler (percent of a core)."""


def window(pid: int, truth: Path, short: bool) -> Figures:
    """One record, made by a thread of its own."""
    outcome: list[pyspy.Outcome] = []

    def watch() -> None:
        if short and not ask_for_short_slices():
            raise SystemExit("short time slices cannot be asked for here")
        capture = pyspy.record(pyspy.executable(), pid, HZ, int(2 * WINDOW_S))
        time.sleep(WINDOW_S)
        capture.signal(signal.SIGINT)
        while (found := capture.poll()) is None:
            time.sleep(0.01)
        outcome.append(found)

    thread = threading.Thread(target=watch)
    thread.start()
    thread.join()
    (found,) = outcome
    trace, log = pyspy_formats.parse_trace(found.data), found.messages
    start = pyspy_formats.began(log) or found.written - trace.end
    failed, stacks = pyspy_formats.failed_reads(log), pyspy_formats.stacks_seen(log)
    seen, _ = spans(trace, start, HZ, Known(), failed, stacks)
    seen = [span for span in seen if span.name == "MainThread"]
    begin, end = seen[0].t, seen[-1].t + seen[-1].dt
    waited = sum(span.dt for span in seen if any(f[1].endswith(WAITS) for f in span.frames))
    steps = [json.loads(line) for line in truth.read_text().splitlines()[:-1]]
    waits = ((s["start"], s["data"]) for s in steps)
    true = sum(max(0.0, min(b, end) - max(a, begin)) for a, b in waits)
    done = [s["end"] for s in steps if begin <= s["end"] < end]
    rate = (len(done) - 1) / (done[-1] - done[0])
    return 100 * (waited - true) / (end - begin), rate, 100 * found.cpu_s / (end - begin)


def interval(values: np.ndarray) -> str:
    """Mean and its 95 % interval."""
    half = student(len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return f"{values.mean():+.2f} ± {half:.2f}"


def main(pairs: int = PAIRS) -> None:
    """Run the job, watch it in turns, print the table."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    with tempfile.TemporaryDirectory() as folder:
        truth = Path(folder) / "truth"
        job = subprocess.Popen([sys.executable, JOB, truth, *WORK])
        try:
            while not truth.exists() or len(truth.read_text().splitlines()) < 20:
                time.sleep(0.2)
            rows = [
                [window(job.pid, truth, short) for short in (False, True)] for _ in range(pairs)
            ]
        finally:
            job.kill()
    table = np.array(rows)  # pair, kind, figure
    print(f"{pairs} pairs of windows of {WINDOW_S:.0f} s")
    for i, name in enumerate(("points too many", "steps a second", "sampler, % of a core")):
        own, short = table[:, 0, i], table[:, 1, i]
        print(f"{name:22} {interval(own)}   short {interval(short)}   {interval(short - own)}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
