"""The PyTorch profiler's file (Kineto, Trace Event format), of torch 1.8.1 and newer.

Categories have been renamed over time: ``Operator`` became ``cpu_op``, ``Runtime``
``cuda_runtime``, ``Kernel`` ``kernel``, ``Memcpy`` ``gpu_memcpy``
(https://github.com/pytorch/kineto, libkineto/src/ActivityType.cpp and output_json.cpp).
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gpuwhy.evidence.traces.json_events import EventReader
from gpuwhy.evidence.traces.opened import pieces
from gpuwhy.evidence.traces.trace import (
    ANNOTATION,
    KERNEL,
    MEMCPY,
    MEMSET,
    OPERATOR,
    PYTHON,
    SYSTEM,
    UNKNOWN,
    Activities,
    Blind,
    Calls,
    Message,
    Rows,
    Spans,
    Thread,
    Trace,
    TraceError,
)

Event = Mapping[str, Any]

MOST_EVENTS = 40_000_000
"""Events kept of one file: some 3 GB. A longer record is refused, with the remedy."""

SPAN_KINDS = {
    "cpu_op": OPERATOR,
    "operator": OPERATOR,
    "user_annotation": ANNOTATION,
    "python_function": PYTHON,
    "overhead": SYSTEM,
}
ACTIVITY_KINDS = {
    "kernel": KERNEL,
    "gpu_memcpy": MEMCPY,
    "memcpy": MEMCPY,
    "gpu_memset": MEMSET,
    "memset": MEMSET,
}
CALLS = ("cuda_runtime", "runtime", "cuda_driver", "driver")

_ANNOTATES = re.compile(r"ProfilerStep[#*]|enumerate\(DataLoader\)|Optimizer\.|nccl:|gloo:")
"""Operators of old versions that are annotations."""
_FIRST_UTC_US = 1e15  # 2001: a smaller time is on another axis
_LAST_UTC_US = 4e15
_RANK = re.compile(r"rank[-_. ]?(\d{1,6})", re.IGNORECASE)
_BYTES = {
    "Byte": 1, "Char": 1, "Bool": 1, "Short": 2, "Half": 2, "BFloat16": 2, "Int": 4, "Float": 4,
    "Long": 8, "Double": 8, "Float8_e4m3fn": 1, "Float8_e5m2": 1,
}  # fmt: skip
_ABOUT = (
    "schemaVersion", "cuda_runtime_version", "cuda_driver_version", "cupti_version",
    "pytorch_version", "with_stack", "record_shapes", "profile_memory", "with_modules",
    "hostname", "host_name",
)  # fmt: skip


def read(path: Path) -> Trace:
    """Read a file, plain or gzipped.

    Raises TraceError where it is damaged, cut short, or no such trace.
    """
    events = EventReader(str(path), pieces(path))
    reader = _Reader(path)
    reader.read(events)
    return reader.finish(events.header, events.count)


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.activities, self.calls, self.spans = Rows(Activities), Rows(Calls), Rows(Spans)
        self.names: dict[str, int] = {}
        self.stacks: dict[str, int] = {}
        self.threads: dict[tuple[str, str], int] = {}
        self.thread_names: dict[tuple[str, str], str] = {}
        self.messages: dict[int, Message] = {}
        self.damaged = 0
        self._handlers = self._by_category()

    def _by_category(self) -> dict[str, Callable[[Event], None]]:
        """A handler for each category, in the spellings of old and new versions."""
        made: dict[str, Callable[[Event], None]] = {}
        for category, kind in ACTIVITY_KINDS.items():
            made[category] = lambda event, kind=kind: self._activity(event, kind)  # type: ignore[misc]
        for category, kind in SPAN_KINDS.items():
            made[category] = lambda event, kind=kind: self._span(event, kind)  # type: ignore[misc]
        for category in CALLS:
            made[category] = self._call
        return made | {category.capitalize(): handler for category, handler in made.items()}

    def read(self, events: Iterator[Any] | EventReader) -> None:
        handlers = self._handlers
        for event in events:
            try:
                phase = event.get("ph")
                if phase == "X":
                    handler = handlers.get(event.get("cat"))
                    if handler is not None:
                        handler(event)
                elif phase == "M":
                    self._metadata(event)
            except (TypeError, ValueError, AttributeError, KeyError, OverflowError, struct.error):
                self.damaged += 1
            if len(self.spans) + len(self.activities) + len(self.calls) > MOST_EVENTS:
                raise TraceError(
                    f"{self.path} holds more than {MOST_EVENTS} events: profile fewer steps "
                    "(schedule=..., active=3), or without with_stack"
                )

    def _activity(self, event: Event, kind: int) -> None:
        start = round(event["ts"] * 1000)
        args = event.get("args") or {}
        size = UNKNOWN
        correlation = int(args.get("correlation", UNKNOWN))
        if kind == KERNEL:
            grid = args.get("grid")
            if grid:
                size = int(grid[0]) * int(grid[1]) * int(grid[2])
            if "Collective name" in args:
                self.messages[correlation] = _message(args)
        else:
            size = int(args.get("bytes", UNKNOWN))
        self.activities.add(
            start,
            start + _duration(event),
            correlation,
            _op(args),
            size,
            kind,
            int(args["device"] if "device" in args else event["pid"]),
            _stream(args.get("stream", event.get("tid", 0))),
            self._name(event["name"]),
            0,
        )

    def _call(self, event: Event) -> None:
        start = round(event["ts"] * 1000)
        self.calls.add(
            start,
            start + _duration(event),
            int(event["args"].get("correlation", UNKNOWN)),
            self._thread(event),
            self._name(event["name"]),
        )

    def _span(self, event: Event, kind: int) -> None:
        start = round(event["ts"] * 1000)
        name = event["name"]
        args = event.get("args") or {}
        if kind == OPERATOR and _ANNOTATES.match(name):
            kind = ANNOTATION
        stack = args.get("Call stack")
        self.spans.add(
            start,
            start + _duration(event),
            _op(args),
            self._thread(event),
            self._name(name),
            kind,
            self.stacks.setdefault(stack, len(self.stacks)) if stack else UNKNOWN,
        )

    def _metadata(self, event: Event) -> None:
        if event["name"] == "thread_name":
            key = (str(event["pid"]), str(event["tid"]))
            self.thread_names[key] = str(event["args"]["name"])

    def _name(self, name: Any) -> int:
        return self.names.setdefault(str(name), len(self.names))

    def _thread(self, event: Event) -> int:
        return self.threads.setdefault((str(event["pid"]), str(event["tid"])), len(self.threads))

    def finish(self, header: Mapping[str, Any], events: int) -> Trace:
        """The trace of all that was added."""
        if header.get("format") == "gpuwhy-recording":
            raise TraceError(f"{self.path} is a recording: gpuwhy diagnose --recording reads it")
        if not events:
            raise TraceError(f"{self.path} is JSON but no trace: it has no list traceEvents")
        if not len(self.activities):
            raise TraceError(_no_gpu(self.path, len(self.spans)))
        made = self.activities.table()
        base, first = _base_ns(header), int(made.start[0])
        told = header.get("distributedInfo")
        distributed = told if isinstance(told, dict) else {}
        return Trace(
            source=self.path.name,
            form="kineto",
            names=list(self.names),
            threads=[Thread(*key, self.thread_names.get(key, "")) for key in self.threads],
            stacks=list(self.stacks),
            activities=made,
            calls=self.calls.table(),
            spans=self.spans.table(),
            origin_ns=base if _is_utc(first + (base or 0)) else None,
            rank=_rank(distributed, self.path),
            world_size=_integer(distributed.get("world_size")),
            devices=_devices(header),
            about=_about(header, distributed),
            messages=self.messages,
            blind=self._blind(),
            events=events,
        )

    def _blind(self) -> list[Blind]:
        if not self.damaged:
            return []
        why = f"{self.damaged} events could not be understood and were left out"
        return [Blind("events", why, "profile again with a current torch")]


def _no_gpu(path: Path, spans: int) -> str:
    seen = f"{spans} host events" if spans else "neither GPU nor host events"
    return (
        f"{path} holds no GPU events, only {seen}: profile with "
        "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], and check that the GPU was "
        "used and CUPTI may be (no second profiler on it)"
    )


def _op(args: Mapping[str, Any]) -> int:
    """The operator's id, to which activities refer: its spelling changed."""
    return int(args.get("External id") or args.get("external id") or UNKNOWN)


def _duration(event: Event) -> int:
    """Duration in ns; absent or negative ones are none."""
    duration = event.get("dur")
    return max(0, round(duration * 1000)) if duration else 0


def _stream(value: Any) -> int:
    """``7`` or, in old versions, ``stream 7``; any other name stands for a stream of its own."""
    text = str(value).rpartition(" ")[2]
    number = int(text) if text.isascii() and text.isdecimal() else zlib.crc32(text.encode())
    return number % 2**31


def _message(args: Mapping[str, Any]) -> Message:
    elements = _integer(args.get("In msg nelems"))
    width = _BYTES.get(str(args.get("dtype")))
    return Message(
        collective=str(args.get("Collective name")),
        size=elements * width if elements is not None and width else None,
        group=str(args.get("Process Group Name", "")),
        ranks=_integer(args.get("Group size")),
    )


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _base_ns(header: Mapping[str, Any]) -> int | None:
    """What is added to the file's times, if it says; absent in old versions, which write UTC."""
    return _integer(header.get("baseTimeNanoseconds", 0))


def _is_utc(ns: int) -> bool:
    return _FIRST_UTC_US < ns / 1000 < _LAST_UTC_US


def _rank(distributed: Mapping[str, Any], path: Path) -> int | None:
    """As the file tells; else by its name (rank0.json, trace_rank-3.json.gz)."""
    rank = _integer(distributed.get("rank"))
    found = _RANK.search(path.name)
    return rank if rank is not None else int(found[1]) if found else None


def _devices(header: Mapping[str, Any]) -> dict[int, str]:
    listed = header.get("deviceProperties")
    cards = listed if isinstance(listed, list) else []
    return {
        card["id"]: str(card.get("name", ""))
        for card in cards
        if isinstance(card, dict) and _integer(card.get("id")) is not None
    }


def _about(header: Mapping[str, Any], distributed: Mapping[str, Any]) -> dict[str, Any]:
    """Versions and settings, for whoever compares two traces."""
    made = {key: header[key] for key in _ABOUT if isinstance(header.get(key), str | int)}
    told = {key: distributed.get(key) for key in ("backend", "world_size", "nccl_version")}
    return made | {key: value for key, value in told.items() if isinstance(value, str | int)}
