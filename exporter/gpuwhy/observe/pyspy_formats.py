"""What py-spy prints -> plain data: ``dump --json``, the Chrome trace of ``record``, and its log.

The first two raise ValueError where the text is not what py-spy writes.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from gpuwhy.observe.observation import Frame

_THREAD = re.compile(r"thread \((0[xX][0-9a-fA-F]{1,13}|[0-9]{1,15})\)(?:: (.*))?$", re.DOTALL)
"""The root frame that ``--threads`` adds: OS thread id, or a pthread id where that is unknown."""
_ERRORS = re.compile(r"Errors: ([0-9]{1,18})\b")
_SAMPLES = re.compile(r"Samples: ([0-9]{1,18})\b")
LONGEST_S = 3600.0
"""A record takes seconds; what is beyond this is no time."""
_LOGGED = re.compile(
    r"^\[([0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2}\.[0-9]{6})[0-9]*Z +[A-Z]+ +([\w:]+)\]"
    r" (.*(?:\n[ \t].*)*)\n?",
    re.MULTILINE,
)
"""An entry of env_logger: UTC to the nanosecond, module, text; further lines are indented."""
_FAILED_READ = re.compile(r"Failed to get stack trace from [0-9]+: .*\bthread ([0-9]{1,20})$")
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
    """One thread over a record: its stack from each change on, seconds since the record began.
    ``key`` is py-spy's own id of it, a pthread id."""

    tid: int
    name: str
    changes: list[tuple[float, list[Frame]]] = field(default_factory=list)  # leaf first
    key: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """A record: its threads, and when it was written, in seconds since it began.

    A thread that ends during the record seems to last until its end: the format does not say.
    """

    end: float
    threads: list[TracedThread]


def parse_dump(text: bytes) -> list[DumpedThread]:
    """The threads of ``py-spy dump --json``; those without Python frames are left out."""
    with _one_error():
        threads = _expect(json.loads(text), list)
        return [_dumped(thread) for thread in threads if thread["frames"]]


def _dumped(thread: Mapping[str, Any]) -> DumpedThread:
    frames = thread["frames"]
    return DumpedThread(
        tid=abs(_whole(thread["os_thread_id"] or thread["thread_id"])),
        name=_text(thread["thread_name"] or ""),
        active=bool(thread["active"]),
        gil=bool(thread["owns_gil"]),
        frames=[_frame(frame["name"], frame["filename"], frame["line"]) for frame in frames],
        locals=[
            (frame["name"], frame["filename"], _text(local["name"]), _text(local["repr"] or ""))
            for frame in frames
            for local in frame["locals"] or ()
        ],
    )


def parse_trace(text: bytes) -> Trace:
    """The threads of a Chrome trace: at each sample that differs from the one before, E events
    close the frames that went and B events open the new ones; a last round of E closes all."""
    with _one_error():
        return _trace([e for e in _expect(json.loads(text), list) if e["ph"] in ("B", "E")])


def _trace(events: Sequence[Mapping[str, Any]]) -> Trace:
    by_thread: dict[int, list[Mapping[str, Any]]] = {}
    for event in events:
        if not 0 <= event["ts"] < LONGEST_S * 1e6:
            raise ValueError(f"a time of {event['ts']} us")
        by_thread.setdefault(event["tid"], []).append(event)
    end = max((event["ts"] for event in events), default=0) / 1e6
    threads = [_traced(key, own, end) for key, own in by_thread.items()]
    return Trace(end, [thread for thread in threads if thread.changes])


def _traced(key: int, events: Iterable[Mapping[str, Any]], end: float) -> TracedThread:
    thread = TracedThread(0, "", key=key)
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
            of = event["args"]
            stack.append(_frame(event["name"], of["filename"], of["line"]))
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


@dataclass(frozen=True, slots=True)
class FailedRead:
    """A sample of a record that failed at ``t`` (UTC) as the stack of thread ``key`` was read."""

    t: float
    key: int


def failed_samples(messages: str) -> int:
    """Samples of a record in which reading failed midway, from its closing line."""
    found = _ERRORS.search(messages)
    return int(found[1]) if found else 0


def stacks_seen(messages: str) -> int | None:
    """Stacks of a record, of all its samples and threads, from its closing line."""
    found = _SAMPLES.search(messages)
    return int(found[1]) if found else None


def failed_reads(messages: str) -> list[FailedRead]:
    """The failed samples of a record of which the log tells the thread."""
    entries = ((entry[1], _FAILED_READ.match(entry[3])) for entry in _LOGGED.finditer(messages))
    return [FailedRead(_utc(at), int(found[1])) for at, found in entries if found]


def began(messages: str) -> float | None:
    """When a record's clock started (UTC): right after its settings were logged."""
    entries = _LOGGED.finditer(messages)
    return next((_utc(entry[1]) for entry in entries if entry[2] == "py_spy::config"), None)


def without_log(messages: str) -> str:
    """What py-spy said, without its log."""
    return _LOGGED.sub("", messages)


def _utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()


def is_torn_read(messages: str) -> bool:
    """True where a dump failed because the job's memory changed while it was read."""
    return _COPY_FAILED.search(messages) is not None


@contextlib.contextmanager
def _one_error() -> Iterator[None]:
    """Whatever is not of the form, at whatever depth, is a ValueError."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not what py-spy writes: {type(error).__name__}: {error}") from error


def _frame(name: Any, file: Any, line: Any) -> Frame:
    return [_text(name), _text(file), _whole(line)]


def _text(value: Any) -> str:
    return str(_expect(value, str))


def _whole(value: Any) -> int:
    """Any whole number that any reader of JSON keeps exact."""
    if not abs(number := int(_expect(value, int))) < 2**53:
        raise ValueError(f"a number of {number.bit_length()} bits")
    return number


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"py-spy wrote {type(value).__name__}, not {kind.__name__}")
    return value
