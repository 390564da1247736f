"""Processes of the stack: ready or told why not, ended for sure, nothing foreign ever ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scripts.stack import processes
from scripts.stack.processes import ProcessError, Service
from tests.stack.ports import free_port

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def service(folder: Path, command: list[str], port: int = 1) -> Service:
    return Service("one", command, f"http://127.0.0.1:{port}/", folder, folder, {})


def serving(folder: Path) -> Service:
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    return service(folder, command, port)


def test_start_wait_and_stop(tmp_path: Path) -> None:
    one = serving(tmp_path)
    processes.start(one)
    processes.wait_ready(one)
    pid = processes.running(one.pid_file)
    assert pid is not None
    assert processes.stop_all(tmp_path) == ["one"]
    assert processes.running(one.pid_file) is None
    assert not one.pid_file.exists()
    assert not processes.answers(one.ready)


def test_one_that_ends_is_told_with_its_log(tmp_path: Path) -> None:
    one = service(tmp_path, [sys.executable, "-c", "import sys; sys.exit('no disk left')"])
    processes.start(one)
    with pytest.raises(ProcessError, match="ended: no disk left"):
        processes.wait_ready(one)


def test_one_that_never_answers_is_told(tmp_path: Path) -> None:
    one = service(tmp_path, SLEEP, free_port())
    processes.start(one)
    try:
        with pytest.raises(ProcessError, match="does not answer"):
            processes.wait_ready(one, 1.0)
    finally:
        processes.stop_all(tmp_path)


def test_a_process_that_ignores_sigterm_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    monkeypatch.setattr(processes, "END_S", 1.0)
    one = service(tmp_path, [sys.executable, "-c", deaf])
    processes.start(one)
    time.sleep(0.5)
    processes.stop_all(tmp_path)
    assert processes.running(one.pid_file) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_is_an_interrupt(number: signal.Signals) -> None:
    outside = signal.signal(number, signal.SIG_DFL)  # nohup has SIGHUP ignored
    try:
        with pytest.raises(KeyboardInterrupt), processes.ended_by_signals():
            os.kill(os.getpid(), number)
            time.sleep(5)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, outside)


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with processes.ended_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_one_that_cannot_be_noted_is_ended(tmp_path: Path) -> None:
    """A full disk: a process that no file tells of could never be ended."""
    one = service(tmp_path, [sys.executable, "-c", f"import time; time.sleep(61)  # {tmp_path}"])
    one.pid_file.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        processes.start(one)
    one.pid_file.unlink()
    deadline = time.monotonic() + 10
    while _running(str(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _running(str(tmp_path))


def _running(text: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text in path.read_bytes().decode(errors="replace"):
                return True
    return False


def test_a_foreign_process_with_the_number_is_left_alone(tmp_path: Path) -> None:
    """The number of a process of ours that has ended may belong to somebody else by now."""
    foreign = subprocess.Popen(SLEEP)
    try:
        who = {"pid": foreign.pid, "start": "another boot/1"}
        (tmp_path / "one.pid").write_text(json.dumps(who))
        assert processes.stop_all(tmp_path) == []
        assert foreign.poll() is None
    finally:
        foreign.kill()
        foreign.wait()


@pytest.mark.parametrize("text", ["", "12", "{}", '{"pid": "x", "start": "y"}', '{"pid": 1}'])
def test_a_damaged_pid_file_harms_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "one.pid").write_text(text)
    assert processes.stop_all(tmp_path) == []


def test_a_zombie_is_gone(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    who = {"pid": child.pid, "start": processes.start_time(child.pid)}
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes.start_time(child.pid) == ""
    (tmp_path / "one.pid").write_text(json.dumps(who))
    assert processes.running(tmp_path / "one.pid") is None
    child.wait()


def test_a_taken_port_is_seen() -> None:
    port = free_port()
    assert not processes.port_taken("127.0.0.1", port)
    holder = subprocess.Popen(
        [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"],
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 10
        while not processes.port_taken("127.0.0.1", port) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert processes.port_taken("127.0.0.1", port)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
