"""Causes from phases alone, where no GPU is in sight."""

from __future__ import annotations

import pytest

from gpuwhy.pipeline import Pipeline

SITE = "/venv/lib/python3.12/site-packages/torch/"
RANK = {"pid": 7, "ppid": 1, "role": "rank", "run": "r", "rank": 0, "start": 0.0, "state": "S"}
TRAIN = ["train", "/job/train.py", 60]
BACKWARD = [["_engine_run_backward", SITE + "autograd/graph.py", 869], TRAIN]
METRICS = [["compute_metrics", "/job/train.py", 20], TRAIN]
LIB = "/usr/lib/python3.12/"
QUEUE = [["wait", LIB + "threading.py", 359], ["get", LIB + "queue.py", 180], TRAIN]
JOIN = [["join", LIB + "threading.py", 1151], ["main", "/job/train.py", 90]]
SELECT = [["select", LIB + "selectors.py", 468], ["run", LIB + "asyncio/base_events.py", 1], TRAIN]
SLEEP = [["main", "/job/train.py", 9, "sleep"]]
LOADER = [["__next__", SITE + "utils/data/dataloader.py", 741], TRAIN]


def test_there_is_no_talk_of_gpu_time() -> None:
    pipeline = Pipeline()
    for t in range(1000, 1030):
        stack = {"kind": "stack", "t": float(t), "dt": 1.0, "pid": 7, "main": True}
        table = {"kind": "processes", "t": float(t), "processes": [RANK]}
        pipeline.feed([table, {**stack, "frames": LOADER}])
    pipeline.finish()
    (run,) = pipeline.verdicts()["runs"]
    assert run["summary"].startswith("100% of the host's time lost to data")


def cause(*stacks: tuple[float, list[list[object]]]) -> dict[str, object]:
    pipeline = Pipeline()
    for t in range(1000, 1030):
        observations = [{"kind": "processes", "t": float(t), "processes": [RANK]}]
        at = float(t)
        for dt, frames in stacks:
            observations.append(
                {"kind": "stack", "t": at, "dt": dt, "pid": 7, "main": True, "frames": frames}
            )
            at += dt
        pipeline.feed(observations)
    pipeline.finish()
    (gpu,) = pipeline.verdicts()["gpus"]
    assert gpu["accounts"] == {}
    assert gpu["gpu"] is None
    return dict(gpu)


@pytest.mark.parametrize(
    ("stacks", "wanted"),
    [
        ([(0.4, BACKWARD), (0.6, LOADER)], "data"),
        ([(0.95, BACKWARD), (0.05, LOADER)], "none"),
        ([(0.5, BACKWARD), (0.5, METRICS)], "host"),
        ([(1.0, METRICS)], "none"),  # its own code may be the work
        ([(0.5, BACKWARD), (0.5, [TRAIN])], "none"),  # a line of the loop may be a C call
        ([(0.2, BACKWARD), (0.8, QUEUE)], "unknown"),  # of whom it waits, nobody saw
        ([(0.2, BACKWARD), (0.8, SELECT)], "unknown"),
        ([(1.0, JOIN)], "unknown"),
        ([(1.0, SLEEP)], "unknown"),
        ([(0.2, BACKWARD), (0.8, [*SLEEP, ["validate", "/job/train.py", 70]])], "none"),
    ],
)
def test_cause(stacks: list[tuple[float, list[list[object]]]], wanted: str) -> None:
    assert cause(*stacks)["cause"] == wanted


def test_a_wait_that_may_have_been_hidden_beside_a_cause_is_told_as_unknown() -> None:
    """The rank holds a GPU, its workers have batches ready: whether the wait cost anything, only
    the GPU would tell."""
    rank = {**RANK, "gpus": ["GPU-a"]}
    worker = {"pid": 8, "ppid": 7, "role": "worker", "run": "r", "rank_pid": 7, "state": "S"}
    frames = {"kind": "stack", "main": True}
    idle = [["get", LIB + "multiprocessing/queues.py", 1], ["_worker_loop", SITE + "worker.py", 2]]
    for waits, wanted in ((0.3, "unknown"), (0.05, "host")):
        pipeline = Pipeline()
        for t in range(1000, 1030):
            pipeline.feed([{"kind": "processes", "t": float(t), "processes": [rank, worker]}])
            at = float(t)
            for dt, stack in ((waits, LOADER), (0.4, METRICS), (0.6 - waits, BACKWARD)):
                pipeline.feed([{**frames, "t": at, "dt": dt, "pid": 7, "frames": stack}])
                at += dt
            pipeline.feed([{**frames, "t": float(t), "dt": 1.0, "pid": 8, "frames": idle}])
        pipeline.finish()
        (gpu,) = pipeline.verdicts()["gpus"]
        assert gpu["cause"] == wanted
        assert [c["cause"] for c in gpu["causes"]] == ["host"]


def test_a_full_host_is_told_from_a_narrow_affinity() -> None:
    """The job may use every CPU there is: a wider affinity would mend nothing."""
    for mine, reason, advice in ((2, "host-cpu", "Other processes"), (1, "affinity", "affinity")):
        pipeline = Pipeline()
        for t in range(1000, 1030):
            rank = {**RANK, "affinity": mine, "run_delay": 0.9, "cpu": 0.99 * mine / 2}
            table = {"kind": "processes", "t": float(t), "processes": [rank]}
            host = {"kind": "host", "t": float(t), "cpus": 2}
            stack = {"kind": "stack", "t": float(t), "dt": 1.0, "pid": 7, "main": True}
            pipeline.feed([table, host, {**stack, "frames": LOADER}])
        pipeline.finish()
        (gpu,) = pipeline.verdicts()["gpus"]
        (found,) = gpu["causes"]
        assert (found["cause"], found["reason"]) == ("quota", reason)
        assert advice in found["next_action"]


@pytest.mark.parametrize(("delay", "wanted"), [(0.08, "data"), (0.5, "quota")])
def test_a_wait_for_a_cpu_explains_as_much_as_it_lasted(delay: float, wanted: str) -> None:
    pipeline = Pipeline()
    for t in range(1000, 1030):
        table = {"kind": "processes", "t": float(t), "processes": [{**RANK, "run_delay": delay}]}
        host = {"kind": "host", "t": float(t), "cpus": 2}
        stack = {"kind": "stack", "t": float(t), "dt": 0.4, "pid": 7, "main": True}
        late = {**stack, "t": t + 0.4, "dt": 0.6, "frames": LOADER}
        pipeline.feed([table, host, {**stack, "frames": BACKWARD}, late])
    pipeline.finish()
    (gpu,) = pipeline.verdicts()["gpus"]
    assert gpu["cause"] == wanted
