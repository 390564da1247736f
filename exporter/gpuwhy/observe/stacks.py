"""The source of Python stacks: which process is looked at when, within a budget of CPU.

Ranks are recorded by py-spy in chunks, one after the other, and now and then dumped for their
locals; workers are dumped in turn. Every capture is a child of ours that is started, polled and
reaped, never waited for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gpuwhy.observe import pyspy
from gpuwhy.observe.cadence import Every
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.source_state import SourceState
from gpuwhy.observe.source_text import SourceText
from gpuwhy.observe.stacks_budget import STEADY, Bucket, Costs, Pace, Plan, make_plan
from gpuwhy.observe.stacks_reader import Target
from gpuwhy.observe.stacks_watch import Means, Tally, Watch

__all__ = ["StackSource", "Target"]

_STARTS = 8  # captures started in one poll: each takes a millisecond or two
_DUMPS_AT_ONCE = 4
_FIND_AGAIN_S = 60.0

Key = tuple[int, float, str]


class StackSource:
    """Python stacks of ranks and workers, and the integer locals that count steps.

    ``pressure`` tells how short of CPU the host is, 0 to 1, None where that is unknown. The share
    of one core in ``pace`` holds for the py-spy children and for ``poll`` itself. ``executable`` is
    py-spy where it is not the one that was installed with us (one with file capabilities, say).
    """

    name = "stacks"
    period_s = 0.1
    deadline_s = 5.0

    def __init__(
        self,
        pace: Pace = STEADY,
        pressure: Callable[[], float | None] = lambda: None,
        proc: Path = Path("/proc"),
        executable: Path | None = None,
    ) -> None:
        self.pace = pace
        self.tally = Tally()
        self.share = pace.share(0)
        self.plan = Plan(pace.rest_hz, 0.0)
        self._pressure = pressure
        self._bucket, self._worker_bucket = Bucket(), Bucket()
        self._costs, self._text, self._proc = Costs(), SourceText(proc), proc
        self._executable = executable
        self._means: Means | None = None
        self._missing: pyspy.PySpyError | None = None
        self._search, self._pressing = Every(_FIND_AGAIN_S), Every(1.0)
        self._pressed: float | None = None
        self._state = SourceState(self.name)
        self._lag_s = 0.0
        self._polled = time.monotonic()
        self._watches: dict[Key, Watch] = {}
        self._ending: list[pyspy.Capture] = []
        self._lock = threading.Lock()  # for the three that other threads set
        self._targets: tuple[Target, ...] = ()
        self._targets_changed = False
        self._fine_until: dict[int, float] = {}

    def set_targets(self, targets: Sequence[Target]) -> None:
        """The processes to look at from now on; may be called from any thread."""
        with self._lock:
            self._targets, self._targets_changed = tuple(targets), True

    def set_changing(self, pids: set[int]) -> None:
        """Look at these ranks more finely for a while; may be called from any thread."""
        now = time.monotonic()
        with self._lock:
            kept = {pid: until for pid, until in self._fine_until.items() if until > now}
            self._fine_until = {**kept, **dict.fromkeys(pids, now + self.pace.fine_for_s)}

    def describe(self) -> dict[str, str]:
        """Software, for a recording's header."""
        try:
            return {"py-spy": pyspy.version(self._executable or pyspy.executable())}
        except pyspy.PySpyError:
            return {}

    def poll(self, now: float) -> list[Observation]:
        """Observations of the captures that have ended since; starts those that are due."""
        began, mono = time.thread_time(), time.monotonic()
        means = self._find(mono)
        if means is None:
            missing = self._missing
            return self._state.report(
                now, False, *((missing.why, missing.remedy) if missing else ())
            )
        self._follow(means)
        out: list[Observation] = []
        for watch in self._watches.values():
            out += watch.poll(mono, now)
        self._ending = [capture for capture in self._ending if capture.poll() is None]
        self._make_plan(mono)
        self._start(mono)
        own = time.thread_time() - began
        self.tally.cpu_s += own
        self._bucket.spend(own)
        self._costs.learn_own(own, mono - self._polled)
        self._polled = mono
        return out + self._report(now, means)

    def close(self) -> None:
        """End the captures that still run; the watched processes are not touched."""
        pyspy.stop([*self._ending, *(c for w in self._watches.values() for c in w.captures)])
        self._watches, self._ending = {}, []

    def _find(self, mono: float) -> Means | None:
        """py-spy, looked for again from time to time where it was missing."""
        if self._means is None and self._search.due(mono):
            try:
                path = self._executable or pyspy.executable()
                pyspy.version(path)
            except pyspy.PySpyError as error:
                self._missing = error
                return None
            self._means = Means(
                path, self._proc, self._text, self._costs, self.tally, self._spend, self._part
            )
        return self._means

    def _part(self) -> float:
        """Of the share, for each rank: cores."""
        return self.share / max(1, len(self._alive("rank")))

    def _spend(self, cpu_s: float, role: str) -> None:
        self._bucket.spend(cpu_s)
        if role == "worker":
            self._worker_bucket.spend(cpu_s)

    def _follow(self, means: Means) -> None:
        """Begin to watch what is new among the targets, and let go of what has left them."""
        with self._lock:
            if not self._targets_changed:
                return
            targets, self._targets_changed = self._targets, False
        wanted = {(t.pid, t.start, t.role): t for t in targets}
        for key in [key for key in self._watches if key not in wanted]:
            gone = self._watches.pop(key).captures
            for capture in gone:
                capture.terminate()
            self._ending += gone
            self._text.forget(key[0])
        new = [target for key, target in wanted.items() if key not in self._watches]
        for target in new:
            self._watches[(target.pid, target.start, target.role)] = Watch(target, means)
        self.set_changing({target.pid for target in new if target.role == "rank"})

    def _alive(self, role: str) -> list[Watch]:
        return [w for w in self._watches.values() if w.target.role == role and not w.ended]

    def _make_plan(self, mono: float) -> None:
        ranks, workers = self._alive("rank"), len(self._alive("worker"))
        fine = sum(self._is_fine(watch, mono) for watch in ranks)
        if self._pressing.due(mono):
            self._pressed = self._pressure()
        self.share = self.pace.share(len(ranks), self._pressed)
        self.plan = make_plan(
            self.pace, self._costs, self.share, rest=len(ranks) - fine, fine=fine, workers=workers
        )
        waiting = [watch for watch in ranks if watch.pay(self._part(), mono - self._polled)]
        self._bucket.fill(mono, self.share - len(waiting) * self._part())
        self._worker_bucket.fill(mono, self.plan.workers)

    def _start(self, mono: float) -> None:
        """Start what is due, the longest overdue first, while there is budget."""
        left = _STARTS
        for watch in sorted(self._alive("rank"), key=lambda watch: watch.record_due):
            if left > 0 and not self._bucket.empty:
                left -= self._start_rank(watch, mono)
        dumping = sum(watch.runs("dump") for watch in self._watches.values())
        left = min(left, _DUMPS_AT_ONCE - dumping)
        for watch in sorted(self._alive("worker"), key=lambda watch: watch.next_dump):
            spent = self._bucket.empty or self._worker_bucket.empty
            if left <= 0 or spent or watch.next_dump > mono:
                break
            if not watch.runs("dump") and watch.ready(mono):
                watch.next_dump = mono + self.pace.worker_s
                watch.start_dump(mono)
                left -= 1

    def _start_rank(self, watch: Watch, mono: float) -> int:
        """The number of captures started. The first is a dump: where py-spy is refused it gives
        up at once, while a record tries 20 times over."""
        dump = not watch.runs("dump") and watch.next_dump <= mono
        record = watch.attached and not watch.runs("record")
        if not (dump or record) or not watch.ready(mono):
            return 0
        fine = self._is_fine(watch, mono)
        if dump:
            watch.next_dump = mono + (self.pace.fine_locals_s if fine else self.pace.locals_s)
            watch.start_dump(mono)
        if record:
            self._lag_s = max(self._lag_s, mono - watch.record_due)
            watch.start_record(mono, self._hz(fine), self.pace.chunk_s)
        return dump + record

    def _is_fine(self, watch: Watch, mono: float) -> bool:
        return self._fine_until.get(watch.target.pid, 0.0) > mono

    def _hz(self, fine: bool) -> int:
        return min(self.plan.hz, self.pace.fine_hz if fine else self.pace.rest_hz)

    def _report(self, now: float, means: Means) -> list[Observation]:
        """The source as a whole is down only where no rank can be read."""
        refusals = [watch.refusal for watch in self._alive("rank")]
        first = refusals[0] if refusals and all(refusals) else None
        out = self._state.report(
            now,
            first is None,
            first.why if first else "",
            first.remedy if first else "",
            period_s=round(1 / self._hz(False), 4),
            lag_s=round(self._lag_s, 3),
            cpu_s=round(self.tally.cpu_s, 4),
            share=round(self.share, 4),
            reads=self.tally.reads,
            failures=self.tally.failures,
            torn=self.tally.torn,
            version=pyspy.version(means.executable),
        )
        if out:
            self._lag_s = 0.0
        return out
