"""What a rank had to share or was denied: SM time, CPU quota, cores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuwhy.observe.observation import Observation
from gpuwhy.signals.tracks import GpuTrack, Samples

SHARE_HOLD_S = 3.0
SHARE_SMOOTH_S = 3.0
CGROUP_SPAN_S = 3.0
"""Throttled periods are counted over this long: ten periods a second are few."""
GLANCE_SPAN_S = 5.0
GLANCES, GLANCED = 20, 0.2
"""A process's state is seen once a second: so many glances, from so long to either side, tell how
much of the time it was runnable within 0.1. From twice that on it is no chance."""

Process = Mapping[str, Any]


def sm_shares(track: GpuTrack, second: int) -> dict[int, float]:
    """SM share by PID: the mean of the reads within SHARE_SMOOTH_S, else the nearest one. The
    driver counts in whole percent of short stretches, and two jobs take turns."""
    near = track.shares.between(second - SHARE_SMOOTH_S, second + 1.0 + SHARE_SMOOTH_S)
    if not near:
        nearest = track.shares.around(second, SHARE_HOLD_S)
        near = [nearest] if nearest is not None else []
    totals: dict[int, float] = {}
    for read in near:
        for pid, share, *_ in read["shares"]:
            totals[int(pid)] = totals.get(int(pid), 0.0) + float(share) / len(near)
    return totals


def holders(track: GpuTrack, second: int) -> set[int] | None:
    """PIDs that hold memory on the GPU; None where the driver's process list was not seen."""
    listed = track.processes.around(second, SHARE_HOLD_S + 2.0)
    return None if listed is None else {int(p["pid"]) for p in listed["processes"]}


def throttled(group: Samples, second: int) -> float | None:
    """Throttled periods / periods of a cgroup around a second.

    0 where its files were read and no quota is set; None where the files were not seen. The sum
    ``throttled_s`` is over CPUs and says nothing of wall time, so it is not used.
    """
    now = group.around(second, CGROUP_SPAN_S)
    if now is None:
        return None
    if "nr_periods" not in now:
        return 0.0 if now.get("unlimited") else None
    before = group.last(second + 1.0 - CGROUP_SPAN_S + 1.0, CGROUP_SPAN_S) or next(iter(group))
    periods = int(now["nr_periods"]) - int(before.get("nr_periods") or 0)
    if periods <= 0 or "nr_periods" not in before:
        return 0.0
    return min(1.0, max(0.0, (int(now["nr_throttled"]) - int(before["nr_throttled"])) / periods))


def idle_cores(host: Samples, second: int) -> float | None:
    """Cores of the host that nobody used around a second; None where they were not seen twice."""
    near = host.between(second - CGROUP_SPAN_S, second + 1.0 + CGROUP_SPAN_S)
    counted = [(float(o["t"]), o["cpu_seconds"]["idle"]) for o in near if "cpu_seconds" in o]
    if len(counted) < 2:
        return None
    (t0, before), (t1, after) = counted[0], counted[-1]
    return max(0.0, (after - before) / (t1 - t0)) if t1 > t0 else None


def descendants(pid: int, table: Iterable[Process]) -> list[Process]:
    """Everything below a process in the table, nearest first."""
    children: dict[int, list[Process]] = {}
    for process in table:
        children.setdefault(int(process["ppid"]), []).append(process)
    out: list[Process] = []
    queue = [pid]
    while queue:
        for child in children.get(queue.pop(0), []):
            if child not in out:
                out.append(child)
                queue.append(int(child["pid"]))
    return out


def workers_of(rank: Process, table: Sequence[Process]) -> list[Process]:
    return [p for p in descendants(int(rank["pid"]), table) if p.get("role") == "worker"]


def allowed_cores(processes: Iterable[Process], group: Observation | None) -> int | None:
    """The fewest CPUs that any of the processes may run on."""
    counts = [int(p["affinity"]) for p in processes if p.get("affinity")]
    if group is not None and group.get("cpuset_cores"):
        counts.append(int(group["cpuset_cores"]))
    return min(counts) if counts else None


def unserved(
    tables: Samples, processes: Sequence[Process], second: int, glances: int = GLANCES
) -> float | None:
    """Share of the time that these were runnable without a CPU, where the kernel does not count it
    (no schedstat): seen in state R, less the CPU that they used. Within 0.02 of the kernel's own
    figure over the recorded jobs, quotas and shared cores among them. None where too few were seen.
    """
    wanted = {p["pid"] for p in processes}
    near = tables.between(second - GLANCE_SPAN_S, second + 1.0 + GLANCE_SPAN_S)
    seen = [p for table in near for p in table["processes"] if p["pid"] in wanted]
    seen = [p for p in seen if p.get("state") and p.get("cpu") is not None]
    if len(seen) < glances:
        return None
    runnable = sum(p["state"] == "R" for p in seen) / len(seen)
    used = sum(min(1.0, float(p.get("main_cpu", p["cpu"]))) for p in seen) / len(seen)
    share: float = runnable - used
    return share if share >= GLANCED else 0.0


def total_cpu(processes: Iterable[Process]) -> float | None:
    """Cores used by all of them together."""
    known = [float(p["cpu"]) for p in processes if p.get("cpu") is not None]
    return sum(known) if known else None
