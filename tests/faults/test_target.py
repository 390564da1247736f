"""What a watched process may do: exit, become another, fork, be stopped, be a zombie, come back."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.faults.rig import Rig

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


@pytest.fixture
def watching(shared: Rig) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts a job that holds the first GPU, and waits until it is known as a rank."""

    def start(*arguments: object) -> subprocess.Popen[bytes]:
        process = shared.start(*arguments)
        shared.script(f"process 0 {process.pid} 1073741824 compute")
        shared.wait(lambda: is_rank(shared, process.pid), "the rank")
        return process

    return start


def is_rank(rig: Rig, pid: int) -> bool:
    return rig.processes().get(pid, {}).get("role") == "rank"


def refused(rig: Rig) -> float:
    """Processes of which no stack can be read."""
    return rig.value("gpuwhy_source_parts_down", source="stacks") or 0.0


def test_it_exits_and_stays_a_zombie(shared: Rig, watching: Callable[..., object]) -> None:
    job = watching("exit", "12")
    assert isinstance(job, subprocess.Popen)
    pid = job.pid
    shared.wait(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, "a zombie")
    shared.wait(lambda: not is_rank(shared, pid), "it is no rank any more")
    shared.goes_on()
    assert shared.up("processes")
    shared.script("")


def test_it_becomes_another_program(shared: Rig, watching: Callable[..., object]) -> None:
    job = watching("exec", "12")
    assert isinstance(job, subprocess.Popen)
    shared.wait(lambda: psutil.Process(job.pid).name() == "sleep", "another program")
    shared.goes_on()
    told = f"process {job.pid} has no Python interpreter in sight"
    shared.wait(lambda: shared.says(told), "it is told")
    shared.wait(lambda: refused(shared) > 0, "and counted")
    shared.script("")
    job.kill()
    shared.wait(lambda: not is_rank(shared, job.pid), "it is gone")


def test_it_forks_without_end(shared: Rig, watching: Callable[..., object]) -> None:
    job = watching("forks")
    assert isinstance(job, subprocess.Popen)
    begun = shared.second()
    shared.wait(lambda: shared.second() > begun + 6, "seconds go on")
    series = shared.series()
    assert len(series) < 2000
    assert len(shared.processes()) < 600
    job.kill()


def test_it_is_stopped_and_left_so_and_never_stopped_by_us(
    shared: Rig, watching: Callable[..., object]
) -> None:
    job = watching("work")
    assert isinstance(job, subprocess.Popen)
    process = psutil.Process(job.pid)
    process.suspend()
    shared.wait(lambda: shared.says(f"process {job.pid} is stopped", "kill -CONT"), "it is told")
    shared.wait(lambda: refused(shared) > 0, "and counted")
    shared.goes_on()
    assert process.status() == psutil.STATUS_STOPPED, "nobody but its owner lets it go on"
    process.resume()
    shared.wait(lambda: shared.up("stacks"), "it is read again")
    for _ in range(200):  # no capture ever stops it
        assert process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
        time.sleep(0.01)
    assert Path(f"/proc/{job.pid}/status").read_text().count("TracerPid:\t0\n") == 1
    job.kill()


@pytest.mark.skipif(not os.access(LAST_PID, os.W_OK), reason="PIDs cannot be chosen here")
def test_its_pid_is_reused(shared: Rig, watching: Callable[..., object]) -> None:
    job = watching("work")
    assert isinstance(job, subprocess.Popen)
    first = shared.processes()[job.pid]
    job.send_signal(signal.SIGKILL)
    job.wait()
    again = None
    for _ in range(200):
        LAST_PID.write_text(str(job.pid - 1))
        again = shared.start("work")
        if again.pid == job.pid:
            break
        again.kill()
    if again is None or again.pid != job.pid:
        pytest.skip("another process took the PID each time")
    shared.wait(
        lambda: shared.processes().get(job.pid, {}).get("run") not in (None, first["run"]),
        "it is another run",
    )
    shared.goes_on()
