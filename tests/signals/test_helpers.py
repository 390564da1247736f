"""A main thread that waits while a thread of its own process loads waits for its input."""

from __future__ import annotations

from gpuwhy.signals.host import host_phases
from gpuwhy.signals.phases import WAIT
from gpuwhy.signals.tracks import Samples

STDLIB = "/usr/lib/python3.12/"
QUEUE = [["wait", STDLIB + "threading.py", 359], ["get", STDLIB + "queue.py", 180]]
TRAIN = ["train", "/job/train.py", 60]


def phases_with(helper: list[object]) -> dict[str, float]:
    stacks = Samples()
    for i in range(40):
        at = {"t": 998 + i / 10, "dt": 0.1, "kind": "stack", "pid": 7}
        stacks.add({**at, "main": True, "frames": [*QUEUE, TRAIN]})
        stacks.add({**at, "main": False, "frames": [helper]})
    found = host_phases(stacks, 1000)
    assert found is not None
    return {**found.shares, WAIT: found.calls[WAIT]}


def test_a_thread_that_loads_is_what_is_waited_for() -> None:
    found = phases_with(["read_image", "/job/data.py", 5])
    assert found["data_wait"] == 1
    assert found[WAIT] == 0


def test_a_thread_that_does_something_else_is_not() -> None:
    found = phases_with(["serve", "/job/data.py", 5])
    assert "data_wait" not in found
    assert round(found[WAIT], 6) == 1
