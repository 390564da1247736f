"""Clocks that step, disks that are full, readers that misbehave, signals, a second exporter."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import pytest
from tests.faults.rig import EXPORTER, HEALTHY, Rig

OBSERVED = "gpuwhy_gpu_observed_seconds_total"
Start = Callable[..., Rig]


class Clock:
    """A wall clock that can be set while a process runs."""

    def __init__(self, folder: Path) -> None:
        library, self._file = folder / "step_clock.so", folder / "clock"
        source = Path(__file__).with_name("step_clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
        self._file.write_text("0")
        self.environment = {"LD_PRELOAD": str(library), "STEP_CLOCK": str(self._file)}

    def step(self, seconds: int) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.replace(self._file)


@pytest.fixture
def clock(driver: Path, tmp_path: Path) -> Clock:
    folder = tmp_path / "clock"
    folder.mkdir()
    return Clock(folder)


BOTH_WAYS = pytest.mark.parametrize("step", [3600, -3600], ids=["forward", "back"])


@BOTH_WAYS
def test_the_clock_steps(rig: Start, clock: Clock, step: int) -> None:
    """An hour is neither counted as observed, nor waited for."""
    host = rig(environment=clock.environment)
    host.wait(lambda: (host.value(OBSERVED) or 0) > 3, "a GPU is observed")
    observed, second, began = host.value(OBSERVED) or 0, host.second(), time.monotonic()
    clock.step(step)
    host.wait(lambda: abs(host.second() - second - step) < 120, "seconds of the new time")
    host.wait(lambda: (host.value(OBSERVED) or 0) > observed + 2, "it goes on to be observed")
    assert (host.value(OBSERVED) or 0) - observed <= time.monotonic() - began + 5
    host.goes_on()


@BOTH_WAYS
def test_the_clock_steps_while_recording(
    rig: Start, driver: Path, clock: Clock, tmp_path: Path, step: int
) -> None:
    """It ends when it was to, and what it wrote is read as time with a hole in it."""
    job = rig().start("work")
    script, file = tmp_path / "script", tmp_path / "a.gpuwhy.gz"
    script.write_text(f"gpus 1\nprocess 0 {job.pid} 1073741824 compute\n")
    stand_in = {"LD_LIBRARY_PATH": str(driver), "STANDIN_NVML": str(script)}
    process = gpuwhy("record", file, "--for", "8s", env={**clock.environment, **stand_in})
    until = time.monotonic() + 60
    partial = file.with_name(file.name + ".partial")
    while not (partial.exists() and partial.stat().st_size > 2000) and time.monotonic() < until:
        time.sleep(0.2)
    clock.step(step)
    message = process.communicate(timeout=90)[1]
    assert process.returncode == 0, message
    told = gpuwhy("diagnose", "--recording", file, "--json")
    verdict = json.loads(told.communicate(timeout=120)[0])
    assert told.returncode == 0
    (entry,) = [one for one in verdict["gpus"] if None not in (one["run"], one["gpu"])]
    assert abs(sum(entry["accounts"].values()) - 1) < 0.01


def test_the_observer_is_killed(rig: Start) -> None:
    host = rig()
    host.wait(lambda: (host.value(OBSERVED) or 0) > 3, "a GPU is observed")
    observed, observer = host.value(OBSERVED) or 0, host.observer()
    observer.kill()
    host.wait(lambda: host.says("the observer process: it ended (signal 9)"), "it is told")
    host.wait(lambda: host.up("nvml") and (host.value(OBSERVED) or 0) > observed, "a new one")
    assert host.observer().pid != observer.pid
    host.goes_on()


def test_two_exporters_on_one_host(rig: Start) -> None:
    first, second = rig(), rig()
    job = first.start("work")
    for host in (first, second):
        host.script(f"process 0 {job.pid} 1073741824 compute")
        host.wait(lambda host=host: job.pid in host.processes(), "the job")
        host.wait(lambda host=host: (host.value("gpuwhy_source_reads_total", source="stacks") or 0)
                  > 0, "its stacks")  # fmt: skip
    ours = {first.process.pid, second.process.pid, first.observer().pid, second.observer().pid}
    for host in (first, second):
        assert not ours & host.processes().keys(), "an exporter is no job"
        run = host.processes()[job.pid]["run"]
        host.wait(lambda host=host, run=run: run in {e["run"] for e in host.entries()}, "verdicts")


def test_a_log_on_a_full_disk(rig: Start) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        host = rig(log=full)
        host.wait(lambda: host.up("host"), "it serves")
        host.script("fail nvmlInitWithFlags DRIVER_NOT_LOADED\nfail * UNINITIALIZED")
        host.wait(lambda: not host.up("nvml"), "nvml is down")
        host.observer().kill()  # a warning is logged
        host.wait(lambda: host.up("host"), "it serves again")
        host.goes_on()
        host.script("")


def gpuwhy(*arguments: object, env: Mapping[str, str] = {}) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gpuwhy", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
        env={**os.environ, "PYTHONPATH": str(EXPORTER), **env},
    )  # fmt: skip


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small file system")
def test_recording_to_a_full_file_system(driver: Path, tmp_path: Path) -> None:
    small, script = tmp_path / "small", tmp_path / "script"
    small.mkdir()
    script.write_text(HEALTHY)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "gpuwhy", small])
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        gpus = {"LD_LIBRARY_PATH": str(driver), "STANDIN_NVML": str(script)}
        process = gpuwhy("record", small / "a.gpuwhy.gz", "--for", "60s", env=gpus)
        message = process.communicate(timeout=120)[1]
        assert process.returncode == 1
        assert "No space left on device" in message
        assert "choose a path with room" in message
        assert not list(small.iterdir()), "nothing half done is left"
    finally:
        subprocess.run(["umount", small], check=True)


def ask(host: Rig, request: bytes = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n") -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.connect(("127.0.0.1", host.port))
    connection.sendall(request)
    return connection


def test_slow_and_cut_readers_keep_nobody_waiting(shared: Rig) -> None:
    shared.wait(lambda: shared.up("host"), "it serves")
    slow = [ask(shared) for _ in range(40)]
    slow += [ask(shared, b"GET /metrics HTTP/1.1\r\nHo") for _ in range(40)]
    for _ in range(40):  # gone in the middle of the answer
        with ask(shared) as cut:
            cut.recv(100)
    began = time.monotonic()
    shared.series()
    assert time.monotonic() - began < 10.0
    shared.goes_on()
    for connection in slow:
        connection.close()
    shared.wait(lambda: open_sockets(shared) < 10, "connections are let go")


def open_sockets(host: Rig) -> int:
    return len(psutil.Process(host.process.pid).net_connections())


def test_silent_connections_without_end_are_let_go(shared: Rig) -> None:
    """More than are served at a time, none of which ever asks: the others must get their turn."""
    half = b"GET /-/healthy HTTP/1.1\r\nHost: a\r\n\r\nGET /metr"  # asked once, and half again
    silent = [ask(shared, half if i % 2 else b"") for i in range(220)]
    shared.wait(lambda: shared.value("gpuwhy_series") is not None, "answers in spite of them")
    for connection in silent:
        connection.close()


def test_readers_side_by_side(shared: Rig) -> None:
    shared.wait(lambda: shared.up("host"), "it serves")
    answers: list[int] = []

    def read() -> None:
        for path in ("/metrics", "/", "/api/v1/verdicts", "/api/v1/history"):
            answers.append(len(shared.get(path)))

    readers = [threading.Thread(target=read) for _ in range(30)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(60)
    assert len(answers) == 4 * len(readers)
    assert all(answers)


@pytest.mark.parametrize("command", ["serve", "record", "diagnose", "profile", "doctor"])
@pytest.mark.parametrize("turn", range(3))
def test_sigterm_at_any_moment(command: str, turn: int, tmp_path: Path) -> None:
    end_early(command, random.Random(turn).uniform(0, 6), tmp_path)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("command", ["serve", "record", "diagnose", "profile", "doctor"])
def test_sigterm_at_sixty_moments(command: str, tmp_path: Path) -> None:
    for turn in range(60):
        (tmp_path / str(turn)).mkdir()
        end_early(command, turn * 0.1, tmp_path / str(turn))


def end_early(command: str, after_s: float, folder: Path) -> None:
    """Nothing is left behind: no process, no half file; and the end is no crash."""
    file, picture = folder / "a.gpuwhy.gz", folder / "a.svg"
    arguments = {
        "serve": ["--web.listen-address", "127.0.0.1:0"],
        "record": [file, "--for", "60s"],
        "diagnose": ["--for", "60s"],
        "profile": [picture, "--pid", os.getpid(), "--for", "60s"],
        "doctor": [],
    }[command]
    process = gpuwhy(command, *arguments)
    below: set[psutil.Process] = set()
    until = time.monotonic() + after_s
    while time.monotonic() < until:
        below |= set(psutil.Process(process.pid).children(recursive=True))
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    message = process.communicate(timeout=60)[1]
    # Until Python has come to our own code the signal's default holds; after it, a clean end. What
    # a shell calls 130 is an end by SIGINT where Python was just running code made of a text.
    assert process.returncode in (0, 1, 130, -signal.SIGINT, -signal.SIGTERM), message
    assert "Traceback" not in message, message
    assert not psutil.wait_procs(below, timeout=30)[1]
    assert {path.name for path in folder.iterdir()} <= {file.name, picture.name}
