"""The crowded host: its ranks are as crowded as they are said to be, and time themselves."""

from __future__ import annotations

import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

if find_spec("torch") is None:
    pytest.skip("needs torch", allow_module_level=True)
if sys.version_info < (3, 11):
    pytest.skip("Popen's process_group", allow_module_level=True)

from bench.cost_crowd_host import Crowd
from bench.h200.job import JobError

from bench import cost_crowd


def test_a_small_crowd(tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))[:1]
    crowd = Crowd(2, threads=20, workers=2, cores=cores, folder=tmp_path)
    crowd.start()
    try:
        until = time.monotonic() + 120
        while not crowd.steady(0.5):
            crowd.check()
            assert time.monotonic() < until
            time.sleep(0.3)
        for rank in map(psutil.Process, crowd.pids()):
            assert rank.num_threads() >= 20
            assert len(rank.children()) == 2
        series = crowd.series()
        psutil.Process(crowd.pids()[1]).kill()
        with pytest.raises(JobError, match="-9"):
            while time.monotonic() < until:
                crowd.check()
                time.sleep(0.05)
    finally:
        crowd.stop()
    assert list(series) == ["computing", "whole step"]
    assert all(row["t"] > row["t0"] for rows in series.values() for row in rows)
    spent = [sum(row["t"] - row["t0"] for row in rows) for rows in series.values()]
    assert spent[0] < spent[1], "computing is a part of the step"


def test_windows_are_told_by_what_a_step_computes_and_by_whole_steps() -> None:
    windows = [{"state": "on", "t0": 1.0, "steps_us": [10], "whole step": [30, 40]}]
    assert cost_crowd.timed(windows, "computing") == [{"state": "on", "t0": 1.0, "steps_us": [10]}]
    assert cost_crowd.timed(windows, "whole step")[0]["steps_us"] == [30, 40]
    assert cost_crowd.timed([{"state": "off"}], "whole step") == [{"state": "off", "steps_us": []}]
