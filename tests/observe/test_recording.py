"""Recordings: what is written comes back, and what is broken is refused by name and line."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwhy.observe import interning, recording, wire
from gpuwhy.observe.recording import Recorder, RecordingError, header, read, read_header

HEADER = header(host={"name": "node1"}, gpus=[{"uuid": "GPU-1"}], created=1_796_042_000.0)

frames = st.lists(
    st.tuples(st.sampled_from("fgh"), st.sampled_from(["a.py", "b.py"]), st.integers(1, 4)).map(
        list
    ),
    max_size=6,
)
observations = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "t": st.floats(0, 2e9),
                "kind": st.just("stack"),
                "dt": st.just(0),
                "pid": st.integers(1, 2**22),
                "frames": frames,
            }
        ),
        st.fixed_dictionaries(
            {
                "t": st.integers(0, 4_000_000_000),
                "kind": st.just("host"),
                "note": st.text(max_size=20),
            }
        ),
    ),
    max_size=30,
)


def record(path: Path, items: list[dict[str, Any]]) -> Path:
    with Recorder(path, HEADER) as recorder:
        for item in items:
            recorder.write(item)
    return path


def packed(path: Path, *lines: object) -> Path:
    text = "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
    path.write_bytes(gzip.compress(text.encode()))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(RecordingError) as caught:
        list(read(path)[1])
    assert str(path) in str(caught.value)
    return str(caught.value)


@settings(max_examples=60, deadline=None)
@given(observations)
def test_what_was_written_comes_back(tmp_path_factory: Any, items: list[dict[str, Any]]) -> None:
    path = tmp_path_factory.mktemp("r") / "a.gpuwhy.gz"
    record(path, items)
    found, back = read(path)
    assert found == HEADER == read_header(path)
    assert list(back) == items


def test_the_header_says_when_and_by_what() -> None:
    assert HEADER["format"] == "gpuwhy-recording"
    assert HEADER["version"] == 1
    assert HEADER["created"] == "2026-11-30T12:33:20Z"
    assert "note" not in HEADER
    assert header(host={}, gpus=[], note="by hand")["note"] == "by hand"


def test_the_same_observations_make_the_same_bytes(tmp_path: Path) -> None:
    items = [{"t": 1.0, "kind": "host"}]
    a, b = record(tmp_path / "a.gpuwhy.gz", items), record(tmp_path / "b.gpuwhy.gz", items)
    assert a.read_bytes() == b.read_bytes()


def test_frames_are_written_once(tmp_path: Path) -> None:
    deep = [[f"function_{i}", "/job/train.py", i] for i in range(40)]
    items = [
        {"t": float(i), "kind": "stack", "pid": 1, "dt": 0, "frames": deep} for i in range(100)
    ]
    path = record(tmp_path / "a.gpuwhy.gz", items)
    assert gzip.decompress(path.read_bytes()).count(b"function_7") == 1
    assert list(read(path)[1]) == items


def test_the_table_of_frames_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interning, "MAX_FRAMES", 60)
    monkeypatch.setattr(interning, "MAX_DEPTH", 10)
    items = [
        {
            "t": float(i),
            "kind": "stack",
            "pid": 1,
            "dt": 0,
            "frames": [["leaf", "a.py", i], ["main", "a.py", i % 7]],
        }
        for i in range(500)
    ]
    assert list(read(record(tmp_path / "a.gpuwhy.gz", items))[1]) == items


def test_a_number_that_is_not_finite_is_absent(tmp_path: Path) -> None:
    nan, inf = float("nan"), float("inf")
    path = record(
        tmp_path / "a.gpuwhy.gz",
        [{"t": 1.0, "kind": "of tomorrow", "dram": nan, "sm": 0.5, "deep": {"x": [1.0, inf]}}],
    )
    assert list(read(path)[1]) == [
        {"t": 1.0, "kind": "of tomorrow", "sm": 0.5, "deep": {"x": [1.0, None]}}
    ]


def test_nothing_has_the_name_before_the_recording_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.gpuwhy.gz"
    recorder = Recorder(path, HEADER)
    recorder.write({"t": 1.0, "kind": "host"})
    assert not path.exists()
    recorder.close()
    recorder.close()
    assert [p.name for p in tmp_path.iterdir()] == ["a.gpuwhy.gz"]


def test_two_recorders_do_not_write_into_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.gpuwhy.gz"
    with Recorder(path, HEADER) as first:
        first.write({"t": 1.0, "kind": "host"})
        with pytest.raises(RecordingError, match="another gpuwhy is recording into it"):
            Recorder(path, HEADER)
        first.write({"t": 2.0, "kind": "host"})
    assert [seen["t"] for seen in read(path)[1]] == [1.0, 2.0]
    record(path, [{"t": 3.0, "kind": "host"}])
    assert [seen["t"] for seen in read(path)[1]] == [3.0]


def test_what_a_killed_recorder_left_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a.gpuwhy.gz"
    path.with_name(path.name + ".partial").write_bytes(b"x" * 10_000)
    record(path, [{"t": 3.0, "kind": "host"}])
    assert [seen["t"] for seen in read(path)[1]] == [3.0]
    assert path.stat().st_size < 1000


def test_a_failure_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = record(tmp_path / "a.gpuwhy.gz", [{"t": 1.0, "kind": "host"}])
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError), Recorder(path, HEADER):
        _ = 1 / 0
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.gpuwhy.gz"]


def test_an_interrupt_completes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.gpuwhy.gz"
    with pytest.raises(KeyboardInterrupt), Recorder(path, HEADER) as recorder:
        recorder.write({"t": 1.0, "kind": "host"})
        raise KeyboardInterrupt
    assert list(read(path)[1]) == [{"t": 1.0, "kind": "host"}]


def test_a_killed_recorder_leaves_a_partial_file_that_is_read(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import sys, time
        from gpuwhy.observe.recording import Recorder, header
        recorder = Recorder(sys.argv[1], header(host={}, gpus=[]))
        for i in range(100):
            recorder.write({"t": float(i), "kind": "host"})
        print("written", flush=True)
        time.sleep(60)
    """)
    path = tmp_path / "a.gpuwhy.gz"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
    assert not path.exists()
    times = [x["t"] for x in read(tmp_path / "a.gpuwhy.gz.partial")[1]]
    assert times == [float(i) for i in range(len(times))]
    assert len(times) >= 95  # at most the last 5 s are lost


def test_a_full_disk_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.gpuwhy.gz"
    recorder = Recorder(path, HEADER)

    class BrokenFile(io.BufferedWriter):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert recorder._raw is not None
    monkeypatch.setattr(
        recorder, "_raw", BrokenFile(io.FileIO(os.dup(recorder._raw.fileno()), "w"))
    )
    with pytest.raises(RecordingError, match=r"a\.gpuwhy\.gz: No space left on device"):
        recorder.write({"t": 1.0, "kind": "host"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_really_full_device_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.gpuwhy.gz"
    (tmp_path / "a.gpuwhy.gz.partial").symlink_to("/dev/full")
    with pytest.raises(RecordingError, match="No space left on device"):
        record(path, [{"t": 1.0, "kind": "host"}])
    assert list(tmp_path.iterdir()) == []


def test_an_impossible_target_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file or directory"):
        Recorder(tmp_path / "none" / "a.gpuwhy.gz", HEADER)
    with pytest.raises(RecordingError, match="is a directory"):
        Recorder(tmp_path, HEADER)


def test_truncated_files_are_refused_at_every_length(tmp_path: Path) -> None:
    items = [{"t": float(i), "kind": "host", "note": str(i)} for i in range(50)]
    whole = record(tmp_path / "a.gpuwhy.gz", items).read_bytes()
    broken = tmp_path / "b.gpuwhy.gz"
    for length in range(0, len(whole), 7):
        broken.write_bytes(whole[:length])
        message = refusal(broken)
        assert "truncated" in message or "no gpuwhy recording" in message


def test_damaged_bytes_never_pass_for_observations(tmp_path: Path) -> None:
    items = [{"t": float(i), "kind": "host", "note": str(i)} for i in range(50)]
    whole = record(tmp_path / "a.gpuwhy.gz", items).read_bytes()
    broken = tmp_path / "b.gpuwhy.gz"
    for at in range(10, len(whole), 11):
        broken.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
        refusal(broken)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("hello\n")
    assert "not gzip" in refusal(text)
    assert "line 1 is not its header" in refusal(packed(tmp_path / "b", {"t": 1, "kind": "host"}))
    assert "line 1 is not its header" in refusal(packed(tmp_path / "c", "[1, 2]"))
    assert "No such file" in refusal(tmp_path / "none")
    assert "Is a directory" in refusal(tmp_path)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "a.gpuwhy.gz"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), Path("/dev/tty")):
        if path.exists():
            assert "cannot read" in refusal(path)
    assert "pipe or a device: copy it into a file" in refusal(pipe)
    for path in (pipe, Path("/dev/null")):
        with pytest.raises(RecordingError, match="it is a pipe or device; name a file"):
            Recorder(path, HEADER)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_newer_version_is_refused_with_the_remedy(tmp_path: Path) -> None:
    message = refusal(packed(tmp_path / "a", {**HEADER, "version": 2, "gpuwhy": "9.1.0"}))
    assert "made by gpuwhy 9.1.0" in message
    assert "upgrade gpuwhy" in message


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not JSON"),
        ("3", "no JSON object"),
        ('{"t": 1}', "no kind"),
        ('{"kind": "host"}', "no number"),
        ('{"kind": "host", "t": NaN}', "NaN"),
        ('{"kind": "host", "t": true}', "no number"),
        ('{"kind": "frame", "id": 1, "frame": ["f", "a.py", 1]}', "out of order"),
        ('{"kind": "frame", "id": 0, "frame": ["f"]}', "not [name, file, line]"),
        ('{"kind": "frame", "id": 0, "frame": ["f", "a.py", 1], "caller": 0}', "unknown caller"),
        ('{"kind": "stack", "t": 1, "pid": 1, "dt": 0, "frames": 5}', "unknown frame"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, why: str) -> None:
    message = refusal(packed(tmp_path / "a", HEADER, {"t": 1, "kind": "host"}, line))
    assert "line 3 is damaged" in message
    assert why in message


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_LINE", 1000)
    path = packed(tmp_path / "a", HEADER, {"t": 1, "kind": "host", "note": "x" * 2000})
    assert "line 2 is longer than 1000 bytes" in refusal(path)


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_BOMB_BYTES", 100_000)
    lines = [{"t": 1, "kind": "host"}] * 200_000
    assert "unpacks to more than 200 times" in refusal(packed(tmp_path / "a", HEADER, *lines))
