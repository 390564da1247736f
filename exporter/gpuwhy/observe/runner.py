"""The thread that runs one source: its period, its failures, and whether it hangs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gpuwhy.observe.observation import Observation

log = logging.getLogger(__name__)

REPEAT_S = 10.0
"""A hang is reported again after so long, and a source that is silent is spoken for."""
SLOWEST_S = 30.0
"""The longest pause after failures."""


class Source(Protocol):
    """What can be observed, as one object that is polled."""

    name: str
    period_s: float
    deadline_s: float

    def poll(self, now: float) -> list[Observation]:
        """What there is at ``now`` (Unix seconds); never raises for foreign failures."""

    def close(self) -> None:
        """Let go of everything."""


Emit = Callable[[str, Sequence[Observation]], None]


class Runner:
    """Polls a source in a thread of its own and hands on what it gives.

    ``dropped`` tells how many of its observations were lost on the way out.
    """

    def __init__(
        self, source: Source, emit: Emit, dropped: Callable[[str], int] = lambda name: 0
    ) -> None:
        self.source = source
        self._emit = emit
        self._dropped = dropped
        self._thread = threading.Thread(target=self._run, name=source.name, daemon=True)
        self._stop = threading.Event()
        self._began: float | None = None  # monotonic, while a poll runs
        self._said: dict[str, Observation] = {source.name: {}}  # last state, by source
        self._said_at = -REPEAT_S  # monotonic
        self._hang_said_at: float | None = None
        self._reads = self._failures = self._failed_in_a_row = 0
        self._lag_s = self._cpu_s = 0.0

    def start(self) -> None:
        """Begin to poll."""
        self._thread.start()

    def stop(self, timeout: float) -> bool:
        """End the thread and close the source; False where it hangs and is left."""
        self._stop.set()
        self._thread.join(timeout)
        if self._thread.is_alive():
            return False
        try:
            self.source.close()
        except Exception:
            log.exception("a source did not close", extra={"source": self.source.name})
        return True

    def hung_s(self) -> float:
        """For how long a poll has run beyond its deadline."""
        began = self._began
        return 0.0 if began is None else max(0.0, self._passed(began) - self.source.deadline_s)

    def watch(self, now: float) -> list[Observation]:
        """Reports of a hang, for whoever watches from another thread: at once, and repeated."""
        began = self._began
        if began is None or self._passed(began) <= self.source.deadline_s:
            return []
        if self._hang_said_at is not None and self._passed(self._hang_said_at) < REPEAT_S:
            return []
        self._hang_said_at = time.monotonic()
        return self._hang(now, self._passed(began))

    def _hang(self, now: float, seconds: float) -> list[Observation]:
        state = {
            "t": now,
            "up": False,
            "why": f"{self.source.name} did not answer for {seconds:.0f} s",
            "remedy": "see `dmesg` for what the kernel waits for; gpuwhy goes on trying",
            "hung_s": round(seconds, 1),
        }
        return [
            {**said, "kind": "source", "source": name, **state} for name, said in self._said.items()
        ]

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            self._lag_s = max(self._lag_s, self._passed(due))
            self._began = time.monotonic()
            observations = self._poll()
            self._began = None
            self._emit(self.source.name, self._with_state(observations))
            due = max(due + self._pause(), time.monotonic())

    def _poll(self) -> list[Observation]:
        now = time.time()
        try:
            observations = self.source.poll(now)
        except Exception as error:
            log.exception("a source failed", extra={"source": self.source.name})
            self._failures += 1
            self._failed_in_a_row += 1
            why = f"{self.source.name} failed: {type(error).__name__}: {error}"
            remedy = "report it as a defect of gpuwhy, with the log"
            observations = [self._state(now, up=False, why=why, remedy=remedy)]
        else:
            self._reads += 1
            self._failed_in_a_row = 0
        self._cpu_s = time.thread_time()
        return observations

    def _pause(self) -> float:
        """The period; longer after failures. Reads that were missed are not made up for."""
        period = self.source.period_s
        return (
            min(SLOWEST_S, period * 2**self._failed_in_a_row) if self._failed_in_a_row else period
        )

    def _with_state(self, observations: list[Observation]) -> list[Observation]:
        """Complete what the source says of itself, and speak for it where it has said nothing."""
        out = [self._completed(o) if o["kind"] == "source" else o for o in observations]
        now = time.time()
        if self._hang_said_at is not None:  # it has come back: its last word holds again
            self._hang_said_at = None
            out = [{**said, "t": now} for said in self._said.values() if said] + out
        if self._passed(self._said_at) >= REPEAT_S:
            last = self._said[self.source.name] or self._state(now, up=True)
            out.append(self._completed({**last, "t": now}))
        return out

    def _completed(self, said: Observation) -> Observation:
        """A ``source`` observation with the figures that only the runner knows."""
        name = said["source"]
        if "pid" in said or "uuid" in said:
            return said
        own = name == self.source.name
        figures = self._figures() if own else {}
        dropped = self._dropped(self.source.name)
        if own and dropped:
            figures["dropped"] = dropped
        said = {**figures, **said}
        self._said[name] = said
        if own:
            self._said_at, self._lag_s = time.monotonic(), 0.0
        return said

    def _figures(self) -> dict[str, Any]:
        return {
            "period_s": self.source.period_s,
            "lag_s": round(self._lag_s, 3),
            "cpu_s": round(self._cpu_s, 3),
            "reads": self._reads,
            "failures": self._failures,
        }

    def _state(self, now: float, **state: Any) -> Observation:
        return {"t": now, "kind": "source", "source": self.source.name, **state}

    @staticmethod
    def _passed(since: float) -> float:
        return time.monotonic() - since
