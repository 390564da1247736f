"""Hold the verdicts of one rank's windows against its truth.

A window is *right* if the causes named are those that its truth asks for (``bench/truth.py``), an
*abstention* if the answer is ``unknown``, else *wrong*: also where a cause is named beside the
planted one that cost nothing. ``throttle`` at the default limit is information.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.accuracy_jobs import Job

from gpuwhy.ledger.entry import Entry
from gpuwhy.ledger.verdict import verdict

LENGTHS = (10, 20, 60)
MAIN = 20
"""The window, in seconds, of every figure that does not name another."""

Answer = dict[str, Any]


def score(job: Job, entries: Sequence[Entry]) -> None:
    """Answer every window of the job's rank, moved on by one second each time."""
    job.watched_s = len(entries)
    job.healthy_s = sum(not due(job, e.second.t, e.second.t + 1) for e in entries)
    for length in LENGTHS:
        alarmed = False
        for window, t0, t1 in windows(entries, length):
            answer = answer_of(job.pid, window)
            if answer is None and job.dead(t0, t1):
                continue
            outcome = judge(job, answer, t0, t1)
            job.counts[length][outcome] += 1
            if length == MAIN:
                alarm = outcome == "wrong" and not due(job, t0, t1)
                job.false_alarms += alarm and not alarmed
                alarmed = alarm
                if answer is not None:
                    _note(job, answer, t0, t1)


def windows(
    entries: Sequence[Entry], length: int
) -> Iterator[tuple[Sequence[Entry], float, float]]:
    """Every stretch of ``length`` entries with its first and last moment."""
    for i in range(len(entries) - length + 1):
        window = entries[i : i + length]
        yield window, window[0].second.t, window[-1].second.t + 1


def answer_of(pid: int, window: Sequence[Entry]) -> Answer | None:
    """The verdict on a process; None where it was not seen."""
    found: list[Answer] = verdict(window)["gpus"]
    return next((gpu for gpu in found if gpu.get("pid") == pid), None)


def due(job: Job, t0: float, t1: float) -> bool:
    """Whether any cause may rightly be named between ``t0`` and ``t1``."""
    wanted = job.expected(t0, t1)
    return bool(wanted.must | wanted.may)


def judge(job: Job, answer: Answer | None, t0: float, t1: float) -> str:
    """``right``, ``wrong`` or ``abstained``."""
    if answer is None or answer["cause"] == "unknown":
        return "abstained"
    wanted = job.expected(t0, t1)
    return "right" if wanted.holds(named(job, answer)) else "wrong"


def named(job: Job, answer: Answer) -> set[str]:
    """The causes that were named, without those that are information."""
    found = {cause["cause"] for cause in answer["causes"] if not cause.get("information")}
    if job.rank.causes == ("throttle",):
        found |= {c["cause"] for c in answer["causes"] if c["cause"] == "throttle"}
    return found


def _note(job: Job, answer: Answer, t0: float, t1: float) -> None:
    causes = [c for c in answer["causes"] if not c.get("information")]
    job.answers[causes[0]["cause"] if causes else answer["cause"].replace("throttle", "none")] += 1
    share = job.lost(t0, t1)
    if len(job.rank.causes) == 1 and share is not None and "stalled" not in job.rank.causes:
        found = answer["accounts"].get(job.rank.causes[0], 0.0)
        job.errors.append(abs(found - share))
    must = job.expected(t0, t1).must
    if len(must) > 1:
        job.both_due += 1
        job.both_named += must <= {c["cause"] for c in causes}
    wanted = job.rank.header.get("functions")
    if wanted and causes and causes[0]["function"]:
        name = causes[0]["function"]["name"]
        job.functions["right" if any(w in name for w in wanted) else name] += 1
