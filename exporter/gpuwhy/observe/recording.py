"""A recording: ``NAME.gpuwhy.gz``, everything that was observed, to run the same code on again.

The file is gzip of JSON lines. The first line is the header, each further line an observation with
its own absolute time, except that frames of stacks are written once (see ``interning``). Nothing
outside this module knows of that: a reader gets whole observations.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gzip
import math
import os
import stat
import zlib
from collections.abc import Generator, Iterator
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import gpuwhy
from gpuwhy.observe import form, wire
from gpuwhy.observe.interning import FrameReader, FrameWriter
from gpuwhy.observe.observation import Observation

Header = dict[str, Any]

FORMAT = "gpuwhy-recording"
VERSION = 1
SUFFIX = ".gpuwhy.gz"
PARTIAL = ".partial"

_FLUSH_S = 5.0  # of observed time: the most that a killed recorder loses
_BOMB_BYTES = 64 << 20  # from here on a reader looks at the ratio ...
_BOMB_RATIO = 200  # ... which is 10 to 30 in real recordings and 1000 in a bomb


class RecordingError(Exception):
    """A recording cannot be written or read; the message names the file, and line where it can."""


def header(
    *,
    host: dict[str, Any],
    gpus: list[dict[str, Any]],
    software: dict[str, Any] | None = None,
    limits: dict[str, Any] | None = None,
    recorded_by: str = "gpuwhy record",
    note: str | None = None,
    created: float | None = None,
) -> Header:
    """The header of a new recording; ``created`` is Unix seconds, now if absent."""
    when = datetime.now(timezone.utc) if created is None else _utc(created)
    made: Header = {
        "format": FORMAT,
        "version": VERSION,
        "gpuwhy": gpuwhy.__version__,
        "created": when.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "host": host,
        "hardware": {"gpus": gpus},
        "software": software or {},
        "limits": limits or {},
        "recorded_by": recorded_by,
    }
    return made if note is None else {**made, "note": note}


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


class Recorder:
    """Writes a recording beside its target as ``NAME.partial`` and renames it when closed.

    A recorder that is killed leaves the partial file, which ``read`` accepts. Every error (no such
    folder, no right, no space) is a RecordingError; the target is then untouched.
    """

    def __init__(self, path: str | os.PathLike[str], header: Header) -> None:
        self.path = Path(path)
        self.partial = self.path.with_name(self.path.name + PARTIAL)
        self._frames = FrameWriter()
        self._flushed = -math.inf
        if self.path.exists() and not self.path.is_file():
            what = "directory" if self.path.is_dir() else "pipe or device"
            raise RecordingError(f"cannot write {self.path}: it is a {what}; name a file")
        # gzip without name and time: the same observations give the same bytes.
        self._packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
        self._raw: BinaryIO | None = None
        try:
            self._raw = _opened_alone(self.partial)
        except OSError as error:
            raise self._failed(error) from error
        self._put(header)

    def write(self, observation: Observation) -> None:
        """Append one observation."""
        for line in self._frames.lines(observation):
            self._put(line)
        t = float(observation.get("t", 0.0))
        if abs(t - self._flushed) >= _FLUSH_S:
            self._flushed = t
            self._flush()

    def close(self) -> None:
        """Complete the file and give it its name; nothing after the first call."""
        if self._raw is None:
            return
        try:
            self._raw.write(self._packer.flush())
            self._raw.flush()
            os.fsync(self._raw.fileno())
            self.partial.replace(self.path)  # while the file is locked
            self._raw.close()
        except OSError as error:
            raise self._failed(error) from error
        self._raw = None

    def discard(self) -> None:
        """Give up: leave neither the target nor the partial file."""
        if self._raw is not None:
            raw, self._raw = self._raw, None
            with contextlib.suppress(OSError):  # what it still holds is not wanted
                raw.close()
            self.partial.unlink(missing_ok=True)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        # Interrupted by the user is a wish to end, not a failure: what was seen is kept.
        if kind is None or issubclass(kind, KeyboardInterrupt | SystemExit):
            self.close()
        else:
            self.discard()

    def _put(self, line: dict[str, Any]) -> None:
        if self._raw is None:
            raise RecordingError(f"{self.path} is closed")
        try:
            self._raw.write(self._packer.compress(wire.encode(line)))
        except OSError as error:
            raise self._failed(error) from error

    def _flush(self) -> None:
        assert self._raw is not None
        try:
            self._raw.write(self._packer.flush(zlib.Z_SYNC_FLUSH))
            self._raw.flush()
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> RecordingError:
        with contextlib.suppress(OSError):
            self.discard()
        why = error.strerror or str(error)
        return RecordingError(
            f"cannot write {self.path}: {why}; choose a path with room and rights"
        )


def _opened_alone(path: Path) -> BinaryIO:
    """An empty file that no other recorder is writing. Raises OSError."""
    raw = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "wb")
    try:
        _lock(raw)
        if not os.path.samestat(os.fstat(raw.fileno()), path.stat()):
            raise _busy()  # it was just completed, and has got its name
        if path.is_file():
            raw.truncate(0)
    except OSError:
        raw.close()
        raise
    return raw


def _lock(raw: BinaryIO) -> None:
    try:
        fcntl.flock(raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _busy() from None
    except OSError:  # a file system without locks
        return


def _busy() -> OSError:
    return OSError(errno.EBUSY, "another gpuwhy is recording into it")


def read(path: str | os.PathLike[str]) -> tuple[Header, Iterator[Observation]]:
    """The header and, one by one, the observations of a recording, in the order of the file.

    Raises RecordingError: at once for a file that is missing, foreign or of a newer version, and
    from the iterator where the file breaks off or is damaged. A ``.partial`` file, which a killed
    recorder left, simply ends where it breaks off. Memory is bounded whatever the file holds.
    """
    name = Path(path)
    lines = _lines(name)
    _, first = next(lines, (1, b""))
    return _check_header(name, first), _observations(name, lines)


def read_header(path: str | os.PathLike[str]) -> Header:
    """The header alone; raises RecordingError as ``read``."""
    name = Path(path)
    lines = _lines(name)
    try:
        return _check_header(name, next(lines, (1, b""))[1])
    finally:
        lines.close()


def _check_header(name: Path, line: bytes) -> Header:
    try:
        found = wire.decode_object(line)
    except wire.WireError:
        found = {}
    version = found.get("version")
    if found.get("format") != FORMAT or not isinstance(version, int) or version < 1:
        raise RecordingError(f"{name} is no gpuwhy recording: line 1 is not its header")
    if version > VERSION:
        raise RecordingError(
            f"{name} is a recording of version {version}, made by gpuwhy {found.get('gpuwhy')};"
            f" this gpuwhy reads up to version {VERSION}: upgrade gpuwhy"
        )
    for part in ("host", "hardware", "software", "limits"):
        if not isinstance(found.setdefault(part, {}), dict):
            raise RecordingError(f"{name}, line 1: {part} in the header is no object")
    if wrong := form.HARDWARE(found["hardware"]):
        raise RecordingError(f"{name}, line 1: hardware{wrong}")
    return found


def _observations(name: Path, lines: Iterator[tuple[int, bytes]]) -> Iterator[Observation]:
    stacks = FrameReader()
    for number, line in lines:
        try:
            found = wire.decode_object(line)
            if found.get("kind") == "frame":
                stacks.add(found)
                continue
            observation = wire.checked(found)
            if wrong := form.wrong(observation):
                raise wire.WireError(wrong)
            if isinstance(observation.get("frames"), int):
                observation["frames"] = stacks.frames(observation["frames"])
        except wire.WireError as error:
            raise RecordingError(f"{name}, line {number} is damaged: {error}") from None
        yield observation


def _lines(name: Path) -> Generator[tuple[int, bytes], None, None]:
    """(number, line) of a gzip file, with limits on the line's length and on the whole's ratio."""
    try:
        with _open(name) as raw, gzip.GzipFile("", "rb", fileobj=raw) as unpacked:
            number = 0
            for number, line in enumerate(iter(lambda: unpacked.readline(wire.MAX_LINE), b""), 1):
                _check_size(name, number, line, unpacked.tell(), raw.tell())
                if line.endswith(b"\n"):
                    yield number, line
                elif name.suffix != PARTIAL:
                    raise EOFError
    except EOFError:
        if name.suffix != PARTIAL:
            raise RecordingError(
                f"{name} breaks off after line {number}: it is truncated; copy it again"
            ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        if number == 0:
            raise RecordingError(f"{name} is no gpuwhy recording: it is not gzip") from None
        raise RecordingError(f"{name} is damaged after line {number}: {error}") from None
    except OSError as error:
        raise RecordingError(f"cannot read {name}: {error.strerror or error}") from error


def _open(name: Path) -> BinaryIO:
    """A regular file: nobody may ever write into a pipe, and a device may never end. OSError."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    raw = os.fdopen(os.open(name, flags), "rb")
    if not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        raw.close()
        raise OSError(errno.EINVAL, "it is a pipe or a device: copy it into a file first")
    return raw


def _check_size(name: Path, number: int, line: bytes, unpacked: int, packed: int) -> None:
    if len(line) >= wire.MAX_LINE:
        raise RecordingError(f"{name}, line {number} is longer than {wire.MAX_LINE} bytes")
    if unpacked > _BOMB_BYTES and unpacked > _BOMB_RATIO * packed:
        raise RecordingError(
            f"{name}, line {number}: it unpacks to more than {_BOMB_RATIO} times its size;"
            " no recording does: refused"
        )
