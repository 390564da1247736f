"""The memory stays bounded over any number of jobs."""

from __future__ import annotations

from gpuwhy.pipeline import Pipeline


def test_ten_thousand_job_lives_leave_nothing_behind() -> None:
    pipeline = Pipeline(keep_s=60)
    for job in range(10_000):
        t = 1_000_000.0 + 2 * job
        pid = 100 + job
        rank = {"pid": pid, "ppid": 1, "role": "rank", "run": f"r{job}", "rank": 0, "start": t}
        rank |= {"cgroup": f"/job/{job}", "state": "S"}
        frames = [["train", f"/job/{job % 50}.py", 1]]
        stack = {"kind": "stack", "t": t, "dt": 0.1, "pid": pid, "main": True, "frames": frames}
        pipeline.feed(
            [
                {"kind": "processes", "t": t, "processes": [rank]},
                stack,
                {"kind": "locals", "t": t, "pid": pid, "values": [["f", "/j", "step", 1]]},
                {"kind": "cgroup", "t": t, "path": f"/job/{job}", "unlimited": True},
                {"kind": "source", "t": t, "source": "stacks", "pid": pid, "up": False},
            ]
        )
    memory = pipeline.timeline.memory
    for store in (memory.stacks, memory.locals, memory.cgroups, memory.refusals, memory.started):
        assert len(store) < 100
    assert len(pipeline.book.held) < 100
    assert len(pipeline.book.recent) <= 60
