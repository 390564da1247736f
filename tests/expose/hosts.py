"""Hosts of any size to look at: the seconds of recordings, laid side by side and end to end, and
a server that shows them."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

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
from gpuwhy.signals.row import GpuRow, Second

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
    clock = Clock(END + 2.0)
    state = State(recorded=False, gpu_hour_price=2.5, clock=clock)
    rows = [[second.rows for second in seconds_of(name)] for name in names]
    with state._lock:
        for t in range(END - seconds, END):
            parts = [_row(of[t % len(of)], i, run) for i, of in enumerate(rows)]
            second = Second(t, tuple(parts), seconds_of(names[0])[0].sources)
            state.pipeline.book.enter(second)
            state._note(second)
        facts = [_fact(i) for i in range(len(names))]
        state._facts.add([*facts, *_sources(), _processes(state)])
        state._snapshot = state._publish()
    return state


def _row(rows: tuple[GpuRow, ...], index: int, run: str | None) -> GpuRow:
    row = rows[0]
    assert row.gpu is not None
    runs = tuple(
        replace(
            one,
            run=run or f"{one.run}-{index}",
            rank=index if run else one.rank,
            pid=1000 + 10 * index + n,
        )
        for n, one in enumerate(row.runs)
    )
    return replace(row, gpu=replace(row.gpu, uuid=f"GPU-{index:04d}", gpu=index), runs=runs)


def _fact(index: int) -> Observation:
    uuid = f"GPU-{index:04d}"
    return {"t": END, "kind": "gpu_info", "uuid": uuid, "gpu": index, "name": "NVIDIA H200"}


def _sources() -> list[Observation]:
    down = {"up": False, "why": "no answer on port 28028", "remedy": "only jobs with NCCL answer"}
    return [
        {"t": END, "kind": "source", "source": "nvml", "up": True},
        {"t": END, "kind": "source", "source": "nccl_ras", **down},
    ]


def _processes(state: State) -> Observation:
    last = state._recent[-1]
    ranks = [
        {"pid": run.pid, "role": "rank", "run": run.run, "rank": run.rank, "script": "train.py"}
        for row in last.rows
        for run in row.runs
    ]
    return {"t": float(END), "kind": "processes", "processes": ranks}


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
