"""Replay every kept recording and hold the verdicts and signals against the jobs' own truth.

    python -m bench.accuracy [--write docs/accuracy.md] [--json FILE] [--quick]

A window is one rank over so many seconds; how it is judged stands in ``accuracy_judge``. Intervals
are bootstrapped over jobs, since windows of one job are alike. ``--quick`` leaves out the table of
degraded sight, which replays everything once more for each of its rows.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bench.accuracy_degraded import Sight, judge_blind, sights
from bench.accuracy_jobs import Job, entries_of, jobs, void
from bench.accuracy_judge import MAIN, score
from bench.accuracy_page import page
from bench.accuracy_signals import Signals, measure
from bench.accuracy_times import attach_s, began, onset_s


@dataclass
class Found:
    """Everything that the page tells of."""

    scored: list[Job] = field(default_factory=list)
    left_out: list[tuple[Job, float]] = field(default_factory=list)
    signals: dict[str, Signals] = field(default_factory=dict)
    blind: list[tuple[Sight, Counter[str]]] = field(default_factory=list)


def find(*, quick: bool = False) -> Found:
    """Replay and judge all recordings."""
    found = Found()
    for recording, ranks in jobs():
        entries = entries_of(recording)
        start = began(recording)
        for job in ranks:
            loss = void(job, entries)
            if loss is not None:
                found.left_out.append((job, loss))
                continue
            score(job, entries)
            job.attach_s = attach_s(job, entries, start)
            job.onset_s = onset_s(job, entries)
            framework = str(job.rank.header["framework"])
            found.signals.setdefault(framework, Signals()).add(measure(job, entries))
            found.scored.append(job)
    void_ones = {job.variant for job, _ in found.left_out}
    for sight in [] if quick else sights():
        counts: Counter[str] = Counter()
        for recording, ranks in jobs():
            kept = [job for job in ranks if job.variant not in void_ones]
            counts += judge_blind(sight, recording, kept)
        found.blind.append((sight, counts))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    found = find(quick=options.quick)
    text = page(found.scored, found.left_out, found.signals, found.blind)
    print(text)
    if options.write:
        options.write.write_text(text)
    if options.json:
        options.json.write_text(json.dumps({j.variant: dict(j.counts[MAIN]) for j in found.scored}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
