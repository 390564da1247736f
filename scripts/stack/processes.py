"""Processes of the stack: started in the background, known by PID and start time, ended for sure.

A PID alone is no identity: numbers are used again. What is written beside it is the start time of
``/proc/PID/stat``, so that nothing foreign is ever ended.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

READY_S = 60.0
END_S = 15.0


class ProcessError(Exception):
    """A process did not come up; the message says what its log says."""


@dataclass(frozen=True)
class Service:
    """A process to run: its command, where it says that it is ready, and where its log is."""

    name: str
    command: Sequence[str]
    ready: str  # URL that answers 200
    folder: Path
    cwd: Path
    environment: Mapping[str, str]

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def pid_file(self) -> Path:
        return self.folder / f"{self.name}.pid"


def start(service: Service) -> None:
    """Start it in a session of its own, and note who it is."""
    service.folder.mkdir(parents=True, exist_ok=True)
    with service.log.open("ab") as log:
        process = subprocess.Popen(
            service.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=service.cwd,
            env={**os.environ, **service.environment},
            start_new_session=True,
        )
    try:
        who = {"pid": process.pid, "start": start_time(process.pid)}
        service.pid_file.write_text(json.dumps(who))
    except BaseException:  # a full disk, or an interrupt: nobody would know of it
        process.kill()
        raise


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM, and SIGHUP of a terminal that closes, end what is within as Ctrl-C does, so that
    what was started is ended too. What is ignored (nohup) stays ignored."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_ready(service: Service, deadline_s: float = READY_S) -> None:
    """Wait until it answers. Raises ProcessError with the end of its log."""
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        if running(service.pid_file) is None:
            raise ProcessError(f"{service.name} ended: {_tail(service.log)}")
        if answers(service.ready):
            return
        time.sleep(0.2)
    raise ProcessError(
        f"{service.name} does not answer at {service.ready} after {deadline_s:.0f} s; "
        f"its log {service.log} ends: {_tail(service.log)}"
    )


def answers(url: str) -> bool:
    """Whether the URL answers with 200."""
    return read(url) is not None


def read(url: str, most: int = 1 << 20) -> bytes | None:
    """The beginning of what the URL answers with 200, None if it does not."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:  # noqa: S310 - loopback
            return bytes(response.read(most)) if response.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):  # the last: it speaks no HTTP
        return None


def running(pid_file: Path) -> int | None:
    """The PID of the process that the file tells of, None if that process is gone."""
    try:
        who = json.loads(pid_file.read_text())
        pid, started = int(who["pid"]), str(who["start"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    with contextlib.suppress(ChildProcessError, OSError):
        os.waitpid(pid, os.WNOHANG)  # a child that has ended would stay as a zombie
    return pid if started and start_time(pid) == started else None


def start_time(pid: int) -> str:
    """Field 22 of ``/proc/PID/stat`` (ticks since boot) with the boot's identity; "" if gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else f"{boot}/{fields[19]}"


def stop(pid_file: Path) -> bool:
    """End the process that the file tells of, and wait for it; whether there was one."""
    pid = running(pid_file)
    if pid is not None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            if _until(lambda: running(pid_file) is None, END_S):
                break
    pid_file.unlink(missing_ok=True)
    return pid is not None


def stop_all(folder: Path) -> list[str]:
    """End everything that was started there; the names of what was running, last first."""
    files = sorted(folder.glob("*.pid"), key=lambda p: p.stat().st_mtime, reverse=True)
    return [file.stem for file in files if stop(file)]


def port_taken(address: str, port: int) -> bool:
    """Whether something listens there."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return True
    return False


def _until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


def _tail(log: Path, lines: int = 5) -> str:
    try:
        return " / ".join(log.read_text(errors="replace").splitlines()[-lines:]) or "(empty log)"
    except OSError as error:
        return f"(no log: {error.strerror})"
