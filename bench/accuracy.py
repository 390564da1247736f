"""Replay every kept recording and hold the verdicts against the jobs' own truth.

    python -m bench.accuracy [--write docs/accuracy.md] [--json FILE]

A window is one rank over so many seconds. It is *right* if the causes named are those that its
truth asks for (``bench/truth.py``), an *abstention* if the answer is ``unknown``, else *wrong*. A
named cause of less than 15 % is neither asked for nor wrong. ``throttle`` at the default limit is
information. Intervals are bootstrapped over jobs, since windows of one job are alike.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import truth
from gpuwhy.ledger.entry import Entry
from gpuwhy.ledger.verdict import verdict
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "recordings"
LENGTHS = (10, 20)
DRAWS = 2000
VOID_LOSS = 0.15
"""A job planted as healthy that loses more than this by its own account is not healthy."""


@dataclass
class Job:
    """One rank of one variant: its truth, and how its windows were answered."""

    variant: str
    rank: truth.Rank
    held_back: bool
    counts: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    answers: Counter[str] = field(default_factory=Counter)
    errors: list[float] = field(default_factory=list)
    functions: Counter[str] = field(default_factory=Counter)

    @property
    def planted(self) -> str:
        return "+".join(self.rank.causes) or "none"


def held_back() -> tuple[dict[str, set[str]], set[str]]:
    """What heldout.txt lists by kind, and the variants of looked_at.txt."""
    listed: dict[str, set[str]] = defaultdict(set)
    for line in (HERE / "heldout.txt").read_text().splitlines():
        words = line.split()
        if words and not line.startswith("#"):
            listed[words[0]].add(words[1])
    looked = {
        line.split()[0]
        for line in (HERE / "looked_at.txt").read_text().splitlines()
        if line[:1].isalnum()
    }
    return listed, looked


def jobs() -> Iterable[tuple[Path, list[Job]]]:
    """Each recording with the ranks whose truth lies beside it."""
    listed, looked = held_back()
    for recording in sorted(RECORDINGS.glob("*.gpuwhy.gz")):
        found = []
        for variant in recording.name.removesuffix(".gpuwhy.gz").split("-"):
            for rank in truth.load(RECORDINGS / f"{variant}.truth.jsonl.gz").values():
                header = rank.header
                kept = any(header[kind] in names for kind, names in listed.items())
                found.append(Job(variant, rank, kept and variant not in looked))
        yield recording, found


def entries_of(recording: Path) -> list[Entry]:
    _, observations = read(recording)
    pipeline = Pipeline()
    pipeline.feed(observations)
    pipeline.finish()
    return pipeline.book.entries()


def score(job: Job, entries: Sequence[Entry]) -> None:
    """Answer every window of the job's rank, moved on by one second each time."""
    for length in LENGTHS:
        for i in range(len(entries) - length + 1):
            window = entries[i : i + length]
            t0, t1 = window[0].second.t, window[-1].second.t + 1
            answer = _entry(verdict(window), job.rank.header["pid"])
            job.counts[length][_judge(job, answer, t0, t1)] += 1
            if length == 20 and answer is not None:
                _note(job, answer, t0, t1)


def _entry(found: dict[str, Any], pid: int) -> dict[str, Any] | None:
    return next((g for g in found["gpus"] if g.get("pid") == pid), None)


def _judge(job: Job, answer: dict[str, Any] | None, t0: float, t1: float) -> str:
    if answer is None or answer["cause"] == "unknown":
        return "abstained"
    wanted = truth.expected(job.rank, t0, t1)
    named = {
        cause["cause"]
        for cause in answer["causes"]
        if not cause.get("information")
        and (cause["lost_ratio"] >= truth.NAMED or cause["cause"] in wanted.must | wanted.may)
    }
    if job.rank.causes == ("throttle",):
        named |= {c["cause"] for c in answer["causes"] if c["cause"] == "throttle"}
    return "right" if wanted.holds(named) else "wrong"


def _note(job: Job, answer: dict[str, Any], t0: float, t1: float) -> None:
    causes = [c for c in answer["causes"] if not c.get("information")]
    job.answers[causes[0]["cause"] if causes else answer["cause"].replace("throttle", "none")] += 1
    share = truth.lost(job.rank, t0, t1)
    if len(job.rank.causes) == 1 and share is not None and "stalled" not in job.rank.causes:
        found = answer["accounts"].get(job.rank.causes[0], 0.0)
        job.errors.append(abs(found - share))
    wanted = job.rank.header.get("functions")
    if wanted and causes and causes[0]["function"]:
        name = causes[0]["function"]["name"]
        job.functions["right" if any(w in name for w in wanted) else name] += 1


def void(job: Job, entries: Sequence[Entry]) -> float | None:
    """The loss, by its own account, of a job planted as healthy that is not."""
    if job.rank.causes or not job.rank.kernels:
        return None
    busy = truth.busy(job.rank, entries[0].second.t, entries[-1].second.t)
    if not busy:
        return None
    idle = 1 - max(v for k, v in busy.items() if k.endswith(".busy"))
    return idle if idle >= 2 * VOID_LOSS else None


# -- figures -------------------------------------------------------------------------------------


def rate(found: Sequence[Job], length: int, outcome: str = "right") -> float:
    total = sum(sum(j.counts[length].values()) for j in found)
    return sum(j.counts[length][outcome] for j in found) / total if total else float("nan")


def interval(found: Sequence[Job], length: int) -> tuple[float, float]:
    """95 % bootstrap interval of the rate of right answers, over jobs."""
    rng = random.Random(7)
    draws = sorted(rate(rng.choices(found, k=len(found)), length) for _ in range(DRAWS))
    return draws[int(0.025 * DRAWS)], draws[int(0.975 * DRAWS)]


def percentile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else float("nan")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    scored: list[Job] = []
    left_out: list[tuple[Job, float]] = []
    seconds = 0
    for recording, found in jobs():
        entries = entries_of(recording)
        seconds += len(entries)
        for job in found:
            loss = void(job, entries)
            if loss is not None:
                left_out.append((job, loss))
                continue
            score(job, entries)
            scored.append(job)
    from bench.accuracy_page import page

    text = page(scored, left_out, seconds)
    print(text)
    if options.write:
        options.write.write_text(text)
    if options.json:
        options.json.write_text(json.dumps({j.variant: dict(j.counts[20]) for j in scored}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
