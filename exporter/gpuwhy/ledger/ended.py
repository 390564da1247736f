"""Runs that are gone before the end of the window: the verdict is of the time in which they ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuwhy.ledger.entry import Entry

GONE_S = 5
"""Out of sight for so long at the end of the window: more than a source lags."""

Verdict = dict[str, Any]


def told(verdict: Verdict, entries: Sequence[Entry]) -> Verdict:
    """The verdict with what ended, and when, in ``cannot_see``."""
    seen: dict[tuple[Any, ...], list[int]] = {}
    for entry in entries:
        for row in entry.second.rows:
            for run in row.runs:
                key = (row.gpu.uuid if row.gpu else None, run.run, run.rank, run.pid)
                seen.setdefault(key, []).append(entry.second.t)
    end = entries[-1].second.t
    gpus = [_of(entry, seen.get(_key(entry), []), end) for entry in verdict["gpus"]]
    return {**verdict, "gpus": gpus}


def _key(entry: Verdict) -> tuple[Any, ...]:
    return entry["uuid"], entry["run"], entry["rank"], entry.get("pid")


def _of(entry: Verdict, seconds: Sequence[int], end: int) -> Verdict:
    if not seconds or end - seconds[-1] < GONE_S:
        return entry
    what = "the job" if entry["uuid"] is None else "the job, or its hold on this GPU,"
    why = f"{what} ended {end - seconds[-1]} s before the end: seen for {len(seconds)} s"
    ended = {"signal": "processes", "why": why, "remedy": "none: this is of the time before"}
    return {**entry, "cannot_see": [*entry["cannot_see"], ended]}
