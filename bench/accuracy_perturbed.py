"""The same jobs on other cards and hosts, by other names: the verdicts must be the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.accuracy_jobs import Job, replay
from bench.accuracy_judge import MAIN, answer_of, judge, windows
from bench.perturb import Change

from gpuwhy.observe.recording import read

STRIDE = 3
"""Every third window: neighbours are alike."""


def judge_changed(change: Change, recording: Path, found: Sequence[Job]) -> Counter[str]:
    """Windows of ``MAIN`` seconds, or of all that there is, by outcome."""
    entries = replay(change(read(recording)[1]))
    counts: Counter[str] = Counter()
    for job in found:
        for window, t0, t1 in list(windows(entries, min(MAIN, len(entries))))[::STRIDE]:
            answer = answer_of(job.pid, window)
            if answer is not None or not job.dead(t0, t1):
                counts[judge(job, answer, t0, t1)] += 1
    return counts
