"""Databases built to the documented schema of Nsight Systems (see ``nsys_file.py``)."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest
from tests.evidence.traces.nsys_file import CURRENT, OLD, NsysFile, steps

from gpuwhy.evidence.traces import convert, nsys_sqlite
from gpuwhy.evidence.traces.analysis import analyse
from gpuwhy.evidence.traces.read import read_trace
from gpuwhy.evidence.traces.trace import ANNOTATION, OPERATOR, TraceError


def test_a_current_export(tmp_path: Path) -> None:
    made = NsysFile(tmp_path / "a.sqlite")
    made.copy(10, 20, 500)
    made.launch(100, 600, 50)
    made.range(5, 90, string=7)
    made.range(98, 5, string=8)
    made.write()
    (trace,) = nsys_sqlite.read(tmp_path / "a.sqlite", "a.sqlite")
    assert trace.origin_ns == 1_700_000_000_000_000_000
    assert trace.devices == {0: "NVIDIA H200"}
    assert trace.uuids == {0: "GPU-1234"}
    assert trace.about["export_schema_version"] == "3.16.1"
    names = [trace.names[i] for i in trace.activities.name]
    assert names == ["Memcpy HtoD (Pageable -> Device)", "void gemm<float>(int)"]
    assert trace.activities.size.tolist() == [1 << 20, 8]
    assert [trace.names[i] for i in trace.calls.name] == ["cudaMemcpyAsync", "cudaLaunchKernel"]
    spans = [(trace.names[n], k) for n, k in zip(trace.spans.name, trace.spans.kind, strict=True)]
    assert spans == [("enumerate(DataLoader)#x", ANNOTATION), ("aten::mm", OPERATOR)]


@pytest.mark.parametrize("schema", [CURRENT, OLD], ids=["3.16", "2020.4"])
def test_the_verdict_by_ranges(schema: str, tmp_path: Path) -> None:
    analysis = analyse(read_trace(steps(tmp_path / "a.sqlite", schema)))
    (entry,) = analysis.ranks
    assert entry["cause"] == "data"
    assert entry["accounts"]["data"] == pytest.approx(0.5, abs=0.03)
    assert len(next(t for t in analysis.tables if t.key == "steps").rows) == 4
    assert (entry["window"]["start"] is None) is (schema is OLD)
    assert entry["uuid"] == (None if schema is OLD else "GPU-1234")


def test_without_ranges_a_blocked_host_is_not_called_data(tmp_path: Path) -> None:
    (entry,) = analyse(read_trace(steps(tmp_path / "a.sqlite", named=False))).ranks
    assert entry["cause"] == "unknown"
    assert entry["accounts"]["unknown"] > 0.4


def test_without_ranges_a_host_that_runs_is_python(tmp_path: Path) -> None:
    made = NsysFile(tmp_path / "a.sqlite")
    for number in range(4):
        at = 1_000 + number * 2_000
        made.system(6, at + 100, 1)  # system calls are recorded, and none of them waits long
        made.launch(at, at + 10, 500)
    (entry,) = analyse(read_trace(made.write())).ranks
    assert entry["cause"] == "host"
    assert entry["accounts"]["host"] > 0.6


def test_missing_tables(tmp_path: Path) -> None:
    path = steps(tmp_path / "a.sqlite")
    database = sqlite3.connect(path)
    for table in ("NVTX_EVENTS", "OSRT_API", "ThreadNames", "TARGET_INFO_GPU"):
        database.execute(f"DROP TABLE {table}")
    database.execute("DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME")
    database.commit()
    (entry,) = analyse(read_trace(path)).ranks
    assert entry["cause"] == "unknown"
    signals = [blind["signal"] for blind in entry["cannot_see"]]
    assert {"NVTX ranges", "CUDA calls"} <= set(signals)


def test_no_gpu_work(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="--trace=cuda"):
        read_trace(NsysFile(tmp_path / "a.sqlite").write())


def test_a_foreign_database(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "a.sqlite")
    database.execute("CREATE TABLE places (url TEXT)")
    database.commit()
    with pytest.raises(TraceError, match="no Nsight Systems export"):
        read_trace(tmp_path / "a.sqlite")


def test_columns_of_other_types(tmp_path: Path) -> None:
    path = steps(tmp_path / "a.sqlite")
    database = sqlite3.connect(path)
    database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'soon' WHERE rowid = 3")
    database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 1 << 40 WHERE rowid = 4")
    database.execute("UPDATE NVTX_EVENTS SET text = 7 WHERE rowid = 1")  # found by fuzzing
    database.commit()
    (entry,) = analyse(read_trace(path)).ranks
    assert any("2 rows" in blind["why"] for blind in entry["cannot_see"])


def _tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid", "7&1"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "gridZ", "x"),  # times 10^9 it would fill the memory
        ("CUPTI_ACTIVITY_KIND_KERNEL", "streamId", "7&1"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid", b"\xff"),
        ("NVTX_EVENTS", "globalTid", "main"),
    ],
)
def test_a_row_with_a_value_of_another_kind_is_left_out_and_counted(
    table: str, column: str, value: object, tmp_path: Path
) -> None:
    steps(tmp_path / "a.sqlite")
    with sqlite3.connect(tmp_path / "a.sqlite") as database:
        database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = 1", (value,))
        if column == "gridZ":
            database.execute(f"UPDATE {table} SET gridX = 100000, gridY = 10000 WHERE rowid = 1")
    database.close()
    (trace,) = nsys_sqlite.read(tmp_path / "a.sqlite", "a.sqlite")
    assert [b.why for b in trace.blind] == ["1 rows could not be understood and were left out"]


def test_a_report_through_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for nsys, which copies what it is given: the conversion itself is NVIDIA's."""
    steps(tmp_path / "a.nsys-rep")
    _tool(tmp_path, "nsys", 'test "$1 $2 $3" = "export --type sqlite" && cp "$6" "$5"')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (trace,) = read_trace(tmp_path / "a.nsys-rep")
    assert trace.source == "a.nsys-rep"


def test_the_newest_tool_beside_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps(tmp_path / "a.nsys-rep")
    for version, does in (("2023.10.1", "exit 1"), ("2025.3.2", 'cp "$6" "$5"')):
        place = tmp_path / "opt/nvidia/nsight-systems" / version / "bin"
        place.mkdir(parents=True)
        _tool(place, "nsys", does)
    monkeypatch.setattr(convert.shutil, "which", lambda _: None)
    monkeypatch.setattr(convert, "ROOT", tmp_path)
    (trace,) = read_trace(tmp_path / "a.nsys-rep")
    assert trace.source == "a.nsys-rep"


def test_a_tool_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.nsys-rep").write_text("x")
    _tool(tmp_path, "nsys", "echo 'version is newer' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(TraceError, match=r"version is newer.*nsys export --type sqlite"):
        read_trace(tmp_path / "a.nsys-rep")


def test_without_the_tool_the_command_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.nsys-rep").write_text("x")
    monkeypatch.setattr(convert.shutil, "which", lambda _: None)
    monkeypatch.setattr(convert, "ROOT", tmp_path)
    with pytest.raises(
        TraceError, match=r"nsys export --type sqlite --output a\.sqlite a\.nsys-rep"
    ):
        read_trace(tmp_path / "a.nsys-rep")
