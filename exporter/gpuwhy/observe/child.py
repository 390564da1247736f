"""Starting the observer process: the same interpreter, the same modules, a group of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

Process = subprocess.Popen[bytes]


def start(arguments: Sequence[str]) -> Process:
    """``python -m gpuwhy.observe ARGUMENTS`` with pipes to its input and output.

    It starts in ``/`` with our own module path: a ``random.py`` in the folder of a training job
    must not take the place of Python's. Raises OSError.
    """
    path = [str(Path(entry).resolve()) for entry in sys.path if entry]
    return subprocess.Popen(
        [sys.executable, "-m", "gpuwhy.observe", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    )


def end(process: Process, grace_s: float) -> bool:
    """End the process and everything in its group: asked first, killed after ``grace_s``.

    False where it cannot be reaped yet: a thread of it is in a driver call that never returns.
    """
    with contextlib.suppress(OSError):
        process.terminate()
    reaped = _reap(process, grace_s)
    with contextlib.suppress(OSError):  # py-spy's children, where it could not end them itself
        os.killpg(process.pid, signal.SIGKILL)
    reaped = reaped or _reap(process, 2.0)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and reaped:
            with contextlib.suppress(OSError):
                pipe.close()
    return reaped


def _reap(process: Process, timeout: float) -> bool:
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        return False
    return True
