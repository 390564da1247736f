"""Opening a trace's file: what it is by its first bytes, unpacked and decoded piece by piece."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from gpuwhy.evidence.traces.trace import TraceError

PIECE = 4 << 20
"""Bytes read at a time."""

GZIP, ZIP, SQLITE, ZSTD = b"\x1f\x8b", b"PK\x03\x04", b"SQLite format 3\0", b"\x28\xb5\x2f\xfd"
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"{\0", b"[\0", b"\0{", b"\0[", b"\0\0\0{")
_UNPACK = {ZIP: "a zip archive: unpack it (unzip)", ZSTD: "zstd: unpack it first (unzstd)"}


def head_of(path: Path) -> bytes:
    """The first bytes of a file, of what is packed in it where it is gzip.

    Raises TraceError for a file that is missing, empty, a folder, damaged, or not to be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(PIECE // 64)
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror or error}") from error
    if not head:
        raise TraceError(f"{path} is empty: no trace was written to it")
    if not head.startswith(GZIP):
        return head
    try:
        head = zlib.decompressobj(wbits=31).decompress(head, PIECE // 64)
    except zlib.error as error:
        raise TraceError(f"{path} is damaged gzip: {error}; copy it again") from error
    if not head:
        raise TraceError(f"{path} holds nothing once unpacked: no trace was written to it")
    return head


def is_gzip(path: Path) -> bool:
    """Is the file itself gzip?"""
    with path.open("rb") as file:
        return file.read(2) == GZIP


def check_text(path: Path, head: bytes) -> None:
    """Raises TraceError where a head is not that of a UTF-8 text."""
    if head.startswith(GZIP):
        raise TraceError(f"{path} is gzip within gzip: unpack it once (gunzip), and try again")
    for magic, what in _UNPACK.items():
        if head.startswith(magic):
            raise TraceError(f"{path} is {what}, and give the trace in it")
    if head.startswith(_WIDE):
        raise TraceError(
            f"{path} is UTF-16 or UTF-32, and traces are UTF-8: iconv -f UTF-16 -t UTF-8"
        )


def pieces(path: Path) -> Iterator[str]:
    """The text of a file, plain or gzipped, in pieces. Bytes that are no UTF-8 become U+FFFD.

    Raises TraceError where the file ends early or is damaged.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    try:
        with path.open("rb") as raw, _unpacked(raw) as file:
            while piece := file.read(PIECE):
                yield decoder.decode(piece)
    except EOFError:
        raise TraceError(
            f"{path} breaks off: its gzip has no end. The copy, or the writing, was cut short"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{path} is damaged gzip: {error}; copy it again") from error
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror or error}") from error
    yield decoder.decode(b"", True)


def _unpacked(raw: BinaryIO) -> BinaryIO:
    packed = cast(io.BufferedReader, raw).peek(2).startswith(GZIP)
    return cast(BinaryIO, gzip.GzipFile(fileobj=raw) if packed else raw)
