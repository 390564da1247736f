"""What the leaf line of a stack calls, where that is a C call: those leave no frame of their own.

The line is read from the source file as the job sees it (its mount namespace), classified, and
forgotten: no text leaves this module. A file that was changed after the job started is not
believed. Symbolic links are followed inside the job's root only, and nothing but a regular file is
opened, so a job cannot make us read a device or a file of the host.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import OrderedDict
from pathlib import Path

from gpuwhy.observe.locals import is_library

_LINES_KEPT = 4096
_FILE_BYTES = 2 << 20
_LINKS = 16
_START_ERROR_S = 2.0  # a start is the boot time, told in whole seconds, plus ticks

_TEXT = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"")
_TO = r"\.to\(\s*"
_DTYPE = r"(?:torch\.)?(?:b?float\d*|half|double|u?int\d+|long|bool)\b|dtype\b|[\w.]*\bdtype\s*\)"
_CALLS = (
    ("copy_to_host", re.compile(rf"\.cpu\(|\.numpy\(|{_TO}(?:device\s*=\s*)?['\"]cpu")),
    ("scalar", re.compile(r"\.item\(|\.tolist\(|\bfloat\(\s*[\w.\[\]'\"]+\s*\)")),
    ("synchronize", re.compile(r"\.synchronize\(|block_until_ready\(")),
    (
        "collective",
        re.compile(
            r"\b(?:dist|distributed|pg|process_group)\.(?:all_?reduce|all_?gather|all_?to_?all"
            r"|reduce|broadcast|barrier|scatter|gather|send|recv)\w*\(|\b(?:work|handle)\.wait\("
        ),
    ),
    (
        "copy_to_device",
        re.compile(rf"\.cuda\(|{_TO}(?!\s*(?:{_DTYPE}|(?:device\s*=\s*)?['\"]cpu))"),
    ),
    ("sleep", re.compile(r"\bsleep\(")),
    ("gc", re.compile(r"\bgc\.collect\(")),
)
"""A short table: names from ``observation.CALLS``. ``float(x)`` of a plain name is slow only where
``x`` is a tensor; ``.to(dtype)`` and ``.to("cpu")`` copy nothing to the device."""


def classify(line: str) -> str | None:
    """The one kind of call on a line of source; None where there is none, or more than one.

    On a multi-line statement a frame stands on the line of the call itself, so one line is enough.
    """
    code = _without_comment(line)
    kinds = [kind for kind, pattern in _CALLS if pattern.search(code)]
    return kinds[0] if len(kinds) == 1 else None


def _without_comment(line: str) -> str:
    """The line without its comment, and its strings emptied, except for the name of a device."""
    code = _TEXT.sub(lambda m: m[0] if m[0][1:-1].startswith("cpu") else "''", line)
    return code.partition("#")[0]


class SourceText:
    """Remembers the kind of call of the lines asked for, the last few thousand of them."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._known: OrderedDict[tuple[int, str, int], str | None] = OrderedDict()

    def call(self, pid: int, file: str, line: int, started: float) -> str | None:
        """What the line calls. ``started``: when the job started (UTC), older than its source."""
        if is_library(file) or not file.endswith(".py"):
            return None
        key = (pid, file, line)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        text = read_line(self._proc / str(pid), file, line, started)
        kind = None if text is None else classify(text)
        self._known[key] = kind
        if len(self._known) > _LINES_KEPT:
            self._known.popitem(last=False)
        return kind

    def forget(self, pid: int) -> None:
        """Drop what is known of a process that has gone: its PID may come back."""
        for key in [key for key in self._known if key[0] == pid]:
            del self._known[key]


def read_line(process: Path, file: str, line: int, started: float) -> str | None:
    """A line (from 1) of a file as the process (/proc/PID) sees it; None where it cannot be had."""
    try:
        if not file.startswith("/"):
            file = f"{(process / 'cwd').readlink()}/{file}"
        lines = _read(resolve(process / "root", file), started).split(b"\n")
    except OSError:
        return None
    return lines[line - 1].decode("utf-8", "replace") if 0 < line <= len(lines) else None


def _read(path: Path, started: float) -> bytes:
    """A source file, opened without following a last link, waiting for a pipe or taking a
    terminal. Raises OSError too where it is no regular file, too large, or newer than the job."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        regular = stat.S_ISREG(status.st_mode) and status.st_size <= _FILE_BYTES
        if not regular or status.st_mtime > started + _START_ERROR_S:
            raise OSError(errno.EINVAL, "not to be read", str(path))
        return os.read(descriptor, _FILE_BYTES)
    finally:
        os.close(descriptor)


def resolve(root: Path, path: str) -> Path:
    """The path below ``root`` with its symbolic links resolved as a process whose root that is
    would: an absolute link begins at ``root``, ``..`` never leaves it. Raises OSError."""
    links = 0
    parts = _parts(path)[::-1]
    done: list[str] = []
    while parts:
        part = parts.pop()
        if part == "..":
            done = done[:-1]
            continue
        try:
            target = str(root.joinpath(*done, part).readlink())
        except OSError as error:
            if error.errno != errno.EINVAL:  # EINVAL: it is no link
                raise
            done.append(part)
            continue
        links += 1
        if links > _LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        done = [] if target.startswith("/") else done
        parts += _parts(target)[::-1]
    return root.joinpath(*done)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
