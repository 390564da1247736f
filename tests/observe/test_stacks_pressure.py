"""The budget with real ranks, real py-spy and a host that is really short of CPU."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.observe.live_job import of_kind, watch

from gpuwhy.observe.hub import Hub
from gpuwhy.observe.stacks import StackSource, Target
from gpuwhy.observe.stacks_budget import STEADY

pytestmark = pytest.mark.live

PRESSURE = Path("/proc/pressure/cpu")
RANK = """
import ctypes, time
libc = ctypes.CDLL(None)
for _ in range({threads}):
    libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.pause, None)
def train():
    step = 0
    while True:
        step += 1
        sum(range(1000))
        time.sleep(0.02)
train()
"""
BURST_S, LAST_CAPTURES_S = 5.0, 0.1
SECONDS = 8.0


@contextmanager
def processes(code: str, count: int) -> Iterator[list[int]]:
    children = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        time.sleep(1.0)
        yield [child.pid for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()


def targets(pids: Sequence[int]) -> list[Target]:
    return [Target(pid, psutil.Process(pid).create_time(), "rank", pid) for pid in pids]


def spent(during: Callable[[], Any]) -> float:
    """CPU seconds as the kernel counts them: of this thread, and of the children that it reaped."""

    def so_far() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime + time.thread_time()

    before = so_far()
    during()
    return so_far() - before


@pytest.mark.parametrize(("ranks", "threads"), [(1, 0), (8, 0), (1, 160), (8, 20)])
def test_the_budget_is_kept(ranks: int, threads: int) -> None:
    """Starting to attach costs the most: it counts too."""
    source = StackSource()
    seen: list[Any] = []

    def look() -> None:
        seen.extend(watch(source, SECONDS))
        source.close()

    with processes(RANK.format(threads=threads), ranks) as pids:
        source.set_targets(targets(pids))
        used = spent(look)
        assert {o["pid"] for o in of_kind(seen, "stack")} == set(pids), "each is seen"
    share = STEADY.share(ranks)
    assert source.share == pytest.approx(share)
    allowed = share * SECONDS + max(0.1, share * BURST_S) + LAST_CAPTURES_S * ranks
    assert used <= allowed, (used, allowed)
    assert source.tally.cpu_s == pytest.approx(used, rel=0.3, abs=0.1)


@pytest.mark.skipif(not PRESSURE.exists(), reason="the kernel tells no pressure (CONFIG_PSI)")
def test_it_backs_off_while_the_host_is_short_of_cpu() -> None:
    """The whole way: busy processes, the kernel's pressure, the observer, what it reports."""
    cpus = len(os.sched_getaffinity(0))
    observer = subprocess.Popen(
        [sys.executable, "-m", "gpuwhy.observe", json.dumps({"sources": ["host", "stacks"]})],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        with processes("while True: pass", 3 * cpus):
            reports = read_reports(
                observer, lambda found: found[-1]["share"] < 0.5 * STEADY.share(0)
            )
    finally:
        observer.kill()
        observer.communicate()
    assert reports[-1]["share"] >= 0.24 * STEADY.share(0), "never less than a quarter"
    assert all({"cpu_s", "share"} <= report.keys() for report in reports)


def read_reports(
    observer: subprocess.Popen[bytes], enough: Callable[[list[dict[str, Any]]], bool]
) -> list[dict[str, Any]]:
    """What the sampler says of itself, until that is enough or 60 s have passed."""
    assert observer.stdout
    found: list[dict[str, Any]] = []
    until = time.monotonic() + 60
    for line in observer.stdout:
        said = json.loads(line)
        if said["kind"] == "source" and said["source"] == "stacks" and "share" in said:
            found.append(said)
            if enough(found):
                return found
        assert time.monotonic() < until, found
    raise AssertionError("the observer has ended")


def test_its_pace_follows_the_pressure_down_and_up_again() -> None:
    """Of a host that waits for CPU all the time, then not at all."""
    hub, now = Hub(), 1000.0
    source = StackSource(pressure=hub.pressure)
    waited = 0.0
    shares = {}
    with processes(RANK.format(threads=0), 1) as pids:
        source.set_targets(targets(pids))
        for pressed in (0.0, 1.0, 0.5, 0.0):
            for _ in range(2):
                now, waited = now + 1.0, waited + pressed
                hub.see({"t": now, "kind": "host", "psi": {"cpu_some": waited}})
            watch(source, 1.3)
            shares[pressed] = source.share
    source.close()
    whole = STEADY.share(1)
    assert shares == pytest.approx({0.0: whole, 1.0: whole / 4, 0.5: whole / 2})
