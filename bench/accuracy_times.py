"""How soon the verdict is right: from attaching, cold, and from the onset of a fault.

Both follow the way of a live exporter: observations arrive in order, and a second counts once the
watermark has passed it, so the delay of the watermark is in every figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.accuracy_jobs import Job
from bench.accuracy_judge import MAIN, answer_of, judge

from bench import truth
from gpuwhy.ledger.entry import Entry
from gpuwhy.observe.recording import read
from gpuwhy.signals.timeline import LAG_S

STEADY_S = 5
"""An answer counts once it has stayed right for so many seconds more."""
ONSET_WINDOW = 10
"""Seconds of the window in which an onset is looked for."""
MARGIN_S = 5.0
"""A fault sets in during a recording if so much of it came before."""


def began(recording: Path) -> float:
    """When ``gpuwhy record`` was started, to the second."""
    header: dict[str, Any] = read(recording)[0]
    return datetime.fromisoformat(header["created"].replace("Z", "+00:00")).timestamp()


def known_at(entry: Entry) -> float:
    """When the second was complete in a live exporter."""
    return entry.second.t + 1 + LAG_S


def attach_s(job: Job, entries: Sequence[Entry], start: float) -> float | None:
    """Seconds from the command's start to a verdict that is right and stays so; None if never.

    The verdict is that of ``serve``: over what has been seen, at most the last ``MAIN`` seconds.
    """
    right = []
    for i in range(len(entries)):
        window = entries[max(0, i + 1 - MAIN) : i + 1]
        answer = answer_of(job.pid, window)
        t0, t1 = window[0].second.t, window[-1].second.t + 1
        right.append(judge(job, answer, t0, t1) == "right")
    first = _steady(right)
    return None if first is None else known_at(entries[first]) - start


def onset_s(job: Job, entries: Sequence[Entry]) -> float | None:
    """Seconds from a fault that sets in while we watch to the verdict that names it, and only it;
    None where none sets in, infinity where it is not named."""
    onset = _onset(job)
    if onset is None or not entries[0].second.t + MARGIN_S < onset < entries[-1].second.t:
        return None
    wanted = set(job.rank.causes)
    right = []
    for i in range(len(entries)):
        answer = answer_of(job.pid, entries[max(0, i + 1 - ONSET_WINDOW) : i + 1])
        named = {c["cause"] for c in answer["causes"] if not c.get("information")} if answer else {}
        right.append(entries[i].second.t + 1 > onset and named == wanted)
    first = _steady(right)
    return float("inf") if first is None else known_at(entries[first]) - onset


def _onset(job: Job) -> float | None:
    """When the fault sets in; of a job that stands still, when its last step ended."""
    rank: truth.Rank = job.rank
    if "stalled" in rank.causes:
        return float(rank.steps[-1]["t"]) if rank.steps and not rank.ended else None
    return rank.fault_from if rank.causes else None


def _steady(right: Sequence[bool]) -> int | None:
    """The first index from which the answers are right for STEADY_S more (or to the end)."""
    for i, good in enumerate(right):
        if good and all(right[i : i + STEADY_S + 1]):
            return i
    return None
