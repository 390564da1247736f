"""The SQLite export of an Nsight Systems report (``nsys export --type sqlite``).

Tables are made only where there is something in them, and columns have come and gone since 2020
(schema versions 2 to 3), so each is looked for before it is asked for. Documented at
https://docs.nvidia.com/nsight-systems/UserGuide/index.html#sqlite-schema-reference
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuwhy.evidence.traces import nsys_rows as rows
from gpuwhy.evidence.traces.nsys_rows import Row
from gpuwhy.evidence.traces.trace import (
    ANNOTATION,
    KERNEL,
    OPERATOR,
    SYSTEM,
    UNKNOWN,
    Activities,
    Blind,
    Calls,
    Rows,
    Spans,
    Thread,
    Trace,
    TraceError,
)

KERNELS, COPIES, SETS, GRAPHS, CALLS = (
    f"CUPTI_ACTIVITY_KIND_{kind}"
    for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE", "RUNTIME")
)
_VERSION = re.compile(r"(?:_ptsz|_v\d+)+$")  # cudaLaunchKernel_v7000
_EMITTED = re.compile(r",\s*(?:seq|op_id|sizes|input_op_ids)\s*=.*$", re.DOTALL)
"""What PyTorch's ``emit_nvtx`` adds to the names of its ranges: ``aten::add, seq = 1``."""
_OPERATOR = re.compile(r"^(?:aten|autograd|torch|c10d|prim)::|^\w+Backward\d*$")

Names = Mapping[int, str]
_ODD = (TypeError, ValueError, OverflowError, struct.error)
"""What a value of the wrong kind raises; its row is left out and counted."""


def read(path: Path, source: str) -> list[Trace]:
    """One trace for each process of the report that used a GPU; ``source`` is the name to show.

    Raises TraceError where the file is damaged, no such export, or holds no GPU work.
    """
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            return read_database(database, source)
    except sqlite3.Error as error:
        raise _damaged(source, error) from error


def read_database(database: sqlite3.Connection, source: str) -> list[Trace]:
    """The same of an open database."""
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        return _Report(database, source).traces()
    except (sqlite3.Error, UnicodeDecodeError) as error:  # its own messages it decodes strictly
        raise _damaged(source, error) from error


def _damaged(source: str, error: Exception) -> TraceError:
    return TraceError(f"{source} is damaged ({error}): export it again from the report")


class _Report:
    def __init__(self, database: sqlite3.Connection, source: str) -> None:
        self._database = database
        self._source = source
        found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = {str(name) for (name,) in found}
        self._damaged = 0
        self._names: Names = {}

    def traces(self) -> list[Trace]:
        if "StringIds" not in self._tables:
            raise TraceError(
                f"{self._source} is a database but no Nsight Systems export: it has no table "
                "StringIds (nsys export --type sqlite makes one)"
            )
        self._names = self._strings()
        processes: dict[int, _Process] = {}
        for table, columns, told in self._readers():
            for row in self._rows(table, columns):
                try:
                    pid, kind, values = told(*row)
                    processes.setdefault(pid, _Process()).add(kind, values)
                except _ODD:
                    self._damaged += 1
        used = {pid: one for pid, one in processes.items() if len(one.activities)}
        if not used:
            raise TraceError(
                f"{self._source} holds no GPU work: record with --trace=cuda,nvtx,osrt, and check "
                "that the GPU was used within the time recorded"
            )
        return [self._trace(pid, one) for pid, one in sorted(used.items())]

    def _trace(self, pid: int, process: _Process) -> Trace:
        ranks = dict(self._ranks())
        names = dict(self._thread_names())
        return Trace(
            source=self._source,
            form="nsys",
            names=list(process.names),
            threads=[Thread(str(pid), str(t), names.get((pid, t), "")) for t in process.threads],
            stacks=[],
            activities=process.activities.table(),
            calls=process.calls.table(),
            spans=process.spans.table(),
            origin_ns=self._start_of_session(),
            rank=ranks.get(pid),
            world_size=len(set(ranks.values())) or None,
            devices=dict(self._cards("name")),
            uuids=dict(self._cards("uuid")),
            about=self._about(),
            blind=self._blind(),
            events=len(process.activities) + len(process.calls) + len(process.spans),
        )

    # -- rows of the tables: (process, kind of table, values) ------------------------------------

    def _readers(self) -> Iterator[tuple[str, Sequence[str], Callable[..., Row]]]:
        """Each table with its columns, and what a row of it tells."""
        common = ("start", "end", "correlationId", "deviceId", "streamId", "globalPid")
        host = ("start", "end", "globalTid")
        names = ("demangledName", "shortName", "gridX", "gridY", "gridZ")
        yield KERNELS, (*common, *names), self._kernel
        yield COPIES, (*common, "bytes", "copyKind", "srcKind", "dstKind"), rows.copy
        yield SETS, (*common, "bytes"), rows.memset
        yield GRAPHS, common, rows.graph
        yield CALLS, (*host, "correlationId", "nameId"), self._call
        yield "NVTX_EVENTS", (*host, "text", "textId"), self._range
        yield "OSRT_API", (*host, "nameId"), self._system
        yield "PROFILER_OVERHEAD", (*host, "nameId"), self._overhead

    def _kernel(self, *row: Any) -> Row:
        *place, long, short, x, y, z = row
        name = self._names.get(long) or self._names.get(short) or "kernel"
        return rows.activity(
            place, KERNEL, name, int(x) * int(y) * int(z) if x and y and z else UNKNOWN
        )

    def _call(self, start: Any, end: Any, tid: Any, correlation: Any, name: Any) -> Row:
        shown = _VERSION.sub("", self._names.get(name, "call"))
        return rows.process_of(tid), "call", (start, end, correlation, rows.thread_of(tid), shown)

    def _range(self, start: Any, end: Any, tid: Any, text: Any, text_id: Any) -> Row:
        name = _EMITTED.sub("", str(text) if text else self._names.get(text_id, ""))
        if end is None or not name:
            return rows.process_of(tid), "mark", ()  # of a moment, or the name of a domain
        kind = OPERATOR if _OPERATOR.match(name) else ANNOTATION
        return rows.process_of(tid), "span", (start, end, rows.thread_of(tid), name, kind)

    def _system(self, start: Any, end: Any, tid: Any, name: Any, prefix: str = "") -> Row:
        shown = prefix + self._names.get(name, "call")
        return rows.process_of(tid), "span", (start, end, rows.thread_of(tid), shown, SYSTEM)

    def _overhead(self, start: Any, end: Any, tid: Any, name: Any) -> Row:
        return self._system(start, end, tid, name, "overhead: ")

    def _rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The columns of a table that this version has, the others as NULL."""
        if table not in self._tables:
            return
        there = {row[1] for row in self._database.execute(f'PRAGMA table_info("{table}")')}
        asked = ", ".join(f'"{column}"' if column in there else "NULL" for column in columns)
        yield from self._database.execute(f'SELECT {asked} FROM "{table}"')  # noqa: S608 - constants

    def _strings(self) -> Names:
        pairs = self._rows("StringIds", ("id", "value"))
        return {i: str(value) for i, value in pairs if value is not None}

    # -- what is told once -----------------------------------------------------------------------

    def _thread_names(self) -> Iterator[tuple[tuple[int, int], str]]:
        for tid, name in self._rows("ThreadNames", ("globalTid", "nameId")):
            if isinstance(tid, int):
                yield (rows.process_of(tid), rows.thread_of(tid)), self._names.get(name, "")

    def _ranks(self) -> Iterator[tuple[int, int]]:
        for tid, rank in self._rows("MPI_RANKS", ("globalTid", "rank")):
            if isinstance(tid, int) and isinstance(rank, int):
                yield rows.process_of(tid), rank

    def _cards(self, column: str) -> Iterator[tuple[int, str]]:
        for index, value in self._rows("TARGET_INFO_GPU", ("id", column)):
            if isinstance(index, int) and value:
                yield index, str(value)

    def _start_of_session(self) -> int | None:
        """UTC of time 0, ns; not in exports before 2021."""
        row = next(self._rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)), (None,))
        return int(row[0]) if isinstance(row[0], int) and row[0] > 0 else None

    def _about(self) -> dict[str, Any]:
        made = {str(n): v for n, v in self._rows("META_DATA_EXPORT", ("name", "value"))}
        kept = ("EXPORT_SCHEMA_VERSION", "EXPORT_PRODUCT_VERSION")
        about = {name.lower(): str(made[name]) for name in kept if made.get(name)}
        system = dict[Any, Any](self._rows("TARGET_INFO_SYSTEM_ENV", ("name", "value")))
        host = system.get("Hostname")
        driver = system.get("NvDriverVersion") or system.get("DriverVersion")
        return about | {k: str(v) for k, v in (("host_name", host), ("driver", driver)) if v}

    def _blind(self) -> list[Blind]:
        absent = []
        if "NVTX_EVENTS" not in self._tables:
            absent.append(
                Blind(
                    "NVTX ranges",
                    "the report has none, so neither steps nor the loader can be known by name",
                    "add one round the loader and the step (gpuwhy nsys tells how)",
                )
            )
        if self._damaged:
            why = f"{self._damaged} rows could not be understood and were left out"
            absent.append(Blind("events", why, "export again with a current nsys"))
        return absent


class _Process:
    """What one process did, as it is collected."""

    def __init__(self) -> None:
        self.activities, self.calls, self.spans = Rows(Activities), Rows(Calls), Rows(Spans)
        self.names: dict[str, int] = {}
        self.threads: dict[int, int] = {}

    def add(self, kind: str, row: Sequence[Any]) -> None:
        """Append a row; raises struct.error or TypeError for one with a value that is none."""
        if kind == "activity":
            start, end, correlation, device, stream, what, name, size = row
            self.activities.add(
                start, max(start, end), rows.known(correlation), UNKNOWN, rows.known(size), what,
                rows.known(device), stream % 2**31, self._name(name), 0,
            )  # fmt: skip
        elif kind == "call":
            start, end, correlation, tid, name = row
            thread = self._thread(tid)
            self.calls.add(
                start, max(start, end), rows.known(correlation), thread, self._name(name)
            )
        elif kind == "span":
            start, end, tid, name, what = row
            thread = self._thread(tid)
            self.spans.add(start, max(start, end), UNKNOWN, thread, self._name(name), what, UNKNOWN)

    def _name(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    def _thread(self, tid: int) -> int:
        return self.threads.setdefault(tid, len(self.threads))
