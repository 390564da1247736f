"""The observer process: runs the sources and writes what they give as lines of JSON.

It is a process of its own since a driver call that hangs cannot be cancelled, and since who answers
HTTP need not hold rights over other processes. Standard input is its lifeline: it ends when that
closes, when nobody reads its output, and on SIGTERM. It ends by itself, to be started anew, when a
source asks for a new process.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from gpuwhy.observe.hub import Hub
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.options import Options
from gpuwhy.observe.outbox import Outbox
from gpuwhy.observe.pipe import PipeWriter
from gpuwhy.observe.runner import Runner
from gpuwhy.observe.sources import build

log = logging.getLogger(__name__)

WATCH_S = 0.5
CLOSE_S = 3.0
"""For each source to end; py-spy's children are killed in that time."""
NEW_PROCESS_AFTER_S = 60.0
"""A source that needs a new process (the driver was upgraded) gets one this often."""


class Observer:
    """Sources in, lines out, until ``stop``."""

    def __init__(self, options: Options, output: BinaryIO) -> None:
        self.ending = threading.Event()
        self._output = output
        self._outbox = Outbox()
        self._hub = Hub()
        sources, failed = build(options, self._hub)
        self._outbox.put("observer", failed)
        self._runners = [
            Runner(source, self._emit, lambda name: self._outbox.dropped[name])
            for source in sources
        ]

    def run(self) -> None:
        """Observe until the end is asked for."""
        began = time.monotonic()
        writer = threading.Thread(target=self._write, name="writer", daemon=True)
        writer.start()
        for runner in self._runners:
            runner.start()
        while not self.ending.wait(WATCH_S):
            for runner in self._runners:
                self._outbox.put(runner.source.name, runner.watch(time.time()))
            if time.monotonic() - began > NEW_PROCESS_AFTER_S and self._wants_new_process():
                log.info("a source asks for a new process")
                break
        self._close(writer)

    def _wants_new_process(self) -> bool:
        return any(getattr(runner.source, "restart_wanted", False) for runner in self._runners)

    def _emit(self, name: str, observations: Sequence[Observation]) -> None:
        for observation in observations:
            try:
                self._hub.see(observation)
            except Exception:
                log.exception("an observation was not understood", extra={"source": name})
        self._outbox.put(name, observations)

    def _write(self) -> None:
        """Write what comes; a reader that is gone ends everything."""
        pipe = PipeWriter()
        while not self._outbox.closed:
            lines = b"".join(_lines(o, pipe) for o in self._outbox.take(1.0))
            try:
                self._output.write(lines)
                self._output.flush()
            except (OSError, ValueError):
                self.ending.set()
                return

    def _close(self, writer: threading.Thread) -> None:
        """End the sources side by side: one that hangs must not keep the others from closing."""
        ends = [
            threading.Thread(target=runner.stop, args=(CLOSE_S,), daemon=True)
            for runner in self._runners
        ]
        for end in ends:
            end.start()
        deadline = time.monotonic() + CLOSE_S + 1.0
        for end in ends:
            end.join(max(0.0, deadline - time.monotonic()))
        self._outbox.close()
        writer.join(1.0)


def _lines(observation: Observation, pipe: PipeWriter) -> bytes:
    try:
        return pipe.encode(observation)
    except (TypeError, ValueError):
        log.exception("an observation is no JSON", extra={"kind": observation.get("kind")})
        return b""


def main(options: Options) -> None:
    """Run as the process's only task; does not return, since a thread may hang for ever."""
    # Whatever a library prints must not mix with the lines: standard output becomes our own file.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=1 << 16)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Where memory runs out, we are to be killed, not the job.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")
    observer = Observer(options, output)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: observer.ending.set())
    threading.Thread(target=_lifeline, args=(observer.ending,), daemon=True).start()
    observer.run()
    sys.stderr.flush()
    os._exit(0)


def _lifeline(ending: threading.Event) -> None:
    """Wait for the end of standard input: our parent is gone."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    ending.set()
