"""Kineto files: spellings of old and new versions, ranks, UTC, messages of collectives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.evidence.traces.kineto_file import BASE_NS, KinetoFile, busy_steps

from gpuwhy.evidence.traces import kineto
from gpuwhy.evidence.traces.trace import ANNOTATION, KERNEL, MEMCPY, Message, TraceError


def test_a_current_file(tmp_path: Path) -> None:
    trace = kineto.read(busy_steps(rank=1).write(tmp_path / "a.json.gz"))
    assert trace.source == "a.json.gz"
    assert (trace.rank, trace.world_size) == (1, 2)
    assert trace.origin_ns == BASE_NS
    assert len(trace.activities.start) == 40
    assert set(trace.activities.kind.tolist()) == {KERNEL}
    assert (trace.activities.start[1:] >= trace.activities.start[:-1]).all()
    assert trace.blind == []


def test_an_old_file(tmp_path: Path) -> None:
    """torch 1.8: capitals, ``external id``, streams as text, times in UTC by themselves."""
    now = 1_623_142_623_460_016
    events = [
        {"ph": "X", "cat": "Operator", "name": "aten::empty", "pid": 9, "tid": "9", "ts": now,
         "dur": 25, "args": {"External id": 2, "Call stack": "a.py(3): f;a.py(9): <module>"}},
        {"ph": "X", "cat": "Operator", "name": "ProfilerStep#5", "pid": 9, "tid": "9", "ts": now,
         "dur": 900, "args": {"External id": 1}},
        {"ph": "X", "cat": "Runtime", "name": "cudaMemcpyAsync", "pid": 9, "tid": "9",
         "ts": now + 10, "dur": 5, "args": {"correlation": 7, "external id": 2}},
        {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0,
         "tid": "stream 7", "ts": now + 40, "dur": 20,
         "args": {"device": 0, "stream": 7, "correlation": 7, "external id": 2, "bytes": 100}},
    ]  # fmt: skip
    (tmp_path / "old.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    trace = kineto.read(tmp_path / "old.json")
    assert trace.origin_ns == 0
    assert trace.activities.start.tolist() == [(now + 40) * 1000]
    assert trace.activities.kind.tolist() == [MEMCPY]
    assert trace.activities.size.tolist() == [100]
    assert trace.activities.op.tolist() == [2]
    assert trace.stacks == ["a.py(3): f;a.py(9): <module>"]
    assert trace.spans.kind.tolist()[0] == ANNOTATION  # the longer of two that begin together


def test_messages_of_collectives(tmp_path: Path) -> None:
    made = KinetoFile()
    made.launch(
        1, 10, 50, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
        **{"Collective name": "allreduce", "In msg nelems": 1000, "dtype": "Float",
           "Process Group Name": "0", "Group size": 2},
    )  # fmt: skip
    trace = kineto.read(made.write(tmp_path / "a.json"))
    assert trace.messages == {1: Message("allreduce", 4000, "0", 2)}


@pytest.mark.parametrize(
    ("name", "rank"), [("rank3.json", 3), ("train_rank-12.json.gz", 12), ("host_1.json", None)]
)
def test_the_rank_by_the_files_name(name: str, rank: int | None, tmp_path: Path) -> None:
    assert kineto.read(busy_steps().write(tmp_path / name)).rank == rank


@pytest.mark.parametrize("ts", ["later", None, float("1e300"), [], {}])
def test_an_event_that_is_none_is_left_out_and_told(ts: Any, tmp_path: Path) -> None:
    made = busy_steps()
    made.span("aten::odd", 1, 1)
    made.events[-1]["ts"] = ts
    trace = kineto.read(made.write(tmp_path / "a.json"))
    assert [b.signal for b in trace.blind] == ["events"]
    assert "1 events" in trace.blind[0].why


def test_times_on_an_axis_of_their_own_are_not_called_utc(tmp_path: Path) -> None:
    made = busy_steps()
    del made.header["baseTimeNanoseconds"]
    assert kineto.read(made.write(tmp_path / "a.json")).origin_ns is None


def test_bytes_that_are_no_utf8_are_shown_as_such(tmp_path: Path) -> None:
    text = busy_steps().text().replace("gemm", "g\u00e4mm").encode("latin-1", "backslashreplace")
    data = text.replace(b"g\\u00e4mm", b"g\xe4mm")
    (tmp_path / "a.json").write_bytes(data)
    assert "g\ufffdmm" in kineto.read(tmp_path / "a.json").names


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([], "no list traceEvents"),
        ([{"ph": "M", "name": "process_name"}], "neither GPU nor host events"),
        (["text", 3, None, [1]], "neither GPU nor host events"),
    ],
)
def test_files_without_gpu_events(events: list[Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": events}))
    with pytest.raises(TraceError, match=message):
        kineto.read(tmp_path / "a.json")


def test_only_the_host_was_recorded(tmp_path: Path) -> None:
    made = KinetoFile()
    made.span("aten::add", 1, 1)
    with pytest.raises(TraceError, match=r"only 1 host events.*ProfilerActivity\.CUDA"):
        kineto.read(made.write(tmp_path / "a.json"))


def test_a_record_of_too_many_events_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kineto, "MOST_EVENTS", 20)
    with pytest.raises(TraceError, match="profile fewer steps"):
        kineto.read(busy_steps().write(tmp_path / "a.json"))
