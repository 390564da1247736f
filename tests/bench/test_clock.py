"""The clock's device side, with a device of paper: events that pass when the test says so."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")


class PaperEvent:
    """Each recorded event stands 10 ms after the one before it."""

    count = 0
    passed = 0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        PaperEvent.count += 1
        self.place = PaperEvent.count

    def query(self) -> bool:
        return self.place <= PaperEvent.passed

    def elapsed_time(self, other: PaperEvent) -> float:
        assert other.query() or other.place == 1, "read before the device had passed it"
        return 10.0 * (other.place - self.place)


@pytest.fixture
def clock(
    jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Any, Path]]:
    import torch  # not while tests are collected

    monkeypatch.syspath_prepend(str(jobs))
    monkeypatch.setenv("TRUTH_FILE", str(tmp_path / "t"))
    monkeypatch.setattr(torch.cuda, "Event", PaperEvent)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(PaperEvent, "count", 0)
    monkeypatch.setattr(PaperEvent, "passed", 0)
    import clock as module

    monkeypatch.setattr(module.Clock, "listen", lambda self: None)
    options = SimpleNamespace(
        variant="c01", entry={"job": "x"}, fault="none", rank=0, world_size=1, scale="tiny"
    )
    options.get = {}.get
    yield module.Clock(options, SimpleNamespace(type="cuda")), tmp_path / "t"
    for name in ("clock", "options", "pace", "loader_state", "device_events", "device_tail"):
        sys.modules.pop(name, None)


def lines(path: Path, kind: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in rows if row["kind"] == kind]


def one_step(clock: Any, step: int) -> bool:
    clock.lap("data_wait")
    clock.lap("forward")
    return clock.step(step)


def test_device_laps_are_read_only_once_they_are_past(clock: tuple[Any, Path]) -> None:
    clock, path = clock
    clock.header(None)
    clock.start()
    for step in range(3):
        assert not one_step(clock, step)
    clock.flush()
    assert lines(path, "gpu") == []
    PaperEvent.passed = 5
    one_step(clock, 3)
    clock.flush()
    found = lines(path, "gpu")
    assert [row["step"] for row in found] == [0, 1]
    assert found[0]["laps"] == [["data_wait", 0.01], ["forward", 0.01]]
    assert found[1]["t"] - found[0]["t"] == pytest.approx(0.02)


def test_a_job_told_to_stop_profiles_some_steps_and_ends(
    clock: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch  # not while tests are collected

    clock, path = clock
    real, kinds = torch.profiler.profile, torch.profiler.ProfilerActivity
    monkeypatch.setattr(
        torch.profiler, "profile", lambda activities: real(activities=[kinds.CPU, *activities])
    )
    clock.header(None)
    clock.start()
    PaperEvent.passed = 10**6
    one_step(clock, 0)
    clock._on_term()
    taken = 1
    while not one_step(clock, taken):
        taken += 1
        assert taken < 50
    found = lines(path, "kernels")
    assert found[0]["steps"] == 8
    assert lines(path, "end")


def test_a_profiler_that_fails_ends_the_job_and_is_told_of(
    clock: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch  # not while tests are collected

    clock, path = clock
    monkeypatch.setattr(torch.profiler, "profile", lambda activities: 1 / 0)
    clock.header(None)
    clock.start()
    PaperEvent.passed = 10**6
    clock._on_term()
    assert one_step(clock, 0)
    assert "ZeroDivisionError" in lines(path, "note")[0]["error"]
    assert lines(path, "end")


def test_ranks_leave_at_the_same_step(clock: tuple[Any, Path]) -> None:
    clock, path = clock
    clock.options.world_size = 2
    clock.events = None
    clock.header(None)
    clock.start()
    assert not one_step(clock, 0)
    clock._on_term()
    assert not one_step(clock, 1)
    agreed = int(Path(f"{path}.stop").read_text().split()[0])
    assert agreed > 1
    for step in range(2, agreed):
        assert not one_step(clock, step)
    clock.told = False  # the other rank may not even have been told
    assert one_step(clock, agreed)


def test_a_forked_worker_is_not_told(clock: tuple[Any, Path]) -> None:
    clock, _ = clock
    clock.pid = os.getpid() + 1
    clock._on_term()
    assert not clock.told
