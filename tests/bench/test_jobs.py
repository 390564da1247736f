"""Real planted jobs, small and on the CPU, against what they write of themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from bench import truth

pytest.importorskip("torch")


def run(jobs: Path, job: str, variant: str, path: Path, steps: int, **env: str) -> truth.Rank:
    """Run a variant until it has made some steps, then ask it to stop."""
    own = {"JOB_SCALE": "tiny", "JOB_VARIANT": variant, "TRUTH_FILE": str(path)}
    popen = subprocess.Popen(
        [sys.executable, str(jobs / job)],
        env={**os.environ, "OMP_NUM_THREADS": "1", **own, **env},
        stderr=subprocess.PIPE,
        process_group=0,
    )
    try:
        until = time.monotonic() + 90
        while time.monotonic() < until and popen.poll() is None:
            if path.exists() and (ranks := truth.load(path)) and len(ranks[0].steps) >= steps:
                break
            time.sleep(0.1)
        os.kill(popen.pid, signal.SIGTERM)
        _, errors = popen.communicate(timeout=60)
        assert popen.returncode == 0, errors.decode()
    finally:
        if popen.poll() is None:
            os.killpg(popen.pid, signal.SIGKILL)
            popen.wait()
    return truth.load(path)[0]


def check_steps(rank: truth.Rank) -> None:
    """Steps follow each other, and their laps fill them."""
    assert rank.ended
    assert [step["step"] for step in rank.steps] == list(range(len(rank.steps)))
    for before, after in zip(rank.steps, rank.steps[1:], strict=False):
        assert after["t0"] == before["t"]
    for step in rank.steps:
        assert sum(lap[1] for lap in step["laps"]) == pytest.approx(
            step["t"] - step["t0"], abs=1e-4
        )


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Popen's process_group")
def test_a_job_that_loads_inline_loses_what_its_variant_says(jobs: Path, tmp_path: Path) -> None:
    rank = run(jobs, "gpt.py", "c05", tmp_path / "t", 12)
    check_steps(rank)
    assert rank.header["fault"] == "data"
    assert rank.header["framework"] == "pytorch"
    t0, t1 = rank.steps[3]["t0"], rank.steps[-1]["t"]
    # The planted item takes as much CPU as the calibration says, but other tests share the cores:
    # only a loader that costs nothing, or everything, would be wrong.
    assert 0.2 < truth.phases(rank, t0, t1)["data_wait"] < 0.9
    healthy_s = (t1 - t0) / (len(rank.steps) - 3) / 2
    assert truth.lost(rank, t0, t1, healthy_s) == pytest.approx(0.5, abs=0.01)
    assert truth.expected(rank, t0, t1, healthy_s).must == {"data"}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Popen's process_group")
def test_a_job_with_workers_tells_its_queue(jobs: Path, tmp_path: Path) -> None:
    rank = run(jobs, "gpt.py", "c11", tmp_path / "t", 9)
    check_steps(rank)
    t0, t1 = rank.steps[3]["t0"], rank.steps[-1]["t"]
    shares = truth.phases(rank, t0, t1)
    assert shares["user"] > 0.3
    assert shares["data_wait"] < 0.2
    queue = truth.queue_at(rank, t1)
    assert queue
    assert 0 <= queue["ready"] <= queue["outstanding"] <= 4


def test_paces(job_module: Callable[[str], ModuleType]) -> None:
    pace = job_module("pace").Pace(step_s=0.05, dispatch_s=0.02)
    assert pace.serial(0.5) == pytest.approx(0.05)
    assert pace.overlapped(0.5) == pytest.approx(0.08)
    assert pace.overlapped(0.0) == pytest.approx(0.03)
    assert pace.per_item(0.5, workers=4, batch=16) == pytest.approx(0.025)
    assert pace.per_item(0.5, workers=0, batch=16) == pytest.approx(0.005)


def test_kernels_copies_and_collectives_are_told_apart(
    job_module: Callable[[str], ModuleType],
) -> None:
    def event(category: str, name: str, start_us: float, us: float) -> dict[str, object]:
        own = {"ph": "X", "cat": category, "name": name, "ts": start_us, "dur": us}
        return own | {"args": {"device": 0}}

    events = [
        event("kernel", "gemm", 0, 100),
        event("kernel", "ncclDevKernel_AllReduce", 50, 150),
        event("gpu_memcpy", "Memcpy HtoD", 150, 100),
        event("cpu_op", "aten::mm", 0, 1000),
    ]
    found = job_module("device_tail").summary(events)["0"]
    assert found["kernel_s"] == pytest.approx(200e-6)
    assert found["nccl_only_s"] == pytest.approx(100e-6)
    assert found["copy_only_s"] == pytest.approx(50e-6)
    assert found["kernels"] == 2
