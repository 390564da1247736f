"""Short slices: asked for by the observer's thread, and by what it starts, and by nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import psutil
import pytest

from gpuwhy.observe import time_slice
from gpuwhy.observe.supervisor import observe

KERNEL = tuple(int(part) for part in os.uname().release.split(".")[:2])
pytestmark = pytest.mark.skipif(time_slice.slice_ns() is None, reason="not Linux on x86-64, arm64")
TOLD = """
import sys
sys.path[:0] = {path}
from gpuwhy.observe.time_slice import slice_ns
print(slice_ns())
"""


def in_a_thread_of_its_own(function: object) -> object:
    """What it answers there: the setting stays with that thread."""
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(function()))  # type: ignore[operator]
    thread.start()
    thread.join()
    return answers[0]


@pytest.mark.skipif(KERNEL < (6, 12), reason="before Linux 6.12 the kernel takes no notice")
def test_what_is_started_from_there_inherits_it_and_priority_stays() -> None:
    def asked() -> tuple[bool, int | None, int, int]:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        done = time_slice.ask_for_short_slices()
        child = subprocess.run(
            [sys.executable, "-c", TOLD.format(path=sys.path)], capture_output=True, text=True
        )
        changed = os.getpriority(os.PRIO_PROCESS, 0) - nice
        return done, time_slice.slice_ns(), int(child.stdout), changed

    before = time_slice.slice_ns()
    assert in_a_thread_of_its_own(asked) == (True, 100_000, 100_000, 0)
    assert time_slice.slice_ns() == before


def test_a_policy_that_knows_no_slices_is_left_alone() -> None:
    def idle() -> tuple[bool, int]:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        return time_slice.ask_for_short_slices(), os.sched_getscheduler(0)

    assert in_a_thread_of_its_own(idle) == (False, os.SCHED_IDLE)


def test_another_processor_or_system_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice.platform, "machine", lambda: "riscv64")
    assert not time_slice.ask_for_short_slices()
    assert time_slice.slice_ns() is None


@pytest.mark.skipif(KERNEL < (6, 12), reason="before Linux 6.12 the kernel takes no notice")
def test_the_observer_asks_for_all_its_threads() -> None:
    with observe({}) as batches:
        next(batches)
        (observer,) = (
            child for child in psutil.Process().children() if "gpuwhy.observe" in child.cmdline()
        )
        told = {_slice(thread.id) for thread in observer.threads()}
    assert told == {100_000}


def _slice(task: int) -> int:
    attributes = time_slice._Attributes()
    size = time_slice.ctypes.sizeof(attributes)
    number = time_slice._NUMBERS[time_slice.platform.machine()][1]
    libc = time_slice.ctypes.CDLL(None)
    assert libc.syscall(number, task, time_slice.ctypes.byref(attributes), size, 0) == 0
    return int(attributes.runtime)
