"""The kept recordings, the ranks whose truth lies beside them, and their replay."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from bench import truth
from gpuwhy.ledger.entry import Entry
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "recordings"
VOID_LOSS = 0.30
"""A job planted as healthy that loses more than this by its own account is not healthy."""


@dataclass
class Job:
    """One rank of one variant: its truth, and how its windows were answered."""

    variant: str
    rank: truth.Rank
    held_back: bool
    step_s: float | None = None  # a step without the fault, where the job without it was recorded
    counts: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    answers: Counter[str] = field(default_factory=Counter)
    errors: list[float] = field(default_factory=list)
    functions: Counter[str] = field(default_factory=Counter)
    watched_s: int = 0
    healthy_s: int = 0
    false_alarms: int = 0
    both_due: int = 0
    both_named: int = 0
    attach_s: float | None = None
    onset_s: float | None = None

    @property
    def planted(self) -> str:
        return "+".join(self.rank.causes) or "none"

    def lost(self, t0: float, t1: float) -> float | None:
        return truth.lost(self.rank, t0, t1, self.step_s)

    def expected(self, t0: float, t1: float) -> truth.Expected:
        return truth.expected(self.rank, t0, t1, self.step_s)

    def dead(self, t0: float, t1: float) -> bool:
        """A process that was killed before the middle of the window is out of sight by right."""
        steps = self.rank.steps
        return not self.rank.ended and bool(steps) and float(steps[-1]["t"]) < (t0 + t1) / 2

    @property
    def pid(self) -> int:
        return int(self.rank.header["pid"])


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
            for rank in ranks_of(variant).values():
                kept = any(rank.header[kind] in names for kind, names in listed.items())
                found.append(Job(variant, rank, kept and variant not in looked, _pace(rank)))
        yield recording, found


@lru_cache(maxsize=8)
def ranks_of(variant: str) -> dict[int, truth.Rank]:
    """What a variant wrote of itself; empty where it was not recorded."""
    path = RECORDINGS / f"{variant}.truth.jsonl.gz"
    return truth.load(path) if path.exists() else {}


def _pace(rank: truth.Rank) -> float | None:
    """The pace of the same job without the fault; a job bound by its launches is held against its
    kernels instead."""
    healthy = ranks_of(rank.header.get("baseline") or "").get(0)
    return truth.pace_as(rank, healthy) if healthy is not None else None


def entries_of(recording: Path) -> list[Entry]:
    return replay(read(recording)[1])


def replay(observations: Iterable[Observation]) -> list[Entry]:
    """The whole way from observations to the seconds in the book."""
    pipeline = Pipeline()
    pipeline.feed(observations)
    pipeline.finish()
    return pipeline.book.entries()


def void(job: Job, entries: Sequence[Entry]) -> float | None:
    """The loss, by its own account, of a job planted as healthy that is not."""
    if job.rank.causes or not job.rank.kernels:
        return None
    busy = truth.busy(job.rank, entries[0].second.t, entries[-1].second.t)
    if not busy:
        return None
    idle = 1 - max(v for k, v in busy.items() if k.endswith(".busy"))
    return idle if idle >= VOID_LOSS else None
