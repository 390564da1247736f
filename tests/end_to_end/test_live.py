"""Unmodified PyTorch jobs, watched live from outside, against the truth that they write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.supervisor import observe
from gpuwhy.pipeline import Pipeline
from gpuwhy.signals.row import RunSignals, Second

if find_spec("torch") is None:
    pytest.skip("needs torch", allow_module_level=True)

JOB = Path(__file__).with_name("job.py")
WATCH_S = 22.0
WARM_S = 60.0
DUMP_S = 0.05  # a dump is stamped when py-spy was started, and takes some tens of milliseconds


@dataclass(frozen=True)
class Watched:
    pid: int
    truth: list[dict[str, float]]
    seconds: list[Second]
    observations: list[Observation]
    verdict: dict[str, Any]

    def rows(self) -> list[tuple[int, RunSignals]]:
        return [
            (second.t, run)
            for second in self.seconds
            for row in second.rows
            for run in row.runs
            if run.pid == self.pid
        ]

    def entry(self) -> dict[str, Any]:
        (found,) = [g for g in self.verdict["gpus"] if g["pid"] == self.pid]
        return dict(found)

    def data_share(self, start: float, end: float) -> float:
        """Share of [start, end) that the loop waited for its batch, by its own clock."""
        waits = ((s["start"], s["data"]) for s in self.truth)
        return sum(max(0.0, min(b, end) - max(a, start)) for a, b in waits) / (end - start)

    def steps_at(self, t: float) -> set[int]:
        """The steps that may have been in progress at t, give or take the length of a dump."""
        starts = [s["start"] for s in self.truth]
        first, last = (bisect_right(starts, t + d) - 1 for d in (-DUMP_S, DUMP_S))
        return {int(s["step"]) for s in self.truth[max(0, first) : last + 1]}


@contextmanager
def job(folder: Path, *arguments: str, user: str | None = None) -> Iterator[tuple[int, Path]]:
    folder.chmod(0o777)
    truth = folder / "truth.jsonl"
    prefix = ["setpriv", f"--reuid={user}", "--clear-groups", "--"] if user else []
    command = [*prefix, sys.executable, str(JOB), str(truth), *arguments]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GPUWHY_")}
    process = subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.PIPE)
    try:
        deadline = time.time() + WARM_S
        while not truth.exists() or len(truth.read_text().splitlines()) < 10:
            assert process.poll() is None, (process.stderr or sys.stdin).read()
            assert time.time() < deadline, "the job did not begin to train"
            time.sleep(0.2)
        yield process.pid, truth
    finally:
        process.kill()
        process.wait()


def watch(folder: Path, *arguments: str, user: str | None = None) -> Watched:
    pipeline = Pipeline()
    seen: list[Observation] = []
    seconds: list[Second] = []
    with job(folder, *arguments, user=user) as (pid, truth):
        with observe({"pace": "close", "max_overhead": 0.3}) as batches:
            until = time.time() + WATCH_S
            for batch in batches:
                seen += batch
                seconds += pipeline.feed(batch)
                if time.time() > until:
                    break
        lines = [json.loads(line) for line in truth.read_text().splitlines()[:-1]]
    return Watched(pid, lines, seconds, seen, pipeline.verdicts(15))


def check_steps(watched: Watched) -> None:
    exported = {(r.step_t, r.step) for _, r in watched.rows() if r.step is not None}
    assert len(exported) >= 2
    for t, step in exported:
        assert t is not None
        assert step in watched.steps_at(t), f"step {step} at {t}"


def check_phases(watched: Watched) -> None:
    """Shares of the data phase within 5 points of the truth in 95 % of 10 s windows."""
    rows = [(t, run) for t, run in watched.rows() if run.phases is not None]
    data = ("data_wait", "data_inline", "data_sampler")
    windows = [rows[i : i + 10] for i in range(2, len(rows) - 9)]
    assert len(windows) >= 3
    good = 0
    for window in windows:
        seen = sum(sum((r.phases or {}).get(p, 0.0) for p in data) for _, r in window) / 10
        good += abs(seen - watched.data_share(window[0][0], window[-1][0] + 1)) <= 0.05
    assert good >= 0.95 * len(windows)


def test_starved_by_its_workers(tmp_path: Path) -> None:
    watched = watch(tmp_path, "2", "12", "20")
    entry = watched.entry()
    assert (entry["gpu"], entry["accounts"], entry["cause"]) == (None, {}, "data")
    function = entry["causes"][0]["function"]
    assert function["name"].endswith("encode")
    assert function["file"] == str(JOB)
    body = JOB.read_text().splitlines()
    assert "def encode" in "".join(body[function["line"] - 5 : function["line"]])
    assert any(blind["signal"] == "nvml" for blind in entry["cannot_see"])
    queues = [run.queue for _, run in watched.rows() if run.queue is not None]
    assert queues
    assert sum(q.busy_workers for q in queues) / len(queues) > 1.5
    check_steps(watched)
    check_phases(watched)


def test_loading_in_the_rank_itself(tmp_path: Path) -> None:
    watched = watch(tmp_path, "0", "4", "30")
    entry = watched.entry()
    assert entry["cause"] == "data"
    assert entry["causes"][0]["function"]["name"].endswith("encode")
    assert "num_workers" in entry["causes"][0]["next_action"]
    check_steps(watched)
    check_phases(watched)


def test_tiny_operations_and_a_starved_loop(tmp_path: Path) -> None:
    """In a loop of operations of some tens of microseconds reads fail, and only there: the wait
    for data beside it must not seem longer for it. (One worker: two that compute, the loop and the
    observer would be too much for two cores, and that would be the cause.)"""
    watched = watch(tmp_path, "1", "8", "20", "tiny")
    assert watched.entry()["cause"] == "data"
    check_steps(watched)
    check_phases(watched)


def test_tiny_operations_and_loading_in_the_rank_itself(tmp_path: Path) -> None:
    """Half of all reads in the step fail, none beside it."""
    watched = watch(tmp_path, "0", "4", "30", "tiny")
    assert watched.entry()["cause"] == "data"
    check_steps(watched)
    check_phases(watched)


def test_healthy(tmp_path: Path) -> None:
    watched = watch(tmp_path, "2", "0.5", "60")
    assert watched.entry()["cause"] == "none"
    queues = [run.queue for _, run in watched.rows() if run.queue is not None]
    assert queues
    assert sum(q.idle_workers for q in queues) / len(queues) > 1.5
    check_steps(watched)
    check_phases(watched)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a job as another user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_a_job_of_another_user() -> None:
    with TemporaryDirectory() as folder:  # pytest's are closed to others
        watched = watch(Path(folder), "2", "12", "20", user="nobody")
    assert watched.entry()["cause"] == "data"
    check_steps(watched)
