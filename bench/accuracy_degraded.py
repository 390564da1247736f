"""The same recordings with sources taken away: right, or ``unknown`` naming what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.accuracy_jobs import Job, replay
from bench.accuracy_judge import MAIN, answer_of, judge, windows

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import read

SAMPLES = frozenset(("gpu",))
RINGS = frozenset(("ring",))
STACKS = frozenset(("stack", "locals"))
HOLDERS = frozenset(("gpu_processes", "sm_share"))
LIMITS = frozenset(("cgroup",))
GPM = frozenset(("gpm",))
RAS = frozenset(("nccl",))
DEVICE = frozenset(("gpu_info", "gpu_limits", "gpu_reasons", "gpu_health"))


STRIDE = 3
"""Every third window: neighbours are alike, and there are many sights."""


@dataclass(frozen=True)
class Sight:
    """One way of seeing less; ``signals`` are those of which one must be named where the answer is
    ``unknown``."""

    name: str
    without: frozenset[str]
    signals: frozenset[str]
    no_utilization: bool = False


def sights() -> list[Sight]:
    """What is taken away, one at a time and together, down to a single source."""

    def sight(name: str, *kinds: frozenset[str], signals: str, blank: bool = False) -> Sight:
        return Sight(name, frozenset().union(*kinds), frozenset(signals.split()), blank)

    few = "gpm utilization_ring power_ring stacks cgroup gpu_processes sm_share nvml evidence"
    return [
        sight("no GPM", GPM, signals="gpm"),
        sight("no rings", RINGS, signals="power_ring utilization_ring"),
        sight("no GPM, no rings", GPM, RINGS, signals="gpm utilization_ring power_ring"),
        sight("no process list, no SM share", HOLDERS, signals="gpu_processes sm_share"),
        sight("utilisation N/A", signals="nvml utilization_ring", blank=True),
        sight("utilisation N/A, no GPM", GPM, signals="nvml gpm utilization_ring", blank=True),
        sight("py-spy refused", STACKS, signals="stacks"),
        sight("no cgroup files", LIMITS, signals="cgroup"),
        sight("no GPM, no process list", GPM, HOLDERS, signals="gpm gpu_processes sm_share"),
        sight("no GPM, no cgroup files", GPM, LIMITS, signals="gpm cgroup"),
        sight("no GPM, py-spy refused", GPM, STACKS, signals="gpm stacks"),
        sight("only NVML samples", GPM, RINGS, STACKS, HOLDERS, LIMITS, RAS, signals=few),
        sight("only GPM", SAMPLES, RINGS, STACKS, HOLDERS, LIMITS, RAS, signals=few),
        sight("only rings", SAMPLES, GPM, STACKS, HOLDERS, LIMITS, RAS, signals=few),
        sight("only stacks", SAMPLES, GPM, RINGS, HOLDERS, DEVICE, LIMITS, RAS, signals=few),
    ]


def seen(sight: Sight, observations: Iterable[Observation]) -> Iterator[Observation]:
    """The observations that are left."""
    for observation in observations:
        if observation["kind"] in sight.without:
            continue
        if sight.no_utilization and observation.get("ring", "power") != "power":
            continue
        if sight.no_utilization and observation["kind"] == "gpu":
            hidden = ("utilization", "memory_utilization")
            observation = {k: v for k, v in observation.items() if k not in hidden}
        yield observation


def judge_blind(sight: Sight, recording: Path, found: Sequence[Job]) -> Counter[str]:
    """Windows of ``MAIN`` seconds by outcome; ``silent`` are answers of ``unknown`` that do not
    name a signal that was taken away."""
    entries = replay(seen(sight, read(recording)[1]))
    counts: Counter[str] = Counter()
    for job in found:
        for window, t0, t1 in list(windows(entries, MAIN))[::STRIDE]:
            answer = answer_of(job.pid, window)
            outcome = judge(job, answer, t0, t1)
            if outcome == "abstained" and answer is not None:
                named = {blind["signal"] for blind in answer["cannot_see"]}
                outcome = "abstained" if named & sight.signals else "silent"
            counts[outcome] += 1
    return counts
