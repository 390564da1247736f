"""What sources tell each other, and which ranks are changing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.observe.proc_tree import ProcTree

from gpuwhy.observe.changes import REST_S, Changes
from gpuwhy.observe.hub import Hub
from gpuwhy.observe.processes import ProcessSource
from gpuwhy.observe.stacks import StackSource, Target

RANK = {"pid": 10, "start": 5.0, "role": "rank", "rank_pid": 10}
WORKER = {"pid": 11, "start": 6.0, "role": "worker", "rank_pid": 10}
CHILD = {"pid": 12, "start": 6.0, "role": "child", "rank_pid": 10}
TENANT = {"pid": 20, "start": 6.0, "role": "tenant"}


class Stacks(StackSource):
    """Notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Any] = []

    def set_targets(self, targets: Sequence[Target]) -> None:
        self.told.append(list(targets))

    def set_changing(self, pids: set[int]) -> None:
        self.told.append(pids)


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    hub = Hub()
    hub.processes = ProcessSource(proc=str(ProcTree(tmp_path / "proc").root))
    hub.stacks = Stacks()
    return hub


def jobs(t: float, *processes: dict[str, Any]) -> dict[str, Any]:
    return {"t": t, "kind": "processes", "processes": list(processes)}


def test_gpu_processes_reach_the_job_table_without_graphics(hub: Hub) -> None:
    processes = [{"pid": 10, "type": "compute"}, {"pid": 9, "type": "graphics"}, {"pid": 8}]
    hub.see({"t": 1.0, "kind": "gpu_processes", "uuid": "GPU-1", "processes": processes})
    assert hub.processes is not None
    assert hub.processes.jobs.holders == {10, 8}


def test_ranks_and_workers_become_targets_of_stacks(hub: Hub) -> None:
    holder = {**CHILD, "gpus": ["GPU-1"], "python": "3.12"}
    hub.see(jobs(1.0, RANK, WORKER, CHILD, TENANT))
    hub.see(jobs(2.0, RANK, WORKER, CHILD, TENANT))  # nothing new
    hub.see(jobs(3.0, RANK, holder))
    assert isinstance(hub.stacks, Stacks)
    assert [told for told in hub.stacks.told if isinstance(told, list)] == [
        [Target(10, 5.0, "rank", 10), Target(11, 6.0, "worker", 10)],
        [Target(10, 5.0, "rank", 10), Target(12, 6.0, "worker", 10)],
    ]


def test_a_stack_tells_a_worker(hub: Hub) -> None:
    hub.see(jobs(1.0, RANK, CHILD))
    frames = [["Items.__getitem__", "train.py", 3], ["worker._worker_loop", "worker.py", 1]]
    seen: list[int] = []
    assert hub.processes is not None
    hub.processes.jobs.worker_seen = seen.append  # type: ignore[method-assign]
    for pid in (10, 12, 99):
        hub.see({"t": 2.0, "kind": "stack", "pid": pid, "main": True, "frames": frames})
    hub.see({"t": 2.0, "kind": "stack", "pid": 12, "main": True, "frames": frames[:1]})
    assert seen == [10, 12]


def test_pressure_is_the_share_of_time_in_which_a_task_waited(hub: Hub) -> None:
    assert hub.pressure() is None
    for t, waited in ((1.0, 50.0), (2.0, 50.25)):
        hub.see({"t": t, "kind": "host", "psi": {"cpu_some": waited}})
    assert hub.pressure() == pytest.approx(0.25)
    hub.see({"t": 3.0, "kind": "host"})
    assert hub.pressure() == pytest.approx(0.25)


def test_it_works_with_no_other_source() -> None:
    hub = Hub()
    hub.see(jobs(1.0, RANK))
    hub.see({"t": 1.0, "kind": "gpu_processes", "uuid": "GPU-1", "processes": []})
    assert ("127.0.0.1", 28028) in hub.ras_addresses()


# Changes


def changes_of(observations: Sequence[dict[str, Any]]) -> list[tuple[float, set[int]]]:
    changes = Changes()
    news = [(o["t"], changes.see(o)) for o in observations]
    return [(t, pids) for t, pids in news if pids]


def activity(values: Sequence[float], start: float = 0.0) -> list[dict[str, Any]]:
    return [
        {"t": start + i / 2, "kind": "gpm", "uuid": "GPU-1", "graphics": value}
        for i, value in enumerate(values)
    ]


HELD = {"t": 0.0, "kind": "gpu_processes", "uuid": "GPU-1", "processes": [{"pid": 10}]}
KNOWN = [jobs(-100.0, RANK), HELD]


def test_a_new_rank_and_new_workers_are_news() -> None:
    later = 1.0 + REST_S
    seen = [jobs(0.0, RANK), jobs(1.0, RANK), jobs(later, RANK, WORKER), jobs(later + 1, RANK)]
    assert changes_of(seen) == [(0.0, {10}), (later, {10})]


def test_a_step_of_activity_is_news_once() -> None:
    news = changes_of([*KNOWN, *activity([0.9] * 60 + [0.3] * 60)])
    assert [pids for t, pids in news if t >= 0] == [{10}]
    assert all(30.0 <= t <= 36.0 for t, _ in news if t >= 0)


@pytest.mark.parametrize("values", [[0.9] * 100, [0.9, 0.1] * 50, [0.9, 0.85, 0.95] * 30])
def test_steady_and_swinging_activity_is_none(values: list[float]) -> None:
    assert [t for t, _ in changes_of([*KNOWN, *activity(values)]) if t >= 0] == []


def steps(t: float, step: int) -> dict[str, Any]:
    values = [["train", "train.py", "step", step], ["main", "train.py", "epoch", 1]]
    return {"t": t, "kind": "locals", "pid": 10, "values": values}


def test_a_change_of_the_step_rate_is_news() -> None:
    steady = [steps(10.0 * i, 100 * i) for i in range(5)]
    assert [t for t, _ in changes_of([*KNOWN, *steady]) if t >= 0] == []
    slower = [steps(40.0 + 10.0 * i, 400 + 50 * i) for i in range(1, 3)]
    assert [t for t, _ in changes_of([*KNOWN, *steady, *slower]) if t >= 0] == [50.0]
    next_epoch = [steps(50.0, 3), steps(60.0, 103)]
    assert [t for t, _ in changes_of([*KNOWN, *steady, *next_epoch]) if t >= 0] == []
