"""Running py-spy itself: which one, what it leaves, and how it is ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.observe.live_job import wait_for

from gpuwhy.observe import pyspy
from gpuwhy.observe.pyspy_formats import parse_dump, parse_trace


@pytest.fixture
def job() -> Iterator[int]:
    code = "import threading, time\ndef rest():\n    while True: time.sleep(0.01)\nrest()"
    child = subprocess.Popen([sys.executable, "-c", code])
    time.sleep(0.3)
    yield child.pid
    child.kill()
    child.wait()


def _descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def _end(capture: pyspy.Capture, seconds: float = 20) -> pyspy.Outcome:
    outcomes: list[pyspy.Outcome] = []

    def ended() -> bool:
        outcome = capture.poll()
        outcomes.extend([outcome] if outcome else [])
        return outcome is not None

    wait_for(ended, seconds)
    return outcomes[0]


def test_py_spy_is_ours_and_not_an_older_one_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = tmp_path / "py-spy"
    older.write_text("#!/bin/sh\necho py-spy 0.1.0\n")
    older.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert pyspy.executable().parent == Path(sys.executable).parent
    assert tuple(map(int, pyspy.version(pyspy.executable()).split("."))) >= (0, 4, 1)


def test_missing_py_spy_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspy, "_candidates", lambda: [Path("/nonexistent/py-spy")])
    with pytest.raises(pyspy.PySpyError, match="pip install py-spy"):
        pyspy.executable()


def test_a_py_spy_that_does_not_run(tmp_path: Path) -> None:
    broken = tmp_path / "py-spy"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(pyspy.PySpyError, match="force-reinstall"):
        pyspy.version(broken)


def test_dump(job: int) -> None:
    before = time.time()
    outcome = _end(pyspy.dump(pyspy.executable(), job))
    assert outcome.ok
    assert 0 < outcome.cpu_s < 5
    assert before - 0.02 <= outcome.written <= time.time()
    (thread,) = parse_dump(outcome.data)
    assert [frame[0] for frame in thread.frames] == ["rest", "<module>"]
    assert thread.name == "MainThread"
    if sys.version_info >= (3, 11):  # the interpreter keeps the system's id from then on
        assert thread.tid == job


def test_record_ends_when_it_is_interrupted_and_keeps_what_it_has(job: int) -> None:
    capture = pyspy.record(pyspy.executable(), job, 50, 60)
    time.sleep(1.0)
    capture.signal(signal.SIGINT)
    outcome = _end(capture)
    assert outcome.ok
    trace = parse_trace(outcome.data)
    assert 0.5 < trace.end < 5
    assert abs(outcome.written - trace.end - capture.began) < 0.1
    (thread,) = trace.threads
    assert [frame[0] for frame in thread.changes[0][1]] == ["rest", "<module>"]


def test_stop_ends_it_without_waiting_for_long(job: int) -> None:
    captures = [pyspy.record(pyspy.executable(), job, 10, 60) for _ in range(2)]
    began = time.monotonic()
    pyspy.stop(captures)
    assert time.monotonic() - began < 5
    for capture in captures:
        assert not Path(f"/proc/{capture.pid}").exists()


def test_no_descriptor_is_left_open(job: int) -> None:
    before = _descriptors()
    for _ in range(3):
        _end(pyspy.dump(pyspy.executable(), job))
    pyspy.stop([pyspy.record(pyspy.executable(), job, 10, 60)])
    with pytest.raises(OSError, match="nothing"):
        pyspy.dump(Path("/nonexistent/nothing"), job)
    assert _descriptors() == before


def test_every_command_line_is_non_blocking(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    class Recorded:
        def __init__(self, arguments: list[str], *_: object, **__: object) -> None:
            seen.append([str(argument) for argument in arguments])

    monkeypatch.setattr(pyspy, "Capture", Recorded)
    path = Path("py-spy")
    pyspy.dump(path, 1)
    pyspy.record(path, 1, 10, 2)
    pyspy.record_tree(path, 1, 10, 2, Path("out.svg"), "flamegraph")
    for arguments in seen:
        assert "--nonblocking" in arguments
        assert not {"--native", "-n", "--gil", "-g"} & set(arguments)
    assert all("--idle" in arguments for arguments in seen[1:])
    assert json.dumps(seen).count("--subprocesses") == 1
