"""Faults of py-spy, against a running exporter: survived, told, the rest goes on, and healed."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest
from tests.faults.rig import Rig

HANGS = "trap '' INT TERM\nwhile :; do sleep 0.2; done"
KILLED = "kill -9 $$"
HALF_A_LINE = """printf '[{"pid": 1, "thread_id": 1, "thr'"""
NOTHING = "exit 0"
GARBAGE = "head -c 100000 /dev/urandom"
LOUD = (
    "head -c 3000000 /dev/zero | tr '\\\\0' x; head -c 3000000 /dev/zero | tr '\\\\0' y >&2; exit 3"
)


@pytest.fixture(scope="module")
def job(shared: Rig) -> Iterator[int]:
    pid = shared.start("work").pid
    shared.script(f"process 0 {pid} 1073741824 compute")
    yield pid


@pytest.fixture
def host(shared: Rig, job: int) -> Iterator[Rig]:
    shared.wait(lambda: shared.up("stacks") and sampled(shared, job), "stacks of the job")
    yield shared
    shared.put_sampler("")
    shared.wait(lambda: shared.up("stacks"), "stacks again")


def sampled(rig: Rig, pid: int) -> bool:
    return (rig.value("gpuwhy_source_reads_total", source="stacks") or 0) > 0


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (None, "py-spy cannot be started"),
        (KILLED, "py-spy failed on process"),
        (HANGS, "it did not answer in time"),
        (HALF_A_LINE, "its output could not be read"),
        (NOTHING, "its output could not be read"),
        (GARBAGE, "its output could not be read"),
        (LOUD, "py-spy failed on process"),
    ],
    ids=["missing", "killed", "hangs", "half-a-line", "nothing", "garbage", "loud"],
)
def test_py_spy_fails(host: Rig, job: int, script: str | None, told: str) -> None:
    failures = host.value("gpuwhy_source_failures_total", source="stacks") or 0
    host.put_sampler(script)
    host.wait(lambda: not host.up("stacks"), "stacks are down")
    host.wait(lambda: host.says(told, "Remedy"), "the sentence")  # of this fault, not the last one
    host.wait(
        lambda: (host.value("gpuwhy_source_failures_total", source="stacks") or 0) > failures,
        "failures are counted",
    )
    host.goes_on()
    assert host.up("nvml")
    assert host.processes()[job]["role"] == "rank"
    samplers = [p for p in host.observer().children() if p.status() != psutil.STATUS_ZOMBIE]
    assert len(samplers) < 5, "those that hang are killed, not collected"


def test_without_py_spy_from_the_start(rig: object) -> None:
    host: Rig = rig()  # type: ignore[operator]
    host.put_sampler(None)
    pid = host.start("work").pid
    host.script(f"process 0 {pid} 1073741824 compute")
    host.wait(lambda: pid in host.processes(), "the job")
    if host.up("stacks"):  # it was looked for before it was taken away
        host.wait(lambda: not host.up("stacks"), "stacks are down")
    host.wait(lambda: host.says("py-spy", "Remedy"), "the sentence")
    host.goes_on()


def test_a_thousand_threads(host: Rig, job: int) -> None:
    crowd = host.start("threads", "1000")
    other = crowd.pid
    host.script(f"process 0 {job} 1048576 compute\nprocess 1 {other} 1048576 compute")
    host.wait(lambda: host.processes().get(other, {}).get("role") == "rank", "the rank")
    told = f"one look at the stacks of process {other} takes"
    host.wait(
        lambda: host.says(told) or "stacks" not in unseen(host, other),
        "it is read, or costs too much and is told",
    )
    host.goes_on()
    host.wait(lambda: "stacks" not in unseen(host, job), "the other job is seen as before")
    host.script(f"process 0 {job} 1048576 compute")
    crowd.kill()


def unseen(rig: Rig, pid: int) -> set[str]:
    """What the last verdict of a rank had to do without; ``stacks`` where there is none yet."""
    signals = [{c["signal"] for c in e["cannot_see"]} for e in rig.entries() if e.get("pid") == pid]
    return signals[0] if signals else {"stacks"}


def test_hostile_names_are_shown_as_text_and_end_nothing(host: Rig, job: int) -> None:
    other = host.start("hostile").pid
    host.script(f"process 0 {job} 1048576 compute\nprocess 1 {other} 1048576 compute")
    host.wait(lambda: host.processes().get(other, {}).get("role") == "rank", "the rank")
    reads = host.value("gpuwhy_source_reads_total", source="stacks") or 0
    host.wait(
        lambda: (host.value("gpuwhy_source_reads_total", source="stacks") or 0) > reads + 3,
        "stacks are read",
    )
    torn = host.value("gpuwhy_source_torn_stacks_total", source="stacks")
    assert torn, "stacks of names that no interpreter prints are dropped, and counted"
    host.goes_on()
    for (_, labels), _ in host.series().items():
        assert all(len(value) <= 300 and value.isprintable() for _, value in labels), labels
    page = host.get("/")
    assert "<script>alert" not in page
    assert "\x1b" not in page
    host.script(f"process 0 {job} 1048576 compute")
