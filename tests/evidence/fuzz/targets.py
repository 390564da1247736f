"""The readers of foreign files as functions of bytes, for fuzzing.

A target returns, or raises TraceError or LogError with a message; anything else is a fault, as is
an answer that contradicts itself. ``bench/fuzz/fuzz.py`` drives them with coverage feedback,
``test_corpus.py`` with the corpus that came of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpuwhy.evidence import report
from gpuwhy.evidence.imports import dmon, dstat_csv, logs, nvidia_smi_csv, pyspy_raw
from gpuwhy.evidence.imports.text_table import LogError
from gpuwhy.evidence.terminal import Style
from gpuwhy.evidence.traces import kineto, ncu, ncu_csv, nsys_sqlite
from gpuwhy.evidence.traces.analysis import analyse
from gpuwhy.evidence.traces.json_events import EventReader
from gpuwhy.evidence.traces.read import kind_of, read_kernels, read_trace
from gpuwhy.evidence.traces.trace import Trace, TraceError

Target = Callable[[bytes], None]

YEAR, ENDS = 2026, 1.79e9
PIECE_SIZES = (3, 17, 64, 300, 1000)

_SHM = Path("/dev/shm")
_FOLDER = tempfile.TemporaryDirectory(dir=_SHM if os.access(_SHM, os.W_OK) else None)
_FILE = Path(_FOLDER.name) / "fuzzed"


@contextlib.contextmanager
def refusals_are_answers() -> Iterator[None]:
    """A refusal has to say something; numpy's warnings count as faults."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            yield
        except (TraceError, LogError) as error:
            assert str(error)


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def events(data: bytes) -> None:
    """The reader of events agrees with the whole-file parser, however the file is cut."""
    text = text_of(data)
    size = PIECE_SIZES[len(data) % len(PIECE_SIZES)]
    cut = (text[i : i + size] for i in range(0, len(text), size))
    reader = EventReader("a.json", cut)
    found = None
    with refusals_are_answers():
        found = list(reader)
    whole = parsed(text)
    if found is not None and whole is not None:
        assert repr(found) == repr(whole)


def parsed(text: str) -> list[Any] | None:
    """The events by ``json.loads``; None where the text is no JSON or holds the list twice."""
    try:
        whole = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    if text.count("traceEvents") > 1 or "\\u" in text:
        return None
    held = whole.get("traceEvents") if isinstance(whole, dict) else whole
    return held if isinstance(held, list) else None


def consistent(data: bytes, traces: list[Trace]) -> None:
    """The accounts of an analysis add up, and its JSON is JSON; for one input in eight, as it
    takes ten times as long as the reading."""
    if zlib.crc32(data) % 8:
        return
    analysis = analyse(traces)
    json.dumps(analysis.as_json(), allow_nan=False)
    for entry in analysis.ranks:
        assert not entry["accounts"] or abs(sum(entry["accounts"].values()) - 1) < 0.01


def kineto_file(data: bytes) -> None:
    """A file of the PyTorch profiler, through to its accounts."""
    _FILE.write_bytes(data)
    with refusals_are_answers():
        consistent(data, [kineto.read(_FILE)])


def nsys_file(data: bytes) -> None:
    """An SQLite export as bytes."""
    _FILE.write_bytes(data)
    with refusals_are_answers():
        consistent(data, nsys_sqlite.read(_FILE, "a.sqlite"))


NSYS_TABLES = {
    "K": ("CUPTI_ACTIVITY_KIND_KERNEL", "start end correlationId deviceId streamId globalPid "
          "demangledName shortName gridX gridY gridZ"),
    "C": ("CUPTI_ACTIVITY_KIND_MEMCPY", "start end correlationId deviceId streamId globalPid "
          "bytes copyKind srcKind dstKind"),
    "M": ("CUPTI_ACTIVITY_KIND_MEMSET", "start end correlationId deviceId streamId globalPid "
          "bytes"),
    "G": ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "start end correlationId deviceId streamId "
          "globalPid"),
    "R": ("CUPTI_ACTIVITY_KIND_RUNTIME", "start end correlationId globalTid nameId"),
    "N": ("NVTX_EVENTS", "start end globalTid text textId"),
    "O": ("OSRT_API", "start end globalTid nameId"),
    "P": ("PROFILER_OVERHEAD", "start end globalTid nameId"),
    "S": ("StringIds", "id value"),
    "T": ("ThreadNames", "globalTid nameId"),
    "D": ("TARGET_INFO_GPU", "id name uuid"),
    "U": ("TARGET_INFO_SESSION_START_TIME", "utcEpochNs"),
    "A": ("META_DATA_EXPORT", "name value"),
    "E": ("TARGET_INFO_SYSTEM_ENV", "name value"),
    "I": ("MPI_RANKS", "globalTid rank"),
}  # fmt: skip


def nsys_rows(data: bytes) -> None:
    """An export that is sound as a database and odd in its rows: ``K,1000,2000,7`` in a line.

    A table has the columns that its longest row has values for.
    """
    rows: dict[str, list[list[object]]] = {}
    for line in text_of(data).splitlines():
        letter, *cells = line.split(",")
        if letter in NSYS_TABLES:
            rows.setdefault(letter, []).append([cell_of(cell) for cell in cells])
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        for letter, own in rows.items():
            filled(database, letter, own)
        with refusals_are_answers():
            consistent(data, nsys_sqlite.read_database(database, "a.sqlite"))


def filled(database: sqlite3.Connection, letter: str, rows: list[list[object]]) -> None:
    table, names = NSYS_TABLES[letter]
    columns = names.split()[: max(1, *map(len, rows))]
    quoted = ", ".join(f'"{name}"' for name in columns)
    database.execute(f"CREATE TABLE {table} ({quoted})")
    marks = ", ".join("?" * len(columns))
    padded = [(row + [None] * len(columns))[: len(columns)] for row in rows]
    with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeEncodeError):
        database.executemany(f"INSERT INTO {table} VALUES ({marks})", padded)


def cell_of(text: str) -> object:
    """An integer, a number, nothing, bytes after ``x``, else a text."""
    if not text:
        return None
    if text.startswith("x"):
        return text.encode("utf-8", "replace")
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def ncu_file(data: bytes) -> None:
    """Nsight Compute's CSV, to its advice."""
    with refusals_are_answers():
        table = ncu.table(ncu_csv.parse(text_of(data), "a.csv"))
        json.dumps(table.as_json(), allow_nan=False)
        assert ncu.advice(table, Style())


def nvidia_smi_log(data: bytes) -> None:
    with refusals_are_answers():
        ordered(nvidia_smi_csv.parse(text_of(data), "a.csv", 0.0))


def dmon_log(data: bytes) -> None:
    with refusals_are_answers():
        ordered(dmon.parse(text_of(data), "a.log", 0.0, ENDS))


def dstat_log(data: bytes) -> None:
    with refusals_are_answers():
        for seen in dstat_csv.parse(text_of(data), "a.csv", 0.0, YEAR):
            json.dumps(seen, allow_nan=False)


def ordered(observations: list[dict[str, Any]]) -> None:
    """By time, and fit for a recording."""
    times = [seen["t"] for seen in observations]
    assert times == sorted(times)
    json.dumps(observations, allow_nan=False)


def py_spy_raw(data: bytes) -> None:
    with refusals_are_answers():
        stacks = pyspy_raw.parse(text_of(data), "a.raw")
        list(pyspy_raw.observations(stacks, 1000, [1.0, 2.0]))


def any_file(data: bytes) -> None:
    """What a command does with a file: its kind by its first bytes, then the reader of that."""
    _FILE.write_bytes(data)
    with refusals_are_answers():
        kind = kind_of(_FILE)
        if kind == "timeline":
            consistent(data, read_trace(_FILE))
        elif kind == "kernels":
            ncu.table(read_kernels([_FILE]))
        else:
            assert report.render(logs.diagnose([(_FILE, kind)]), Style(), "from a log")


TARGETS: dict[str, Target] = {
    "any": any_file,
    "dmon": dmon_log,
    "dstat": dstat_log,
    "events": events,
    "kineto": kineto_file,
    "ncu": ncu_file,
    "nsys-rows": nsys_rows,
    "nsys-sqlite": nsys_file,
    "nvidia-smi": nvidia_smi_log,
    "py-spy": py_spy_raw,
}
