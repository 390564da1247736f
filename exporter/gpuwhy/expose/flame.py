"""``POST /api/v1/profile``: a flame graph of a rank in sight, as folded stacks."""

from __future__ import annotations

import json
import logging
import tempfile
import threading
from pathlib import Path
from typing import Any

from gpuwhy.evidence.profile import ProfileError, profile
from gpuwhy.expose import processes
from gpuwhy.expose.actions import RefusedError
from gpuwhy.expose.view import View

log = logging.getLogger(__name__)

LONGEST_S = 60.0
MOST_BYTES = 16 << 20
"""Of one answer."""


class GivenUpError(Exception):
    """Nobody waits for it any more."""


def parse(body: bytes, view: View) -> tuple[int, float]:
    """PID and seconds that a request asks for. Raises RefusedError for whatever is not a rank in
    sight: other processes of the host are nobody's business here."""
    if view.about.recorded:
        raise RefusedError(409, "a recorded job cannot be sampled")
    pid, seconds = _numbers(body)
    ranks = {p["pid"] for p in processes.listing(view)["processes"] if p.get("role") == "rank"}
    if pid not in ranks:
        raise RefusedError(404, f"{pid} is no rank of a training job in sight")
    return pid, seconds


def _numbers(body: bytes) -> tuple[int, float]:
    try:
        asked: Any = json.loads(body)
        pid, seconds = asked["pid"], asked.get("seconds", 10)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RefusedError(400, 'wanted: {"pid": PID, "seconds": 10}') from error
    if type(pid) is not int or type(seconds) not in (int, float) or not 1 <= seconds <= LONGEST_S:
        raise RefusedError(400, f"pid is a number; seconds is from 1 to {LONGEST_S:.0f}")
    return pid, float(seconds)


def take(pid: int, seconds: float, given_up: threading.Event, ended: threading.Event) -> bytes:
    """Sample for so long; ``frame;frame;frame count`` lines. Ends early, without an answer, when
    one of the events is set. Raises RefusedError where there is nothing to show, GivenUpError then.
    """

    def look(*_: float) -> None:
        if given_up.is_set() or ended.is_set():
            raise GivenUpError

    log.info("flame graph asked for", extra={"pid": pid, "seconds": seconds})
    try:
        with tempfile.TemporaryDirectory(prefix="gpuwhy-") as folder:
            path = Path(folder) / "stacks.raw"
            profile(pid, seconds, path, progress=look)
            return _bounded(path.read_bytes())
    except ProfileError as error:
        raise RefusedError(502, str(error)) from error
    except OSError as error:
        remedy = f"remedy: room and rights in {tempfile.gettempdir()}, or another TMPDIR"
        raise RefusedError(502, f"no stacks can be kept: {error.strerror}; {remedy}") from error


def _bounded(stacks: bytes) -> bytes:
    """Whole lines, up to a size: the most frequent stacks are kept."""
    if len(stacks) <= MOST_BYTES:
        return stacks
    kept, size = [], 0
    for line in sorted(stacks.splitlines(keepends=True), key=_count, reverse=True):
        size += len(line)
        if size > MOST_BYTES:
            break
        kept.append(line)
    return b"".join(kept)


def _count(line: bytes) -> int:
    count = line.rsplit(b" ", 1)[-1].strip()
    return int(count) if count.isdigit() else 0
