"""``py-spy record --format raw``: how often each stack was seen. It tells no times."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpuwhy.evidence.imports.text_table import LogError
from gpuwhy.observe.observation import Frame, Observation
from gpuwhy.signals.phases import classify_worker

MOST = 400
"""Stacks kept of a process, the most frequent ones."""

_LINE = re.compile(r"^(?P<stack>.+) (?P<count>\d{1,12})$")
_FRAME = re.compile(r"^(?P<name>.+) \((?P<file>[^()]*?)(?::(?P<line>\d+))?\)$")
_PROCESS = re.compile(r"^process (\d+)")


@dataclass(slots=True)
class Stack:
    """``frames`` are leaf first; ``process`` is the pid that the record tells, 0 where it is one
    process alone."""

    process: int
    frames: list[Frame]
    count: int

    @property
    def main(self) -> bool:
        """Of the main thread: it begins in a module, other threads in ``threading``."""
        root = self.frames[-1]
        return str(root[0]) == "<module>" or "_bootstrap" not in str(root[0])

    @property
    def worker(self) -> bool:
        """Of a DataLoader worker."""
        return classify_worker(self.frames) is not None


def is_it(head: str) -> bool:
    """Does a text begin like this log?"""
    first = next((line for line in head.splitlines() if line.strip()), "")
    found = _LINE.match(first)
    return found is not None and _FRAME.match(found["stack"].rsplit(";", 1)[-1]) is not None


def parse(text: str, name: str) -> list[Stack]:
    """The stacks, most frequent first; raises LogError where there is none."""
    made = []
    for line in text.splitlines():
        found = _LINE.match(line)
        if found:
            process, frames = _frames(found["stack"])
            if frames:
                made.append(Stack(process, frames, int(found["count"])))
    if not made:
        raise LogError(f"{name} holds no stack: py-spy record --format raw --idle --output FILE")
    return sorted(made, key=lambda stack: -stack.count)[:MOST]


def _frames(stack: str) -> tuple[int, list[Frame]]:
    process = 0
    frames: list[Frame] = []
    for part in stack.split(";"):
        of = _PROCESS.match(part)
        if of:
            process, frames = int(of[1]), []  # what stands above is the parent's
            continue
        found = _FRAME.match(part.strip())
        if found:
            frames.append([found["name"], found["file"], int(found["line"] or 0)])
    return process, frames[::-1]


def observations(stacks: list[Stack], rank: int, seconds: list[float]) -> Iterator[Observation]:
    """The stacks as if each second had been like the whole: the record tells no times."""
    mains = [s for s in stacks if s.main and not s.worker]
    total = sum(stack.count for stack in mains) or 1
    for t in seconds:
        for stack in stacks:
            pid = stack.process if stack.worker and stack.process else rank
            yield {
                "t": t, "kind": "stack", "pid": pid, "dt": stack.count / total, "tid": pid,
                "thread": "MainThread" if stack.main else "Thread", "main": stack.main,
                "active": True, "gil": False, "frames": stack.frames,
            }  # fmt: skip
