"""Samples of a thread that gave no stack, or a torn one: the stack that they most likely missed.

Reading a thread that was not stopped fails only while it makes and drops frames: never while it
waits, hardly ever in one long call (in a loop of operations of some tens of microseconds 5 to 16 %
of its samples; of 1000 such, 98 % fell into the loop and not into the wait for data beside it).
Passed over, they would make waits seem longer than they are. So the time of such a sample goes to
the stack before or after it whose kind stays for the shorter time; where the thread stands still in
both, or last ran in one that is clearly more restless than either, to that one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

from gpuwhy.observe.observation import Frame

BRIDGE_S = 0.6
"""A hole up to this long is filled; what is longer stays a hole."""
_CLEARLY = 1.5  # times as restless: less is no difference
_TOUCHING_S = 1e-6
_DOUBT = 1.5  # gaps between samples that a stack may have stayed unseen
_HARDLY = 1e-6  # times a second: it runs, but not in this record

Stack = list[Frame]  # leaf first
Still = Callable[[Sequence[Frame]], bool]


@dataclass(frozen=True, slots=True)
class Piece:
    """From one change of a thread's stack to the next, seconds since the record began; no frames
    where the stack was torn."""

    start: float
    end: float
    frames: Stack | None


class Stretch(NamedTuple):
    """The time that a stack is credited with."""

    start: float
    end: float
    frames: Stack


def credit(
    pieces: Sequence[Piece],
    moments: Sequence[float],
    gap_s: float,
    still: Still,
    ran: Stack | None = None,
) -> list[Stretch]:
    """The pieces without holes. ``moments``: when a sample failed, seconds since the record began.
    ``gap_s``: seconds between two samples, failed ones included, on average. ``ran``: the last
    stack in which the thread ran before the record (in the record: the last of those about as
    restless as any)."""
    restless = _Restless(pieces, still, gap_s)
    running = (piece.frames for piece in pieces if restless(piece.frames))
    ran = ran or next(running, None)
    out: list[Stretch] = []
    joined = _joined(pieces)
    inside = [
        [at for at in moments if piece.frames is not None and piece.start <= at < piece.end]
        for piece in joined
    ]
    longest = _longest_missed(joined, inside, gap_s)
    for i, piece in enumerate(joined):
        before = joined[i - 1].frames if i else None
        after = joined[i + 1].frames if i + 1 < len(joined) else None
        if piece.frames is None:
            parts = _filled(piece, *restless.likely(before, after, ran))
        else:
            ran = piece.frames if restless(piece.frames) > restless(ran) / _CLEARLY else ran
            missed, _ = restless.likely(piece.frames, after, ran)
            whole = Stretch(piece.start, piece.end, piece.frames)
            parts = _interrupted(whole, inside[i], longest, missed or piece.frames)
        for part in parts:
            _append(out, part)
    return out


def _append(out: list[Stretch], part: Stretch) -> None:
    last = out[-1] if out else None
    if last and last.frames == part.frames and part.start - last.end < _TOUCHING_S:
        out[-1] = last._replace(end=part.end)
    elif part.end > part.start:
        out.append(part)


class _Restless:
    """How often a thread leaves the functions of a stack, times a second; 0 where it stands still.

    Lines do not count: a loop that calls nothing stays in its function. What was seen once, for a
    moment, is not known to be restless."""

    def __init__(self, pieces: Iterable[Piece], still: Still, gap_s: float) -> None:
        self._still, self._gap_s = still, gap_s
        self._stays: dict[Hashable, list[float]] = {}
        for path, group in groupby(pieces, key=lambda piece: _path(piece.frames)):
            stay = list(group)
            self._stays.setdefault(path, []).append(stay[-1].end - stay[0].start)

    def __call__(self, frames: Stack | None) -> float:
        if frames is None or self._still(frames):
            return 0.0
        stays = self._stays.get(_path(frames), [])
        return len(stays) / (sum(stays) + _DOUBT * self._gap_s) or _HARDLY

    def likely(
        self, before: Stack | None, after: Stack | None, ran: Stack | None
    ) -> tuple[Stack | None, Stack | None]:
        """What the first and the second half of a hole between two stacks most likely was."""
        left, right = self(before), self(after)
        if ran and self(ran) > _CLEARLY * max(left, right):
            return ran, ran
        if left > _CLEARLY * right or after is None:
            return before, before
        if right > _CLEARLY * left or before is None:
            return after, after
        return before, after


def _path(frames: Stack | None) -> Hashable:
    return None if frames is None else tuple((frame[0], frame[1]) for frame in frames)


def _filled(hole: Piece, left: Stack | None, right: Stack | None) -> Iterator[Stretch]:
    part = min(hole.end - hole.start, BRIDGE_S) / 2
    if left is not None:
        yield Stretch(hole.start, hole.start + part, left)
    if right is not None:
        yield Stretch(hole.end - part, hole.end, right)


def _longest_missed(
    pieces: Sequence[Piece], moments: Sequence[Sequence[float]], gap_s: float
) -> float:
    """The most that one failed sample is credited with, in seconds.

    A failed sample stands for the time until the next one. That is the next which failed or saw
    another stack, or one between them that saw the same stack as before, of which the trace says
    nothing. But samples come at random: together the failed ones stand for one mean gap each. So
    the longest of those times are cut, all at one length, at which the sum is right."""
    gaps = sorted(
        until - failed
        for piece, inside in zip(pieces, moments, strict=True)
        for failed, until in pairwise([*inside, piece.end])
    )
    left = gap_s * len(gaps)
    for i, gap in enumerate(gaps):
        if gap * (len(gaps) - i) >= left:
            return left / (len(gaps) - i)
        left -= gap
    return math.inf


def _interrupted(
    whole: Stretch, moments: Sequence[float], longest: float, missed: Stack
) -> Iterator[Stretch]:
    """Cut out of a stack the time of the samples that failed meanwhile."""
    start = whole.start
    for failed, until in pairwise([*moments, whole.end]):
        back = min(until, failed + longest)
        yield Stretch(start, failed, whole.frames)
        yield Stretch(failed, back, missed)
        start = back
    yield whole._replace(start=start)


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Holes one after the other are one."""
    out: list[Piece] = []
    for piece in pieces:
        if out and out[-1].frames is None and piece.frames is None:
            out[-1] = Piece(out[-1].start, piece.end, None)
        else:
            out.append(piece)
    return out
