"""Playing recordings: alone and side by side, at once and at true speed, looped and stopped."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from gpuwhy.observe.playback import GAP_S, play
from gpuwhy.observe.recording import Recorder, RecordingError, header, read
from gpuwhy.observe.relabel import PIDS_APART

Items = list[dict[str, Any]]


def record(path: Path, items: Items, uuid: str = "GPU-1", gpu: int = 0) -> Path:
    with Recorder(path, header(host={}, gpus=[{"uuid": uuid, "gpu": gpu}])) as recorder:
        for item in items:
            recorder.write(item)
    return path


def some(t: float, seconds: int, uuid: str = "GPU-1") -> Items:
    """A job of ``seconds`` from ``t`` on, started 100 s before."""
    items: Items = []
    for i in range(seconds):
        process = {"pid": 7, "ppid": 1, "start": t - 100, "role": "rank", "run": "job", "rank": 0}
        process |= {"rank_pid": 7, "gpus": [uuid], "cgroup": "/job"}
        items += [
            {"t": t + i, "kind": "gpu", "uuid": uuid, "utilization": 0.5},
            {"t": t + i, "kind": "processes", "processes": [process]},
            {"t": t + i - 1.5, "kind": "stack", "pid": 7, "dt": 0.1, "frames": [["f", "a.py", 1]]},
        ]
    return items


def of_kind(kind: str, items: Items) -> Items:
    return [item for item in items if item["kind"] == kind]


def test_one_recording_at_once_is_as_it_was(recordings: Path) -> None:
    path = recordings / "healthy.gpuwhy.gz"
    assert list(play([path])) == list(read(path)[1])


def test_several_begin_together_and_are_the_gpus_of_one_host(tmp_path: Path) -> None:
    a = record(tmp_path / "a", some(1000.25, 3))
    b = record(tmp_path / "b", some(5000.75, 3), gpu=3)
    items = list(play([a, b]))
    assert [i["uuid"] for i in of_kind("gpu", items)] == ["GPU-1", "GPU-1-1"] * 3
    assert [i["t"] for i in of_kind("gpu", items)] == [
        1000.25,
        1000.75,
        1001.25,
        1001.75,
        1002.25,
        1002.75,
    ]
    # A host has one process table.
    first, second = of_kind("processes", items)[-1]["processes"]
    assert (first["pid"], second["pid"]) == (7, 7 + PIDS_APART)
    assert second["ppid"] == 1 + PIDS_APART
    assert (first["gpus"], second["gpus"]) == (["GPU-1"], ["GPU-1-1"])
    assert (first["run"], second["run"]) == ("job", "job (2)")
    assert (first["cgroup"], second["cgroup"]) == ("/job", "/recording-2/job")
    assert first["start"] == 900.25
    assert second["start"] == 900.75
    assert {i["pid"] for i in of_kind("stack", items)} == {7, 7 + PIDS_APART}


def test_everything_that_names_something_is_renamed(tmp_path: Path) -> None:
    rest = {"t": 1.0}
    items = [
        {**rest, "kind": "gpu_info", "uuid": "G", "gpu": 3, "topology": [{"uuid": "H"}]},
        {**rest, "kind": "gpu_processes", "uuid": "G", "processes": [{"pid": 7, "memory": 1}]},
        {**rest, "kind": "sm_share", "uuid": "G", "dt": 1.0, "shares": [[7, 0.5, 0.1]]},
        {**rest, "kind": "cgroup", "path": "/job", "pids": [7]},
        {**rest, "kind": "locals", "pid": 7, "values": [["f", "a.py", "step", 7]]},
        {
            **rest,
            "kind": "nccl",
            "port": "127.0.0.1:28028",
            "communicators": [{"hash": "h", "ranks": [{"rank": 0, "pid": 7, "gpu": 3}]}],
        },
        {**rest, "kind": "host", "cpus": 1},
        {**rest, "kind": "source", "source": "gpm", "up": False, "why": "old"},
        {**rest, "kind": "source", "source": "host", "up": True},
        {**rest, "kind": "source", "source": "stacks", "up": False, "pid": 7},
    ]
    a = record(tmp_path / "a", [{"t": 1.0, "kind": "host"}], "G")
    b = record(tmp_path / "b", items, "G", 3)
    pid = 7 + PIDS_APART
    assert list(play([a, b]))[1:] == [
        {**rest, "kind": "gpu_info", "uuid": "G-1", "gpu": 1, "topology": [{"uuid": "H"}]},
        {**rest, "kind": "gpu_processes", "uuid": "G-1", "processes": [{"pid": pid, "memory": 1}]},
        {**rest, "kind": "sm_share", "uuid": "G-1", "dt": 1.0, "shares": [[pid, 0.5, 0.1]]},
        {**rest, "kind": "cgroup", "path": "/recording-2/job", "pids": [pid]},
        {**rest, "kind": "locals", "pid": pid, "values": [["f", "a.py", "step", 7]]},
        {
            **rest,
            "kind": "nccl",
            "port": "127.0.0.1:28028",
            "communicators": [{"hash": "h", "ranks": [{"rank": 0, "pid": pid, "gpu": 1}]}],
        },
        {**rest, "kind": "source", "source": "gpm", "up": False, "why": "old", "uuid": "G-1"},
        {**rest, "kind": "source", "source": "gpm", "up": False, "why": "old", "uuid": "H"},
        {**rest, "kind": "source", "source": "stacks", "up": False, "pid": pid},
    ]


def test_all_recordings_side_by_side(recordings: Path) -> None:
    paths = sorted(recordings.glob("*.gpuwhy.gz"))
    items = list(play(paths))
    cards = {i["uuid"]: i["gpu"] for i in of_kind("gpu_info", items)}
    assert sorted(cards.values()) == list(range(len(cards)))
    held = [i for i in of_kind("gpu_processes", items) if i["processes"]]
    holders: dict[int, set[str]] = {}
    for item in held:
        for process in item["processes"]:
            holders.setdefault(process["pid"] // PIDS_APART, set()).add(item["uuid"])
    assert sorted(holders) == list(range(len(paths)))
    assert sum(len(uuids) for uuids in holders.values()) == len(cards)
    clock = [i["t"] for i in items if i["kind"] not in ("ring", "stack")]
    assert all(b >= a - 1.1 for a, b in itertools.pairwise(clock))


def test_a_loop_is_a_restart_of_the_same_run(tmp_path: Path) -> None:
    ring = {"kind": "ring", "uuid": "GPU-1", "ring": "power", "dt": 0.5}
    items = [*some(1000.0, 3), {**ring, "t": 998.0, "values": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}]
    path = record(tmp_path / "a", items)
    # Without the ring's and the stacks' part of the loop before there are 8 items in a loop.
    played = list(itertools.islice(play([path], loop=True), 10 + 2 * 8))
    times = [i["t"] for i in of_kind("gpu", played)]
    period = 2.0 + GAP_S
    assert times == [1000.0 + period * i + s for i in range(3) for s in range(3)]
    starts = [i["processes"][0]["start"] for i in of_kind("processes", played)]
    assert starts == [900.0 + period * i for i in range(3) for _ in range(3)]
    assert {i["processes"][0]["run"] for i in of_kind("processes", played)} == {"job"}
    rings = of_kind("ring", played)
    assert rings[0]["values"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    # A ring reaches back; in a loop that would be the loop before.
    assert (rings[1]["t"], rings[1]["values"]) == (1000.0 + period, [5.0, 6.0])
    second = [i["t"] for i in of_kind("stack", played)][3:]
    assert min(second) >= 1000.0 + period


def test_true_speed_is_now(tmp_path: Path) -> None:
    path = record(tmp_path / "a", some(1000.25, 3))
    began = time.time()
    for item in play([path], 1.0):
        now = time.time()
        if item["kind"] == "gpu":
            assert item["t"] - 1.5 < now
            assert item["t"] % 1 == pytest.approx(0.25)
            last = item["t"]
    assert 1.9 < time.time() - began < 15.0
    assert 2.0 <= last - began <= 3.1


def test_faster_than_true_speed(tmp_path: Path) -> None:
    path = record(tmp_path / "a", some(1000.0, 11))
    began = time.monotonic()
    times = [i["t"] for i in of_kind("gpu", list(play([path], 50.0)))]
    assert 0.15 < time.monotonic() - began < 5.0
    assert times[-1] - times[0] == 10.0


def test_it_stops_when_told(tmp_path: Path) -> None:
    path = record(tmp_path / "a", some(1000.0, 1000))
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    list(play([path], 1.0, stop=stop))
    assert time.monotonic() - began < 10.0


def test_bad_files_are_refused_at_once_and_by_name(tmp_path: Path) -> None:
    good = record(tmp_path / "a", some(1000.0, 1))
    bad = tmp_path / "b"
    bad.write_text("hello")
    with pytest.raises(RecordingError, match=r"/b is no gpuwhy recording"):
        play([good, bad])
    with pytest.raises(RecordingError, match="none"):
        play([tmp_path / "none"])


def test_an_empty_recording_is_not_looped_for_ever(tmp_path: Path) -> None:
    path = record(tmp_path / "a", [])
    assert list(play([path])) == []
    with pytest.raises(RecordingError, match="holds no observations"):
        list(play([path], loop=True))
