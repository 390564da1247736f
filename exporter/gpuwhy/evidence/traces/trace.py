"""A trace as plain columns: what ran on the GPU, what the host called, what the host was doing.

Times are whole nanoseconds on the trace's own axis; ``origin_ns`` puts them on UTC where the file
says how. Every reader makes this, and everything after it reads nothing else.
"""

from __future__ import annotations

import dataclasses
import struct
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuwhy.evidence.traces.intervals import Times

KERNEL, MEMCPY, MEMSET = range(3)
"""Kinds of activity on the GPU."""

OPERATOR, ANNOTATION, PYTHON, SYSTEM = range(4)
"""Kinds of span on the host: a framework's operator, a range that someone named (record_function,
NVTX), a Python function, a call into the C library that may block."""

UNKNOWN = -1
"""An id or size that the file does not tell."""

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]


class TraceError(Exception):
    """A file is no trace, or cannot be read: the message names it, the reason and the remedy."""


@dataclass(slots=True)
class Activities:
    """What the GPU did, one row each, by start."""

    start: Times
    end: Times
    correlation: Ids  # of the call that launched it
    op: Ids  # id of the host span that launched it, where the file tells
    size: Ids  # bytes of a copy, blocks of a kernel's grid
    kind: Ids
    device: Ids
    stream: Ids
    name: Ids  # index into Trace.names
    process: Ids


@dataclass(slots=True)
class Calls:
    """CUDA API calls of the host, by start."""

    start: Times
    end: Times
    correlation: Ids
    thread: Ids  # index into Trace.threads
    name: Ids


@dataclass(slots=True)
class Spans:
    """What the host was doing, by start; spans of one thread nest."""

    start: Times
    end: Times
    op: Ids  # its id, to which activities refer
    thread: Ids
    name: Ids
    kind: Ids
    stack: Ids  # index into Trace.stacks


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of the host, by the ids that the file uses."""

    pid: str
    tid: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Blind:
    """Something that cannot be seen in a trace, as in ``cannot_see`` of a verdict."""

    signal: str
    why: str
    remedy: str


@dataclass(slots=True)
class Trace:
    """One file of a profiler: one process, or several."""

    source: str  # the file's name
    form: str  # "kineto", "nsys"
    names: list[str]
    threads: list[Thread]
    stacks: list[str]  # "file(line): function;...", leaf first
    activities: Activities
    calls: Calls
    spans: Spans
    origin_ns: int | None = None  # UTC of time 0
    rank: int | None = None
    world_size: int | None = None
    devices: dict[int, str] = field(default_factory=dict)  # index -> name of the card
    uuids: dict[int, str] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)  # versions and settings that it tells
    messages: dict[int, Message] = field(default_factory=dict)  # by correlation
    blind: list[Blind] = field(default_factory=list)
    events: int = 0  # in the file, of every sort


@dataclass(frozen=True, slots=True)
class Message:
    """What a collective's kernel carries, where the file tells."""

    collective: str
    size: int | None  # bytes in
    group: str
    ranks: int | None


Table = TypeVar("Table", Activities, Calls, Spans)


def select(table: Table, rows: NDArray[Any] | slice) -> Table:
    """The rows of a table that an index or a mask names."""
    parts = {f.name: getattr(table, f.name)[rows] for f in dataclasses.fields(table)}
    return type(table)(**parts)


class Rows:
    """Collects rows of a table in little memory. A row that does not fit (a number that is none,
    or out of range) raises struct.error and leaves nothing behind."""

    def __init__(self, kind: type[Activities] | type[Calls] | type[Spans]) -> None:
        names = [f.name for f in dataclasses.fields(kind)]
        self._kind = kind
        self._dtype = np.dtype([(name, _TYPES.get(name, "<i4")) for name in names])
        codes = "".join("q" if _TYPES.get(name) else "i" for name in names)
        self._pack = struct.Struct("<" + codes).pack
        self._bytes = bytearray()

    def add(self, *values: int) -> None:
        """Append a row, its values in the order of the table's columns."""
        self._bytes += self._pack(*values)

    def __len__(self) -> int:
        return len(self._bytes) // self._dtype.itemsize

    def table(self, shift: int = 0) -> Any:
        """The table, sorted by start (longer first), its times moved by ``shift`` ns."""
        records = np.frombuffer(self._bytes, self._dtype)
        order = np.lexsort((-records["end"], records["start"]))
        columns = {name: records[name][order] for name in self._dtype.names or ()}
        columns["start"] += shift
        columns["end"] += shift
        return self._kind(**columns)


_TYPES = {"start": "<i8", "end": "<i8", "correlation": "<i8", "op": "<i8", "size": "<i8"}
