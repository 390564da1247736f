"""One source in its thread: figures, failures, hangs and recovery; and the outbox behind it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.outbox import Outbox
from gpuwhy.observe.runner import Runner

Said = list[Observation]


class Fake:
    """A source that does what the test tells it to."""

    name = "fake"
    period_s = 0.01
    deadline_s = 0.1

    def __init__(self, poll: Callable[[float], Said] = lambda now: []) -> None:
        self._poll = poll
        self.polls = 0
        self.closed = False

    def poll(self, now: float) -> Said:
        self.polls += 1
        return self._poll(now)

    def close(self) -> None:
        self.closed = True


class Heard:
    def __init__(self) -> None:
        self.said: Said = []

    def __call__(self, name: str, observations: Sequence[Observation]) -> None:
        assert name == "fake"
        self.said += observations

    def wait(self, what: Callable[[Observation], bool], seconds: float = 10.0) -> Observation:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for observation in list(self.said):
                if what(observation):
                    return observation
            time.sleep(0.01)
        raise AssertionError(f"not heard among {self.said}")


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def run(heard: Heard) -> Iterator[Callable[..., Runner]]:
    runners: list[Runner] = []

    def start(source: Fake, **more: Any) -> Runner:
        runner = Runner(source, heard, **more)
        runners.append(runner)
        runner.start()
        return runner

    yield start
    for runner in runners:
        runner.stop(1.0)


def is_source(**wanted: Any) -> Callable[[Observation], bool]:
    return lambda o: o["kind"] == "source" and all(o.get(k) == v for k, v in wanted.items())


def test_observations_pass_and_the_state_gets_its_figures(
    heard: Heard, run: Callable[..., Runner]
) -> None:
    def poll(now: float) -> Said:
        return [
            {"t": now, "kind": "host"},
            {"t": now, "kind": "source", "source": "fake", "up": True},
            {"t": now, "kind": "source", "source": "fake", "up": False, "pid": 7},
        ]

    source = Fake(poll)
    runner = run(source, dropped=lambda name: 3)
    heard.wait(lambda o: o["kind"] == "host")
    state = heard.wait(is_source(up=True))
    assert state["period_s"] == 0.01
    assert state["reads"] >= 1
    assert state["failures"] == 0
    assert state["cpu_s"] >= 0
    assert state["dropped"] == 3
    assert heard.wait(is_source(pid=7)).keys() == {"t", "kind", "source", "up", "pid"}
    assert runner.stop(1.0) is True
    assert source.closed


def test_a_source_that_is_silent_is_spoken_for(heard: Heard, run: Callable[..., Runner]) -> None:
    run(Fake())
    assert heard.wait(is_source(source="fake"))["up"] is True


def test_a_failing_source_is_reported_and_tried_less_and_less(
    heard: Heard, run: Callable[..., Runner]
) -> None:
    def poll(now: float) -> Said:
        raise RuntimeError("boom")

    source = Fake(poll)
    run(source)
    state = heard.wait(is_source(up=False))
    assert "RuntimeError: boom" in state["why"]
    assert state["remedy"]
    time.sleep(1.0)
    assert 3 <= source.polls <= 9  # 10 ms, doubled each time


def test_a_hang_is_reported_for_all_it_speaks_for_and_recovery_too(
    heard: Heard, run: Callable[..., Runner]
) -> None:
    hang, release = threading.Event(), threading.Event()

    def poll(now: float) -> Said:
        if hang.is_set():
            release.wait(30.0)
            hang.clear()
            return []
        return [
            {"t": now, "kind": "source", "source": name, "up": True} for name in ("fake", "other")
        ]

    runner = run(Fake(poll))
    heard.wait(is_source(source="other"))
    assert runner.watch(time.time()) == []
    hang.set()
    deadline = time.monotonic() + 10.0
    while not (reports := runner.watch(time.time())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert {(r["source"], r["up"]) for r in reports} == {("fake", False), ("other", False)}
    assert all("fake did not answer for" in r["why"] and r["hung_s"] >= 0.1 for r in reports)
    assert runner.hung_s() > 0
    assert runner.watch(time.time()) == []  # said once, and not again so soon
    assert runner.stop(0.1) is False
    heard.said.clear()
    release.set()
    heard.wait(is_source(source="other", up=True))
    assert "hung_s" not in heard.wait(is_source(source="fake", up=True))


def test_the_outbox_never_blocks_and_counts_what_it_drops() -> None:
    box = Outbox(most=5)
    box.put("a", [{"n": i} for i in range(4)])
    box.put("b", [{"n": i} for i in range(4, 10)])
    assert [o["n"] for o in box.take()] == [0, 1, 2, 3, 4]
    assert box.dropped == {"b": 5}
    assert box.take(0.01) == []
    box.put("a", [{"n": 11}])
    box.close()
    assert not box.closed
    assert [o["n"] for o in box.take()] == [11]
    assert box.take() == []
    assert box.closed
