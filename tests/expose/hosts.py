"""Hosts of any size to look at: the seconds of recordings, laid side by side and end to end, and
a server that shows them."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import cast

import uvicorn
from tests.expose.samples import RECORDINGS, Clock

from gpuwhy.expose.actions import Actions
from gpuwhy.expose.app import make
from gpuwhy.expose.auth import Web
from gpuwhy.expose.notifications import Notifications
from gpuwhy.expose.state import State
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline
from gpuwhy.signals.row import GpuRow, RunSignals, Second

MIX = ("healthy", "data_slow", "item_sync", "tiny_kernels", "copy_bound", "hf_edge", "cpu_quota")
END = 1_800_000_900
"""The second after the last one."""


@cache
def seconds_of(name: str) -> tuple[Second, ...]:
    """What was understood of a recording, without its first and last seconds."""
    pipeline = Pipeline()
    found = pipeline.feed(read(RECORDINGS / f"{name}.gpuwhy.gz")[1]) + pipeline.finish()
    return tuple(found[3:-2])


def host(names: Sequence[str], seconds: int = 900, *, run: str | None = None) -> State:
    """A state that has watched so long: one GPU for each name, all of one run where it is named."""
    state = State(gpu_hour_price=2.5, clock=Clock(END - seconds))
    watch(state, names, seconds, run=run)
    return state


def watch(
    state: State,
    names: Sequence[str],
    seconds: int,
    *,
    run: str | None = None,
    pid: int = 1000,
    change: Callable[[RunSignals], RunSignals] = lambda one: one,
) -> None:
    """Go on watching: GPU i does what the recording of its name did; ``change`` alters its runs."""
    clock = cast(Clock, state.clock)
    start = int(clock.now)
    with state._lock:
        for t in range(start, start + seconds):
            rows = []
            for i, name in enumerate(names):
                found = seconds_of(name)[t % len(seconds_of(name))].rows[0]
                ranks = [_rank(one, i, run, pid + 10 * i + n) for n, one in enumerate(found.runs)]
                rows.append(_row(found, i, tuple(map(change, ranks))))
            second = Second(t, tuple(rows), {})
            state.pipeline.book.enter(second)
            state._note(second)
        clock.now = start + seconds + 0.0
        state._facts.add([*_sources(clock.now), _processes(second)])
        state._snapshot = state._publish()


def _rank(one: RunSignals, index: int, run: str | None, pid: int) -> RunSignals:
    if run is None:
        return replace(one, run=f"job-{index}", pid=pid)
    return replace(one, run=run, rank=index, pid=pid)


def _row(row: GpuRow, index: int, runs: tuple[RunSignals, ...]) -> GpuRow:
    assert row.gpu is not None
    return replace(row, gpu=replace(row.gpu, uuid=f"GPU-{index:04d}", gpu=index), runs=runs)


def _sources(now: float) -> list[Observation]:
    down = {"up": False, "why": "no answer on port 28028", "remedy": "only jobs with NCCL answer"}
    return [
        {"t": now, "kind": "source", "source": "nvml", "up": True},
        {"t": now, "kind": "source", "source": "nccl_ras", **down},
    ]


def _processes(second: Second) -> Observation:
    ranks = [
        {"pid": run.pid, "role": "rank", "run": run.run, "rank": run.rank, "script": "train.py"}
        for row in second.rows
        for run in row.runs
    ]
    return {"t": second.t + 1.0, "kind": "processes", "processes": ranks}


@contextlib.contextmanager
def served(
    state: State, actions: Actions | None = None, received: Notifications | None = None
) -> Iterator[str]:
    """The address of a server that shows a state."""
    app = make(state, Web(None), received or Notifications(), actions=actions)
    config = uvicorn.Config(app, log_level="warning", lifespan="off", access_log=False)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(10)
