"""What captures of one process say, as ``stack`` and ``locals`` observations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpuwhy.observe.locals import counters, worker_index
from gpuwhy.observe.observation import Frame, Observation
from gpuwhy.observe.pyspy_formats import DumpedThread, FailedRead, Trace
from gpuwhy.observe.source_text import SourceText
from gpuwhy.observe.stacks_spans import LONGEST_S, Known, spans
from gpuwhy.observe.stacks_still import stands_still
from gpuwhy.observe.stacks_torn import has_thread_root, is_torn, own_part

_FIRST_DT_S = 0.1
_MOST_THREADS = 256


@dataclass(frozen=True, slots=True)
class Target:
    """A process to watch. ``start``: UTC seconds; with the PID it is the process's identity."""

    pid: int
    start: float
    role: str  # "rank" or "worker"
    rank_pid: int


@dataclass(slots=True)
class StackReader:
    """``main_tids``: what the main thread's id may be, here and in the job's PID namespace.
    ``torn`` counts the stacks that were dropped."""

    target: Target
    main_tids: frozenset[int]
    text: SourceText
    torn: int = 0
    _known: Known = field(default_factory=Known)
    _dumped_at: float | None = None  # UTC

    def record(
        self,
        trace: Trace,
        start: float,
        hz: int,
        failed: Sequence[FailedRead] = (),
        stacks: int | None = None,
    ) -> list[Observation]:
        """A record that began at ``start`` (UTC) and sampled ``hz`` times a second; ``failed`` are
        the samples that gave no stack, ``stacks`` the number of those that were seen."""
        seen, torn = spans(trace, start, hz, self._known, failed, stacks, self._still)
        self.torn += torn
        return [self._stack(span.t, span.dt, span.tid, span.name, span.frames) for span in seen]

    def dump(self, threads: Iterable[DumpedThread], seen: float) -> list[Observation]:
        """A snapshot taken at ``seen`` (UTC). A worker's stack holds for the time since its last
        one, a second at most; a rank's is an instant beside its record (``dt`` 0), which adds
        which threads are active."""
        dt = 0.0
        if self.target.role == "worker":
            dt = min(LONGEST_S, seen - self._dumped_at) if self._dumped_at else _FIRST_DT_S
        self._dumped_at = seen
        out: list[Observation] = []
        for thread in self._whole(list(threads)[:_MOST_THREADS]):
            stack = self._stack(seen - dt, dt, thread.tid, thread.name, thread.frames)
            out.append({**stack, "active": thread.active, "gil": thread.gil})
            if stack["main"] and (values := self._values(thread)):
                pid = self.target.pid
                out.append({"t": round(seen, 4), "kind": "locals", "pid": pid, "values": values})
        return out

    def _whole(self, threads: Iterable[DumpedThread]) -> Iterable[DumpedThread]:
        for thread in threads:
            if has_thread_root(thread.frames):
                self._known.rooted.add(thread.tid)
            if is_torn(thread.frames, rooted=thread.tid in self._known.rooted):
                self.torn += 1
            else:
                yield thread

    def _values(self, thread: DumpedThread) -> list[list[str | int]]:
        worker = self.target.role == "worker"
        return worker_index(thread.locals) if worker else counters(thread.locals)

    def _stack(self, t: float, dt: float, tid: int, name: str, frames: list[Frame]) -> Observation:
        main = name == "MainThread" or tid in self.main_tids or _is_unnamed_main(name, frames)
        if main and self.target.role == "worker":
            frames = own_part(frames)
        return {
            "t": round(t, 4),
            "kind": "stack",
            "pid": self.target.pid,
            "dt": round(dt, 4),
            "tid": tid,
            "thread": name,
            "main": main,
            "frames": self._with_call(frames),
        }

    def _still(self, frames: Sequence[Frame]) -> bool:
        return stands_still(self._with_call(list(frames)))

    def _with_call(self, frames: list[Frame]) -> list[Frame]:
        leaf = frames[0]
        call = self.text.call(self.target.pid, leaf[1], leaf[2], self.target.start)
        return frames if call is None else [[*leaf, call], *frames[1:]]


def _is_unnamed_main(name: str, frames: Sequence[Frame]) -> bool:
    """A script's own thread in a process that has not imported ``threading``: it has no name, and
    up to Python 3.10 the interpreter does not keep the system's id of a thread either."""
    return not name and frames[-1][0] in ("<module>", "_run_module_as_main")
