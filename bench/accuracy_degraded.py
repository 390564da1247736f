"""The same recordings with sources taken away: right, or ``unknown`` naming what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
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


STRIDE, PAIR_STRIDE = 3, 6
"""Every third window: neighbours are alike, and there are many sights; more yet of two sources."""


@dataclass(frozen=True)
class Sight:
    """One way of seeing less: without these kinds, and without these fields of others ("gpm.sm").
    ``signals`` are those of which one must be named where the answer is ``unknown``."""

    name: str
    without: frozenset[str]
    signals: frozenset[str]
    no_utilization: bool = False
    fields: frozenset[str] = frozenset()

    def __and__(self, other: Sight) -> Sight:
        return Sight(
            f"{self.name}, {other.name}",
            self.without | other.without,
            self.signals | other.signals,
            self.no_utilization or other.no_utilization,
            self.fields | other.fields,
        )


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


def pairs() -> list[Sight]:
    """Every two of the sources and of the figures that verdicts lean on."""

    def part(name: str, signals: str, *kinds: str, fields: str = "", blank: bool = False) -> Sight:
        taken = frozenset(fields.split())
        return Sight(name, frozenset(kinds), frozenset(signals.split()), blank, taken)

    cpu = "cgroup processes evidence"
    parts = [
        part("GPM", "gpm", "gpm"),
        part("SM activity", "gpm", fields="gpm.sm gpm.occupancy"),
        part("PCIe", "gpm", fields="gpm.pcie_tx gpm.pcie_rx"),
        part("stacks", "stacks", "stack", "locals"),
        part("source text", "gpm evidence", fields="stack.call"),
        part("process list", "gpu_processes", "gpu_processes"),
        part("SM share", "sm_share", "sm_share"),
        part("cgroup files", cpu, "cgroup"),
        part("schedstat", cpu, fields="processes.run_delay"),
        part("affinity", cpu, fields="processes.affinity"),
        part("NCCL", "gpm stacks nccl_ras", "nccl"),
        part("limits", "nvml", "gpu_limits"),
        part("utilisation", "nvml utilization_ring", blank=True),
    ]
    nested = ("GPM", "SM activity", "PCIe")
    return [a & b for a, b in combinations(parts, 2) if not {a.name, b.name} <= set(nested)]


def seen(sight: Sight, observations: Iterable[Observation]) -> Iterator[Observation]:
    """The observations that are left."""
    for observation in observations:
        if observation["kind"] in sight.without:
            continue
        if sight.no_utilization and observation.get("ring", "power") != "power":
            continue
        if sight.no_utilization and observation["kind"] == "gpu":
            observation = _without(observation, ("utilization", "memory_utilization"))
        yield _fewer_fields(observation, sight.fields) if sight.fields else observation


def _fewer_fields(observation: Observation, fields: frozenset[str]) -> Observation:
    kind = observation["kind"]
    names = [field.partition(".")[2] for field in fields if field.startswith(f"{kind}.")]
    if not names:
        return observation
    if kind == "processes":
        return {**observation, "processes": [_without(p, names) for p in observation["processes"]]}
    if kind == "stack":
        return {**observation, "frames": [frame[:3] for frame in observation["frames"]]}
    return _without(observation, names)


def _without(row: Observation, names: Sequence[str]) -> Observation:
    return {key: value for key, value in row.items() if key not in names}


def judge_blind(
    sight: Sight, recording: Path, found: Sequence[Job], stride: int = STRIDE
) -> Counter[str]:
    """Windows of ``MAIN`` seconds by outcome; ``silent`` are answers of ``unknown`` that do not
    name a signal that was taken away."""
    entries = replay(seen(sight, read(recording)[1]))
    counts: Counter[str] = Counter()
    for job in found:
        for window, t0, t1 in list(windows(entries, MAIN))[::stride]:
            answer = answer_of(job.pid, window)
            outcome = judge(job, answer, t0, t1)
            if outcome == "abstained" and answer is not None:
                named = {blind["signal"] for blind in answer["cannot_see"]}
                outcome = "abstained" if named & sight.signals else "silent"
            counts[outcome] += 1
    return counts
