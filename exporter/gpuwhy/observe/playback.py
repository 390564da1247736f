"""Playing recordings: one, or several side by side as the GPUs of one recorded host.

Everything after ``observe/`` runs on it as on a live host.
"""

from __future__ import annotations

import heapq
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import RecordingError, read, read_header
from gpuwhy.observe.relabel import Names, Relabel

LATE_KINDS = frozenset(("ring", "stack"))
"""Kinds whose time stamps lie well before the moment in which they were observed."""

GAP_S = 1.0
"""Between the end of a recording and its next loop: two loops never share a second."""

RecordingPath = str | os.PathLike[str]
Made = tuple[float, Observation]
"""An observation and when it was made (Unix seconds)."""


def play(
    paths: Sequence[RecordingPath],
    speed: float | None = None,
    *,
    loop: bool = False,
    stop: threading.Event | None = None,
) -> Iterator[Observation]:
    """The observations of recordings, in the order in which they were made.

    ``speed`` None: as fast as possible, at the recorded times (several recordings begin together,
    at the time of the first). A number: that many times the true speed from now on; times are moved
    to now, and keep their distances. With ``loop`` each recording begins anew at its end, moved on
    in time: the same run, started again, its counters from their beginning. Ends when ``stop`` is
    set. Raises RecordingError as ``recording.read`` does, for the heads of all files at once.
    """
    stop = stop or threading.Event()
    names = Names()
    rewrites: list[Rewrite] = [Relabel(i, read_header(p), names) for i, p in enumerate(paths)]
    if len(paths) == 1:
        rewrites = [lambda observation: [observation]]
    begin = time.time() if speed is not None else None
    if begin is None and (loop or len(paths) > 1):
        begin = next((made for made, _ in _made(paths[0])), None)
    streams = [
        _stream(path, rewrite, begin, loop) for path, rewrite in zip(paths, rewrites, strict=True)
    ]
    merged = heapq.merge(*streams, key=lambda made: made[0])
    return _paced(merged, speed, begin or 0.0, stop)


Rewrite = Callable[[Observation], list[Observation]]


def _paced(
    merged: Iterable[Made], speed: float | None, begin: float, stop: threading.Event
) -> Iterator[Observation]:
    started = time.monotonic()
    for made, observation in merged:
        if speed is not None:
            stop.wait(max(0.0, started + (made - begin) / speed - time.monotonic()))
        if stop.is_set():
            return
        yield observation


def _stream(
    path: RecordingPath, rewrite: Rewrite, begin: float | None, loop: bool
) -> Iterator[Made]:
    """One recording, moved in time so that it begins at ``begin`` (None: as it was)."""
    again = False
    while True:
        shift = last = None
        for made, observation in _made(path):
            if shift is None:
                # By whole seconds, so that what was within a second stays within one.
                shift = 0 if begin is None else math.ceil(begin - made)
                since = made + shift
            last = made + shift
            moved: Observation | None = _moved(observation, shift)
            if again and moved is not None:
                moved = _since(moved, since)
            for renamed in rewrite(moved) if moved is not None else ():
                yield last, renamed
        if not loop:
            return
        if last is None:
            raise RecordingError(f"{path} holds no observations: it cannot be looped")
        begin, again = last + GAP_S, True


def _made(path: RecordingPath) -> Iterator[Made]:
    """Observations with the moment in which they were made: the newest time so far."""
    newest: float | None = None
    early: list[Observation] = []
    for observation in read(path)[1]:
        if observation["kind"] not in LATE_KINDS:
            newest = max(newest or 0.0, float(observation["t"]))
        if newest is None:
            early.append(observation)
            continue
        for one in (*early, observation):
            yield newest, one
        early.clear()


def _moved(observation: Observation, shift: int) -> Observation:
    """The same observation ``shift`` seconds later; starts of processes move along."""
    if shift == 0:
        return observation
    moved = {**observation, "t": observation["t"] + shift}
    if observation["kind"] == "processes":
        moved["processes"] = [
            {**process, "start": process["start"] + shift} if "start" in process else process
            for process in observation["processes"]
        ]
    return moved


def _since(observation: Observation, since: float) -> Observation | None:
    """Of a late kind only what is of this loop: the rings reach back into the one before."""
    t = float(observation["t"])
    if observation["kind"] not in LATE_KINDS or t >= since:
        return observation
    if observation["kind"] == "stack":
        return None
    step = float(observation["dt"])
    skipped = math.ceil((since - t) / step)
    values = observation["values"][skipped:]
    return {**observation, "t": t + skipped * step, "values": values} if values else None
