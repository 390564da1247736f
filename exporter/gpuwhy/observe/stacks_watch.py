"""One process whose stacks are read: its captures, refusals and end."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gpuwhy.observe import procfs, pyspy, pyspy_formats, pyspy_refusal
from gpuwhy.observe.cadence import BackOff
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.pyspy_refusal import Refusal
from gpuwhy.observe.source_state import SourceState
from gpuwhy.observe.source_text import SourceText
from gpuwhy.observe.stacks_budget import Costs, allowance
from gpuwhy.observe.stacks_reader import StackReader, Target

DUMP_DEADLINE_S = 5.0
RECORD_GRACE_S = 5.0
_KILL_S = 1.0  # from SIGTERM to SIGKILL
_STOPPED_AGAIN_S = 1.0
_LONG_S = 10.0  # a pause between captures that is worth a word
_TORN_READS = 3  # in a row: more are a failure

Kind = Literal["dump", "record"]


@dataclass(slots=True)
class Tally:
    """Cumulative figures of the source."""

    cpu_s: float = 0.0
    reads: int = 0
    failures: int = 0
    torn: int = 0


@dataclass(frozen=True, slots=True)
class Means:
    """What all watches of a source share."""

    executable: Path
    proc: Path
    text: SourceText
    costs: Costs
    tally: Tally
    spend: Callable[[float, str], None]  # CPU seconds, role
    part: Callable[[], float]  # of the share, for each rank: cores


@dataclass(slots=True)
class _Running:
    capture: pyspy.Capture
    hz: int
    samples: float
    estimate: float  # CPU seconds
    interrupt_at: float  # monotonic
    kill_at: float
    overdue: bool = False


class Watch:
    """Captures of one process, at most one of a kind at a time, none of them waited for.

    Times called ``now`` and those kept are monotonic seconds, ``utc`` is Unix seconds.
    """

    def __init__(self, target: Target, means: Means) -> None:
        self.target = target
        self.attached = False  # a dump has succeeded
        self.refusal: Refusal | None = None
        self.next_dump = 0.0
        self.record_due = 0.0
        self._means = means
        self._base = f"{means.proc}/{target.pid}"
        stat = procfs.read_stat(self._base)
        self.ended = stat is None
        self._ticks = stat.start if stat else None
        self._reader = StackReader(target, _main_tids(self._base, target.pid), means.text)
        self._running: dict[Kind, _Running] = {}
        self._torn_reads = 0
        self._debt_s = 0.0  # CPU time of captures that this process alone has to wait for
        self._not_before = 0.0
        self._back_off = BackOff(1.0, 60.0)
        self._state = SourceState("stacks")

    @property
    def captures(self) -> list[pyspy.Capture]:
        """The children that have not been reaped yet."""
        return [running.capture for running in self._running.values()]

    def runs(self, kind: Kind) -> bool:
        """Whether such a capture is under way."""
        return kind in self._running

    def pay(self, part: float, elapsed_s: float) -> bool:
        """Whether this process waits, and its part of the share pays for its last captures."""
        waits = self._debt_s > 0
        self._debt_s = max(0.0, self._debt_s - part * min(elapsed_s, 1.0))
        return waits

    def ready(self, now: float) -> bool:
        """Whether a capture may start: the process runs, and neither a refusal nor what its last
        captures cost is being sat out."""
        if self.ended or self._debt_s > 0 or now < self._not_before or not self._back_off.due(now):
            return False
        stat = procfs.read_stat(self._base)
        if stat is None or stat.start != self._ticks:
            self.ended = True
        elif stat.state in "Tt":
            self.attached, self.next_dump = False, 0.0
            self.refusal = pyspy_refusal.stopped(self.target.pid, stat.state)
            self._not_before = now + _STOPPED_AGAIN_S
        return not self.ended and now >= self._not_before

    def start_dump(self, now: float) -> None:
        """Begin a snapshot."""
        kill_at = now + DUMP_DEADLINE_S
        estimate = self._means.costs.dump_s
        self._start(
            "dump",
            now,
            lambda: _Running(
                pyspy.dump(self._means.executable, self.target.pid),
                0,
                1,
                estimate,
                kill_at,
                kill_at,
            ),
        )

    def start_record(self, now: float, hz: int, seconds: float) -> None:
        """Begin a record. py-spy counts samples, which come at random moments, instead of time:
        it is asked for twice as many and interrupted after ``seconds``."""
        samples = hz * seconds
        estimate = self._means.costs.record(samples)
        kill_at = now + 2 * seconds + RECORD_GRACE_S
        self._start(
            "record",
            now,
            lambda: _Running(
                pyspy.record(self._means.executable, self.target.pid, hz, int(2 * seconds) + 2),
                hz, samples, estimate, now + seconds, kill_at,
            ),
        )  # fmt: skip

    def _start(self, kind: Kind, now: float, begin: Callable[[], _Running]) -> None:
        try:
            running = begin()
        except OSError as error:
            self._means.tally.failures += 1
            self._refuse(
                now,
                Refusal(
                    f"py-spy cannot be started: {error}",
                    "raise the limits on processes and memory of gpuwhy",
                ),
            )
            return
        self._running[kind] = running
        self._means.spend(running.estimate, self.target.role)

    def poll(self, now: float, utc: float) -> list[Observation]:
        """What the captures that have ended since tell, and the state of a refused process."""
        out: list[Observation] = []
        for kind, running in list(self._running.items()):
            outcome = running.capture.poll()
            if outcome is None:
                _hurry(running, now)
                continue
            del self._running[kind]
            began = time.thread_time()
            out += self._finish(kind, running, outcome, now)
            self._account(kind, running, outcome, time.thread_time() - began)
            if self._debt_s > _LONG_S * self._means.part():
                self.refusal = pyspy_refusal.costly(self.target.pid, outcome.cpu_s)
        return out if self.ended else out + self._report(utc)

    def _account(
        self, kind: Kind, running: _Running, outcome: pyspy.Outcome, reading_s: float
    ) -> None:
        """``reading_s`` is spent by the source, as all that it does itself."""
        self._means.tally.cpu_s += outcome.cpu_s
        taken, beyond = outcome.cpu_s + reading_s, 0.0
        if self.target.role == "rank" and taken > allowance(self._means.part()):
            beyond = max(0.0, taken - running.estimate)
        self._debt_s += beyond
        self._means.spend(outcome.cpu_s - beyond - running.estimate, self.target.role)
        if beyond:  # says nothing of the others
            return
        if outcome.ok and kind == "dump":
            self._means.costs.learn_dump(outcome.cpu_s)
        elif outcome.ok:
            self._means.costs.learn_record(outcome.cpu_s, running.samples)

    def _finish(
        self, kind: Kind, running: _Running, outcome: pyspy.Outcome, now: float
    ) -> list[Observation]:
        if kind == "record":
            self.record_due = now
        stat = procfs.read_stat(self._base)
        if stat is not None and stat.start != self._ticks:  # the PID is another process's now
            self.ended = True
            return []
        if not outcome.ok:
            said = pyspy_formats.without_log(outcome.messages)
            self._fail(now, "it did not answer in time" if running.overdue else said)
            return []
        try:
            out = self._read(kind, running, outcome)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            self._fail(now, f"its output could not be read: {error!r}")
            return []
        if stat is None or stat.state not in "Tt":
            self._succeed(now)
        return out

    def _read(self, kind: Kind, running: _Running, outcome: pyspy.Outcome) -> list[Observation]:
        torn = self._reader.torn
        if kind == "dump":
            out = self._reader.dump(pyspy_formats.parse_dump(outcome.data), outcome.written)
        else:
            trace = pyspy_formats.parse_trace(outcome.data)
            start = pyspy_formats.began(outcome.messages) or max(
                # py-spy's clock starts as it does, and stops as it writes: two bounds.
                outcome.written - trace.end,
                running.capture.began,
            )
            failed = pyspy_formats.failed_reads(outcome.messages)
            seen = pyspy_formats.stacks_seen(outcome.messages)
            out = self._reader.record(trace, start, running.hz, failed, seen)
            self._means.tally.torn += pyspy_formats.failed_samples(outcome.messages)
        self._means.tally.torn += self._reader.torn - torn
        self._means.tally.reads += 1
        return out

    def _succeed(self, now: float) -> None:
        if not self.attached:
            self.record_due = now
        self.attached, self.refusal, self._torn_reads = True, None, 0
        self._back_off.succeeded()

    def _fail(self, now: float, messages: str) -> None:
        self._means.tally.failures += 1
        if pyspy_formats.is_torn_read(messages) and self._torn_reads < _TORN_READS:
            self._means.tally.torn += 1
            self._torn_reads += 1
            self.next_dump = now
            return
        refusal = pyspy_refusal.explain(self.target.pid, messages, self._means.proc)
        if refusal.gone:
            self.ended = True
        else:
            self._refuse(now, refusal)

    def _refuse(self, now: float, refusal: Refusal) -> None:
        self.attached, self.refusal, self.next_dump = False, refusal, 0.0
        self._back_off.failed(now)

    def _report(self, utc: float) -> list[Observation]:
        """A refusal as long as it lasts, and its end."""
        pid = self.target.pid
        if self.refusal is not None:
            return self._state.report(utc, False, self.refusal.why, self.refusal.remedy, pid=pid)
        return self._state.report(utc, True, pid=pid) if self._state.up is False else []


def _hurry(running: _Running, now: float) -> None:
    """End a record when its time is over, and a capture that hangs."""
    if now >= running.kill_at:
        running.capture.signal(signal.SIGKILL if running.overdue else signal.SIGTERM)
        running.overdue, running.kill_at = True, now + _KILL_S
    elif now >= running.interrupt_at:
        running.capture.signal(signal.SIGINT)
        running.interrupt_at = running.kill_at


def _main_tids(base: str, pid: int) -> frozenset[int]:
    """The main thread's id is the PID, in each PID namespace that the process is in."""
    return frozenset((pid, *procfs.read_namespace_pids(base)))
