"""The parent's side of the observer process: starts it, reads it, and starts it anew.

A process that ends, falls silent, or holds a source that has hung for long (a driver call that
never returns cannot be cancelled) is replaced. Meanwhile its sources are reported as not up.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpuwhy.observe import child, wire
from gpuwhy.observe.cadence import BackOff
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.options import NAMES, options_of
from gpuwhy.observe.pipe import PipeReader

log = logging.getLogger(__name__)

BATCH_S = 0.5
"""A batch comes at least this often, if an empty one."""
MOST_WAITING = 50_000
"""Observations kept for a slow consumer; then the observer drops, and counts, its own."""
GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    """When a process is replaced, in seconds."""

    hung: float = 30.0  # a source hangs beyond its deadline
    silent: float = 30.0  # no line at all: the host alone gives one a second
    first_pause: float = 1.0  # doubles with each end in a row ...
    longest_pause: float = 60.0
    settled: float = 60.0  # ... and begins anew after a process that lived this long
    left_out: float = 300.0  # a source that hangs again within twice this is left out for so long


class Observer:
    """Observes in another process. ``batch`` gives what was observed; errors of that process come
    as ``source`` observations, never as exceptions."""

    def __init__(
        self,
        options: Mapping[str, Any] | object | None = None,
        limits: Limits = Limits(),
        launch: Callable[[list[str]], child.Process] = child.start,
    ) -> None:
        self._options = options_of(options)
        self._limits = limits
        self._launch = launch
        self._waiting: deque[Observation] = deque()
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name="supervisor", daemon=True)
        self._process: child.Process | None = None
        self._sources: dict[str, Observation] = {}  # last word by name
        self._heard = time.monotonic()
        self._hung: dict[str, float] = {}  # source -> since when, monotonic
        self._hangs: dict[str, float] = {}  # source -> its last hang, monotonic
        self._left_out: dict[str, float] = {}  # source -> until, monotonic
        self._unreaped: list[child.Process] = []

    def start(self) -> None:
        """Start the first process. Raises OSError where none can be started."""
        self._spawn()
        self._thread.start()

    def batch(self, timeout: float = BATCH_S) -> list[Observation]:
        """What was observed since the last call; waits up to ``timeout`` seconds for something."""
        with self._changed:
            if not self._waiting:
                self._changed.wait(timeout)
            taken = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return taken

    def stop(self) -> None:
        """End the process and all that it has started."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(2 * GRACE_S + 5.0)

    @property
    def pid(self) -> int | None:
        """The process that observes now."""
        return self._process.pid if self._process is not None else None

    def _supervise(self) -> None:
        pause = BackOff(self._limits.first_pause, self._limits.longest_pause)
        while not self._stop.is_set():
            if self._process is None:
                self._try_again()
            began = time.monotonic()
            why = self._watch() if self._process is not None else "it cannot be started"
            self._end()
            if self._stop.is_set():
                return
            if time.monotonic() - began >= self._limits.settled:
                pause.succeeded()
            pause.failed(time.monotonic())
            self._report_end(why, pause.wait_s)
            self._stop.wait(pause.wait_s)

    def _try_again(self) -> None:
        try:
            self._spawn()
        except OSError as error:
            log.error("the observer cannot be started", extra={"reason": str(error)})

    def _spawn(self) -> None:
        now = time.monotonic()
        self._left_out = {name: until for name, until in self._left_out.items() if until > now}
        wanted = self._options.get("sources", list(NAMES))
        sources = [name for name in wanted if name not in self._left_out]
        process = self._launch([json.dumps({**self._options, "sources": sources})])
        with self._changed:
            self._process, self._heard, self._hung = process, now, {}
        threading.Thread(target=self._read, args=(process,), name="reader", daemon=True).start()

    def _read(self, process: child.Process) -> None:
        """Take lines until the pipe ends; those of a process that was given up are not heard."""
        assert process.stdout is not None
        pipe = PipeReader()
        with contextlib.suppress(OSError, ValueError):
            while line := process.stdout.readline(wire.MAX_LINE):
                if not self._hear(process, line, pipe):
                    return

    def _hear(self, process: child.Process, line: bytes, pipe: PipeReader) -> bool:
        try:
            observation = pipe.decode(line)
        except wire.WireError as error:
            log.warning("the observer wrote no observation", extra={"reason": str(error)})
            return True
        if observation is None:
            return True
        with self._changed:
            while len(self._waiting) >= MOST_WAITING and not self._stop.is_set():
                self._heard = time.monotonic()  # it is we who do not listen
                self._changed.wait(1.0)
            if process is not self._process or self._stop.is_set():
                return False
            self._heard = time.monotonic()
            self._note(observation)
            self._waiting.append(observation)
            self._changed.notify_all()
        return True

    def _note(self, observation: Observation) -> None:
        if observation["kind"] != "source" or "pid" in observation or "uuid" in observation:
            return
        name = observation["source"]
        self._sources[name] = observation
        if "hung_s" in observation:
            self._hung.setdefault(name, time.monotonic() - float(observation["hung_s"]))
        else:
            self._hung.pop(name, None)

    def _watch(self) -> str:
        """Wait until the process must be replaced (or ``stop``); says why."""
        process = self._process
        assert process is not None
        while not self._stop.wait(0.2):
            status = child.exit_status(process)
            if status is not None:
                ended = f"signal {-status}" if status < 0 else f"exit status {status}"
                return f"it ended ({ended})"
            if time.monotonic() - self._heard > self._limits.silent:
                return f"it was silent for {self._limits.silent:.0f} s"
            longest = time.monotonic() - self._limits.hung
            hung = [name for name, since in dict(self._hung).items() if since <= longest]
            if hung:
                self._count_hangs(hung)
                return f"{', '.join(hung)} did not answer for {self._limits.hung:.0f} s"
            due = [name for name, until in self._left_out.items() if until <= time.monotonic()]
            if due:
                return f"{', '.join(due)} is tried again"
        return "it was stopped"

    def _count_hangs(self, hung: list[str]) -> None:
        """A source that hangs in each new process must not take the others down each time."""
        now, out = time.monotonic(), self._limits.left_out
        for name in hung:
            if name in self._hangs and now - self._hangs[name] < 2 * out:
                self._left_out[name] = now + out
            self._hangs[name] = now

    def _end(self) -> None:
        with self._changed:
            process, self._process = self._process, None
        if process is not None and not child.end(process, GRACE_S):
            log.warning("the observer cannot be ended yet", extra={"pid": process.pid})
            self._unreaped.append(process)
        self._unreaped = [process for process in self._unreaped if process.poll() is None]

    def _report_end(self, why: str, pause_s: float) -> None:
        log.warning("the observer is started anew", extra={"reason": why, "pause_s": pause_s})
        now = time.time()
        state = {
            "t": now,
            "up": False,
            "why": f"the observer process: {why}; a new one is started in {pause_s:.0f} s",
            "remedy": "wait; if it goes on, see the log of gpuwhy for the reason",
        }
        with self._changed:
            names = self._sources or {name: {} for name in NAMES}
            self._waiting.extend(
                {**said, "kind": "source", "source": name, **state} for name, said in names.items()
            )
            self._changed.notify_all()


@contextlib.contextmanager
def observe(
    options: Mapping[str, Any] | object | None = None,
) -> Iterator[Iterator[list[Observation]]]:
    """Observe this host: ``with observe({...}) as batches`` gives lists of observations, at least
    every half second (an empty one then), until the block is left. Raises OSError where no process
    can be started."""
    observer = Observer(options)
    observer.start()
    try:
        yield _batches(observer)
    finally:
        observer.stop()


def _batches(observer: Observer) -> Iterator[list[Observation]]:
    while True:
        yield observer.batch()
