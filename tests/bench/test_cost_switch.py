"""A real tree of processes with a real py-spy in it: stopped, then going on as if nothing was."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

if sys.version_info < (3, 11):
    pytest.skip("Popen's process_group", allow_module_level=True)

from bench.cost_switch import freeze, state, thaw
from bench.h200.processes import descendants, end, spawn

from gpuwhy.observe import pyspy

BUSY = "while True: sum(range(1000))"
WATCHER = """
import subprocess, sys, time
executable, pid, output, done = sys.argv[1:]
child = subprocess.Popen([sys.executable, "-c", "while True: sum(range(1000))"])
options = ["--nonblocking", "--rate", "20", "--duration", "600", "--format", "raw"]
record = [executable, "record", *options, "--pid", pid, "--output", output]
code = subprocess.Popen(record, start_new_session=True).wait()
open(done, "w").write(str(code))
time.sleep(600)
"""


def wait_for(true: Callable[[], object], seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_tree_stops_and_goes_on_and_its_record_ends_with_what_it_saw(tmp_path: Path) -> None:
    output, done = tmp_path / "stacks.raw", tmp_path / "done"
    job = subprocess.Popen([sys.executable, "-c", BUSY])
    arguments = [str(pyspy.executable()), str(job.pid), str(output), str(done)]
    watcher = spawn([sys.executable, "-c", WATCHER, *arguments], {}, tmp_path / "log")
    try:
        wait_for(lambda: len(descendants([watcher.pid])) == 3)
        time.sleep(1.0)
        freeze(watcher.pid)
        left = {pid: state(pid) for pid in descendants([watcher.pid])}
        assert list(left.values()).count("T") == 2, left
        assert set(left.values()) <= {"T", "Z"}, left
        assert output.read_text().strip()
        assert not done.exists()
        used = {pid: psutil.Process(pid).cpu_times()[:2] for pid in left}
        time.sleep(0.3)
        assert used == {pid: psutil.Process(pid).cpu_times()[:2] for pid in left}
        assert state(job.pid) in ("R", "S")
        thaw(watcher.pid)
        wait_for(done.exists)
        wait_for(lambda: done.read_text() == "0")
    finally:
        end([watcher.pid, job.pid], [watcher, job])
