"""What py-spy prints -> plain data: ``dump --json`` and the Chrome trace of ``record``.

Both raise ValueError where the text is not what py-spy writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuwhy.observe.observation import Frame

_THREAD = re.compile(r"thread \((0[xX][0-9a-fA-F]+|\d+)\)(?:: (.*))?$", re.DOTALL)
"""The root frame that ``--threads`` adds: OS thread id, or a pthread id where that is unknown."""
_ERRORS = re.compile(r"Errors: (\d+)")
_COPY_FAILED = re.compile(r"Failed to copy|Bad address|os error 14\b")


@dataclass(frozen=True, slots=True)
class DumpedThread:
    """One thread at the moment of a dump. ``locals`` are (function, file, name, text)."""

    tid: int
    name: str
    active: bool
    gil: bool
    frames: list[Frame]  # leaf first
    locals: list[tuple[str, str, str, str]] = field(default_factory=list)


@dataclass(slots=True)
class TracedThread:
    """One thread over a record: its stack from each change on, seconds since the record began."""

    tid: int
    name: str
    changes: list[tuple[float, list[Frame]]] = field(default_factory=list)  # leaf first


@dataclass(frozen=True, slots=True)
class Trace:
    """A record: its threads, and when it was written, in seconds since it began.

    A thread that ends during the record seems to last until its end: the format does not say.
    """

    end: float
    threads: list[TracedThread]


def parse_dump(text: bytes) -> list[DumpedThread]:
    """The threads of ``py-spy dump --json``; those without Python frames are left out."""
    threads = _expect(json.loads(text), list)
    return [_dumped(thread) for thread in threads if thread["frames"]]


def _dumped(thread: Mapping[str, Any]) -> DumpedThread:
    frames = thread["frames"]
    return DumpedThread(
        tid=int(thread["os_thread_id"] or thread["thread_id"]),
        name=thread["thread_name"] or "",
        active=bool(thread["active"]),
        gil=bool(thread["owns_gil"]),
        frames=[[frame["name"], frame["filename"], int(frame["line"])] for frame in frames],
        locals=[
            (frame["name"], frame["filename"], local["name"], local["repr"] or "")
            for frame in frames
            for local in frame["locals"] or ()
        ],
    )


def parse_trace(text: bytes) -> Trace:
    """The threads of a Chrome trace: at each sample that differs from the one before, E events
    close the frames that went and B events open the new ones; a last round of E closes all."""
    events = [event for event in _expect(json.loads(text), list) if event["ph"] in "BE"]
    if not events:
        return Trace(0.0, [])
    by_thread: dict[int, list[Mapping[str, Any]]] = {}
    for event in events:
        by_thread.setdefault(event["tid"], []).append(event)
    end = max(event["ts"] for event in events) / 1e6
    threads = [_traced(own, end) for own in by_thread.values()]
    return Trace(end, [thread for thread in threads if thread.changes])


def _traced(events: Iterable[Mapping[str, Any]], end: float) -> TracedThread:
    thread = TracedThread(0, "")
    stack: list[Frame] = []
    at: float | None = None
    for event in events:
        ts = event["ts"] / 1e6
        if at is not None and ts != at:
            _change(thread, at, stack)
        at = ts
        if event["ph"] == "E":
            if not stack:
                raise ValueError("a frame ends that never began")
            stack.pop()
        else:
            stack.append([event["name"], event["args"]["filename"], int(event["args"]["line"])])
    if at is not None and at < end:
        _change(thread, at, stack)
    return thread


def _change(thread: TracedThread, at: float, stack: list[Frame]) -> None:
    """Note the stack, without the frame that only names the thread."""
    frames = stack
    if stack and stack[0][1] == "" and (label := _THREAD.match(stack[0][0])):
        thread.tid, thread.name = int(label[1], 0), label[2] or ""
        frames = stack[1:]
    if frames:
        thread.changes.append((at, frames[::-1]))


def failed_samples(messages: str) -> int:
    """Samples of a record in which reading failed midway, from its closing line."""
    found = _ERRORS.search(messages)
    return int(found[1]) if found else 0


def is_torn_read(messages: str) -> bool:
    """True where a dump failed because the job's memory changed while it was read."""
    return _COPY_FAILED.search(messages) is not None


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"py-spy wrote {type(value).__name__}, not {kind.__name__}")
    return value
