"""Which jumps from line to line of gpuwhy.evidence an input takes, and the fewest inputs that take
as many (libFuzzer's own ``-merge`` does not work through Atheris)."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable

PART = "/gpuwhy/evidence/"

Jump = tuple[str, int, int]
"""File, line, next line."""


def jumps(run: Callable[[bytes], None], data: bytes) -> set[Jump]:
    """Those of one input."""
    found: set[Jump] = set()

    def trace(frame: types.FrameType, event: str, argument: object) -> object:
        file = frame.f_code.co_filename
        if PART not in file:
            return None
        last = frame.f_lineno

        def inside(frame: types.FrameType, event: str, argument: object) -> object:
            nonlocal last
            if event == "line":
                found.add((file, last, frame.f_lineno))
                last = frame.f_lineno
            return inside

        return inside

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        run(data)
    finally:
        sys.settrace(before)
    return found


def fewest(run: Callable[[bytes], None], inputs: Iterable[bytes]) -> tuple[list[bytes], int]:
    """Inputs, the shortest first, that each take a jump which those before do not; and how many
    jumps all of them take."""
    taken: set[Jump] = set()
    kept = []
    for data in sorted(inputs, key=lambda one: (len(one), one)):
        own = jumps(run, data)
        if not own <= taken:
            taken |= own
            kept.append(data)
    return kept, len(taken)
