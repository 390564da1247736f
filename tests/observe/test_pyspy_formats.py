"""The formats that py-spy writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuwhy.observe.pyspy_formats import (
    FailedRead,
    began,
    failed_reads,
    failed_samples,
    is_torn_read,
    parse_dump,
    parse_trace,
    stacks_seen,
    without_log,
)


def _event(ph: str, ts: int, name: str, file: str = "/job/train.py", line: int = 1) -> Any:
    args = {"filename": file, "line": line}
    return {"ph": ph, "ts": ts, "name": name, "pid": 7, "tid": 99, "cat": "py-spy", "args": args}


MAIN = ("thread (7): MainThread", "", 0)
TRACE = [
    _event("B", 100_000, *MAIN),
    _event("B", 100_000, "<module>", line=30),
    _event("B", 100_000, "train", line=12),
    _event("E", 300_000, "train", line=12),
    _event("B", 300_000, "train", line=14),
    _event("B", 300_000, "step", line=3),
    _event("E", 900_000, "step", line=3),
    _event("E", 900_000, "train", line=14),
    _event("E", 900_000, "<module>", line=30),
    _event("E", 900_000, *MAIN),
]


def test_trace() -> None:
    trace = parse_trace(json.dumps(TRACE).encode())
    (thread,) = trace.threads
    assert (thread.tid, thread.name, trace.end) == (7, "MainThread", 0.9)
    assert thread.changes == [
        (0.1, [["train", "/job/train.py", 12], ["<module>", "/job/train.py", 30]]),
        (
            0.3,
            [
                ["step", "/job/train.py", 3],
                ["train", "/job/train.py", 14],
                ["<module>", "/job/train.py", 30],
            ],
        ),
    ]


def test_trace_with_the_thread_names_of_newer_versions() -> None:
    name = {"ph": "M", "ts": 0, "name": "thread_name", "pid": 7, "tid": 99, "args": {"name": "x"}}
    trace = parse_trace(json.dumps([name, *TRACE]).encode())
    assert len(trace.threads) == 1


def test_threads_without_a_name_and_without_an_os_id() -> None:
    label = ("thread (0x7F00AA)", "", 0)
    events = [_event("B", 1, *label), _event("B", 1, "apply"), _event("E", 9, "apply")]
    (thread,) = parse_trace(json.dumps([*events, _event("E", 9, *label)]).encode()).threads
    assert (thread.tid, thread.name) == (0x7F00AA, "")


def test_threads_that_run_no_python_are_left_out() -> None:
    label = ("thread (8): cuda", "", 0)
    trace = parse_trace(json.dumps([_event("B", 1, *label), _event("E", 9, *label)]).encode())
    assert trace.threads == []
    assert parse_trace(b"[]").threads == []


@pytest.mark.parametrize(
    "text", [b"", b"[", b"{}", b"nonsense", json.dumps([_event("E", 1, "train")]).encode()]
)
def test_a_damaged_trace(text: bytes) -> None:
    with pytest.raises(ValueError):
        parse_trace(text)


def test_dump() -> None:
    local = {"name": "step", "addr": 1, "arg": False, "repr": "24"}
    frame = {
        "name": "train", "filename": "/job/train.py", "line": 12, "locals": [local],
        "module": None, "short_filename": "train.py", "is_entry": True,
    }  # fmt: skip
    thread = {
        "pid": 7, "thread_id": 99, "thread_name": None, "os_thread_id": None, "active": True,
        "owns_gil": False, "frames": [frame], "process_info": None,
    }  # fmt: skip
    (read,) = parse_dump(json.dumps([thread, {**thread, "frames": []}]).encode())
    assert (read.tid, read.name, read.active, read.gil) == (99, "", True, False)
    assert read.frames == [["train", "/job/train.py", 12]]
    assert read.locals == [("train", "/job/train.py", "step", "24")]


@pytest.mark.parametrize("text", [b"", b"{}", b"[", b"null"])
def test_a_damaged_dump(text: bytes) -> None:
    with pytest.raises(ValueError):
        parse_dump(text)


LOG = """[2026-11-30T17:59:08.643823508Z INFO  py_spy::config] config Config {
        blocking: NonBlocking,
        pid: Some(
            7699,
        ),
    }
py-spy> Sampling process 50 times a second for 6 seconds. Press Control-C to exit.
[2026-11-30T17:59:09.500000000Z WARN  py_spy] Failed to get stack trace from 7699: Failed to call \
get_stack_trace for thread 140472333581184
[2026-11-30T17:59:09.600000000Z WARN  py_spy] Failed to get stack trace from 7699: Failed to copy \
PyThreadState

py-spy> Wrote chrome trace to '/proc/self/fd/3'. Samples: 49 Errors: 2
"""


def test_the_log_of_a_record() -> None:
    started = began(LOG)
    assert started == pytest.approx(1796061548.643823, abs=1e-5)
    assert failed_reads(LOG) == [FailedRead(1796061549.5, 140472333581184)]
    assert failed_samples(LOG) == 2
    said = without_log(LOG)
    assert [line[:14] for line in said.splitlines() if line] == ["py-spy> Sampli", "py-spy> Wrote "]


def test_without_a_log() -> None:
    assert began("py-spy> Sampling") is None
    assert failed_reads("") == []
    assert without_log("Error: no\nReason: none\n") == "Error: no\nReason: none\n"


def test_messages() -> None:
    closing = "py-spy> Wrote chrome trace to '/proc/self/fd/3'. Samples: 294 Errors: 5\n"
    assert failed_samples(closing) == 5
    assert failed_samples("") == 0
    assert stacks_seen("Wrote it. Samples: 506 Errors: 1\n") == 506
    assert stacks_seen("") is None
    assert is_torn_read("Error: Failed to copy PyFrameObject\n")
    assert not is_torn_read("Permission Denied: Try running again with elevated permissions")
