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
from collections.abc import Sequence
from pathlib import Path

from bench.accuracy_degraded import PAIR_STRIDE, STRIDE, judge_blind, pairs, sights
from bench.accuracy_found import Found
from bench.accuracy_jobs import Job, entries_of, jobs, void
from bench.accuracy_judge import MAIN, score
from bench.accuracy_page import page
from bench.accuracy_perturbed import judge_changed
from bench.accuracy_signals import Signals, measure
from bench.accuracy_times import attach_s, began, onset_s
from bench.perturb import CHANGES


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
    if not quick:
        void_ones = {job.variant for job, _ in found.left_out}
        kept = [(path, [j for j in ranks if j.variant not in void_ones]) for path, ranks in jobs()]
        _otherwise(found, kept)
    return found


def _otherwise(found: Found, kept: Sequence[tuple[Path, list[Job]]]) -> None:
    """The same recordings with less in sight, and as other cards and hosts would give them."""
    for into, some, stride in (
        (found.blind, sights(), STRIDE),
        (found.blind_pairs, pairs(), PAIR_STRIDE),
    ):
        for sight in some:
            parts = (judge_blind(sight, path, ranks, stride) for path, ranks in kept)
            into.append((sight, sum(parts, Counter())))
    for name, change in CHANGES.items():
        outcomes = (judge_changed(change, path, ranks) for path, ranks in kept)
        found.changed.append((name, sum(outcomes, Counter())))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    found = find(quick=options.quick)
    text = page(found)
    print(text)
    if options.write:
        options.write.write_text(text)
    if options.json:
        options.json.write_text(json.dumps({j.variant: dict(j.counts[MAIN]) for j in found.scored}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
