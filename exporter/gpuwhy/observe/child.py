"""Starting and ending the observer process: same interpreter, same modules, a group of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

import gpuwhy

Process = subprocess.Popen[bytes]

KILL_S = 2.0
"""After SIGKILL a process is gone at once, or a thread of it is in a call that never returns."""


def start(arguments: Sequence[str]) -> Process:
    """``python -m gpuwhy.observe ARGUMENTS`` with pipes to its input and output. Raises OSError."""
    return subprocess.Popen(
        [sys.executable, "-m", "gpuwhy.observe", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(module_path())},
        start_new_session=True,
    )


def module_path() -> list[str]:
    """Our own module path without the working folder: a ``random.py`` in the folder of a training
    job must not take the place of Python's."""
    ours = Path(gpuwhy.__file__).resolve().parent.parent
    entries = (Path(entry).resolve() for entry in sys.path if entry)
    return [str(entry) for entry in entries if entry != Path.cwd() or entry == ours]


def exit_status(process: Process) -> int | None:
    """As ``Popen.poll``, but without reaping: its PID, and that of its group, stay ours."""
    if process.returncode is not None:
        return process.returncode
    try:
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return process.poll()
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def end(process: Process, grace_s: float) -> bool:
    """End the process and everything below it: asked first, killed after ``grace_s`` seconds.

    False where it cannot be reaped yet: a thread of it is in a driver call that never returns.
    """
    if process.returncode is None:
        below = _below(process)
        process.terminate()
        deadline = time.monotonic() + grace_s
        while exit_status(process) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        for one in below:  # py-spy's processes, where it could not end them itself
            with contextlib.suppress(psutil.Error):
                one.kill()
    try:
        process.wait(KILL_S)
    except subprocess.TimeoutExpired:
        return False
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    return True


def _below(process: Process) -> list[psutil.Process]:
    """Known by PID and start: one that ends meanwhile is not taken for another."""
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        return []
