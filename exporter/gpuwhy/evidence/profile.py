"""A flame graph of a rank and its workers, waits included, taken by py-spy without stopping them.

The file is written beside its place and moved there when it is whole, so an older one is never
left half overwritten.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gpuwhy.evidence.profile_labels import without_commands
from gpuwhy.observe import pyspy, pyspy_refusal

FORMATS = {
    ".svg": "flamegraph",
    ".raw": "folded",
    ".txt": "folded",
    ".json": "speedscope",
}
"""By suffix: a picture, "frame;frame;frame count" lines, or https://www.speedscope.app."""
HZ = 50
_LATE_S = 30.0  # beyond its time, to read symbols at the start and to draw at the end
_TICK_S = 0.1
_SAMPLES = re.compile(r"Samples: (\d+)")
_NO_PYTHON = "No python processes found"

Progress = Callable[[float, float], None]
"""Called with the seconds that have passed and those that were asked for."""


class ProfileError(Exception):
    """No profile was written. ``usage``: the request itself cannot be met."""

    def __init__(self, message: str, *, usage: bool = False) -> None:
        super().__init__(message)
        self.usage = usage


def profile(
    pid: int, seconds: float, path: Path, *, hz: int = HZ, progress: Progress | None = None
) -> int:
    """Sample a process and all its children for ``seconds`` and write ``path``; the format follows
    its suffix (``FORMATS``). Returns the number of stacks seen.

    Ctrl-C ends it early and keeps what was seen. Raises ProfileError with the reason and remedy.
    """
    form = format_of(path)
    try:
        executable = pyspy.executable()
        partial = _beside(path)
    except pyspy.PySpyError as error:
        raise ProfileError(str(error)) from error
    except OSError as error:
        raise ProfileError(f"cannot write {path}: {error.strerror}", usage=True) from error
    try:
        whole = max(1, round(seconds))
        asked = "flamegraph" if form == "flamegraph" else "speedscope"
        capture = pyspy.record_tree(executable, pid, hz, whole, partial, asked)
        outcome = _wait(capture, float(whole), progress)
        samples = _check(executable, pid, outcome, partial)
        shown = without_commands(partial.read_text(encoding="utf-8"), form)
        partial.write_text(shown, encoding="utf-8")
        _publish(partial, path)
    except OSError as error:
        raise ProfileError(f"cannot write {path}: {error.strerror}") from error
    except ValueError as error:
        raise ProfileError(
            f"py-spy's output could not be read ({error}); remedy: {sys.executable} -m pip install "
            "--force-reinstall py-spy, in the version that gpuwhy asks for"
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return samples


def format_of(path: Path) -> str:
    """py-spy's name of the format that a file's suffix asks for."""
    try:
        return FORMATS[path.suffix.lower()]
    except KeyError:
        known = ", ".join(FORMATS)
        raise ProfileError(
            f"{path}: the suffix decides the format; use one of {known}", usage=True
        ) from None


def _beside(path: Path) -> Path:
    """An empty file in the same folder, so that moving it into place is atomic. OSError where
    the file could not take that place."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EEXIST, "it is there, and is no file")
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    os.close(descriptor)
    return Path(name)


def _wait(capture: pyspy.Capture, seconds: float, progress: Progress | None) -> pyspy.Outcome:
    """Wait for the capture. Ctrl-C asks it to write what it has; a second one gives it up."""
    began = time.monotonic()
    interrupted = False
    try:
        while (outcome := capture.poll()) is None:
            elapsed = time.monotonic() - began
            if elapsed > seconds + _LATE_S:
                raise ProfileError("py-spy did not end in time; gpuwhy doctor checks what it needs")
            try:
                if progress is not None:
                    progress(min(elapsed, seconds), seconds)
                time.sleep(_TICK_S)
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted, seconds = True, elapsed
                capture.signal(signal.SIGINT)
    except BaseException:
        pyspy.stop([capture])
        raise
    return outcome


def _check(executable: Path, pid: int, outcome: pyspy.Outcome, partial: Path) -> int:
    """The number of stacks in a profile that is whole; ProfileError where it is not."""
    found = _SAMPLES.search(outcome.messages)
    samples = int(found[1]) if found else 0
    if outcome.ok and samples and partial.stat().st_size:
        return samples
    if outcome.ok:
        raise ProfileError(f"py-spy saw no Python stack in process {pid} and its children")
    if "No space left" in outcome.messages:
        raise ProfileError("the disk is full; free some space or write elsewhere")
    refusal = pyspy_refusal.explain(pid, _told_of(executable, pid, outcome.messages))
    raise ProfileError(refusal.why if refusal.gone else f"{refusal.why}; remedy: {refusal.remedy}")


def _told_of(executable: Path, pid: int, messages: str) -> str:
    """What py-spy says of one process. Of a tree in which every process is refused it says that
    there is no Python, whatever the reason; asked for a single stack it tells that."""
    if _NO_PYTHON not in messages:
        return messages
    asked = _wait(pyspy.dump(executable, pid), 0.0, None)
    return messages if asked.ok else asked.messages


def _publish(partial: Path, path: Path) -> None:
    """Move the file into place, with the rights that a new file would have."""
    mask = os.umask(0)
    os.umask(mask)
    with suppress(OSError):  # a file system without modes
        partial.chmod(0o666 & ~mask)
    partial.replace(path)
