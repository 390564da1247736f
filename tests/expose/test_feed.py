"""The feeding thread: one bad batch, a source that breaks off, the end of a recording."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest
from tests.expose.samples import Clock

from gpuwhy.expose import feed as feed_module
from gpuwhy.expose.feed import Feed
from gpuwhy.expose.state import State
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import RecordingError

Batches = Iterator[list[list[Observation]]]


def host(t: float) -> Observation:
    return {"t": t, "kind": "host", "cpus": 2}


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> State:
    monkeypatch.setattr(feed_module, "RETRY_S", 0.01)
    return State(clock=Clock(110.0))


def run(feed: Feed) -> None:
    feed.start()
    feed.join(30)
    assert not feed.is_alive()


def test_a_batch_that_is_not_understood_is_left_out_and_counted(state: State) -> None:
    @contextlib.contextmanager
    def begin() -> Batches:
        yield [[host(100.0)], [{"t": 101.0, "kind": "gpu"}], [host(106.0)]]

    run(Feed(state, begin, threading.Event(), ends=True))
    assert state.view().about.failures == {"feed": 1}
    assert state.view().last_t == 105, "the rest went on, and the end was completed"


def test_observing_that_breaks_off_is_begun_again(state: State) -> None:
    stop, begun = threading.Event(), []

    @contextlib.contextmanager
    def begin() -> Batches:
        begun.append(1)
        if len(begun) == 1:
            raise OSError("no process can be started")
        if len(begun) == 3:
            stop.set()
        yield [[host(100.0 + len(begun))]]

    run(Feed(state, begin, stop, ends=False))
    assert len(begun) == 3


def test_a_recording_that_cannot_be_played_ends_everything(state: State) -> None:
    stop = threading.Event()

    @contextlib.contextmanager
    def begin() -> Batches:
        raise RecordingError("x, line 7 is damaged")
        yield []

    feed = Feed(state, begin, stop, ends=True)
    run(feed)
    assert stop.is_set()
    assert feed.failed == "x, line 7 is damaged"
