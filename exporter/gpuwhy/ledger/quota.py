"""Was the job kept off the CPU, by which limit, and how much idle time that may explain.

The evidence is the kernel's: periods of a cgroup that were throttled, and the share of time that a
thread was runnable without running (``/proc/PID/schedstat``). Neither is seen in a stack, where a
throttled worker looks like a slow one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuwhy.ledger import thresholds as th
from gpuwhy.signals.row import RunSignals

STARVED_PHASES = ("data_wait", "data_inline", "data_sampler")
"""What the rank does while its workers make no headway."""


@dataclass(frozen=True, slots=True)
class Denied:
    """The limit that kept the job from running, and the most idle time it may explain: of the
    workers alone, what the rank waited for their batches."""

    reason: str
    most: float
    workers_only: bool = False


def denied(run: RunSignals) -> Denied | None:
    """The limit, the surest evidence first; None where nothing kept the job off the CPU.

    A main thread that had no CPU delays everything; workers that had none delay batches only.
    """
    if run.throttled is not None and run.throttled >= th.QUOTA_THROTTLED:
        return Denied("cpu-quota", 1.0)
    waited = run.run_delay or 0.0
    if waited >= th.STARVED_DELAY:
        return Denied(_limit(run), 1.0)
    noticed = waited >= th.NOTICED_DELAY
    if workers_denied(run):
        return Denied(_limit(run), 1.0) if noticed else Denied(_limit(run), _data(run), True)
    return Denied(_limit(run), waited) if noticed else None


def workers_denied(run: RunSignals) -> bool:
    """Were the workers kept off the CPU? Where the kernel does not say how long they waited for
    one: they may use fewer cores than there are of them, and use those up. (Workers on different
    single cores use more than one core in all.)"""
    if run.worker_delay is not None:
        return run.worker_delay >= th.STARVED_DELAY
    cores, host, workers = run.worker_cores, run.host_cores, run.workers or 0
    if not cores or not host or cores >= host or workers <= cores or run.worker_cpu is None:
        return False
    return th.PINNED_USE[0] * cores <= run.worker_cpu * workers <= th.PINNED_USE[1] * cores


def untold(run: RunSignals) -> bool:
    """Workers that share fewer cores than there are of them, of which no figure says whether these
    sufficed."""
    cores, host, workers = run.worker_cores, run.host_cores, run.workers or 0
    few = cores is not None and host is not None and cores < host and workers > cores
    return few and run.worker_delay is None and run.worker_cpu is None


def _data(run: RunSignals) -> float:
    if run.phases is None:
        return 1.0
    return sum(run.phases.get(phase, 0.0) for phase in STARVED_PHASES)


def without_starved(phases: Mapping[str, float], taken: float) -> Mapping[str, float]:
    """The host's phases without so much of its waits for workers."""
    left = dict(phases)
    for phase in STARVED_PHASES:
        part = min(taken, left.get(phase, 0.0))
        left[phase] = left.get(phase, 0.0) - part
        taken -= part
    return left


def _limit(run: RunSignals) -> str:
    """Which limit it was that a thread waited for a CPU: the cores that it may use, a quota that
    is out of sight (there were free cores that it might have used), or a host that is full."""
    cores, host = _cores(run), run.host_cores
    few = cores is not None and host is not None and cores < host
    used = (run.cpu or 0.0) + (run.children_cpu or 0.0)
    crowded = cores is not None and (run.workers or 0) >= cores
    if few and (crowded or used >= th.PINNED_USE[0] * (cores or 0)):
        return "affinity"
    free = run.host_idle is not None and host and run.host_idle >= th.FREE_CORES * host
    if free and not run.unlimited:
        return "cpu-quota"
    return "affinity" if few and (free or run.host_idle is None) else "host-cpu"


def _cores(run: RunSignals) -> int | None:
    known = [c for c in (run.allowed_cores, run.worker_cores) if c is not None]
    return min(known) if known else None
