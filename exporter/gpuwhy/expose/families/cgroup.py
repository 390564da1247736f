"""The control group of a rank: its memory and limit, kills for want of memory, and pressure."""

from __future__ import annotations

from gpuwhy.expose.families.process import holders
from gpuwhy.expose.metric import RUN, Metric, Samples, on_run
from gpuwhy.expose.view import View

OOM_KILLS = Metric(
    "gpuwhy_run_oom_kills_total",
    "counter",
    RUN,
    1,
    "GPU and run",
    "Processes of the rank's cgroup that the kernel killed for want of memory.",
)
MEMORY_HIGH = Metric(
    "gpuwhy_run_memory_high_events_total",
    "counter",
    RUN,
    1,
    "GPU and run",
    "Times that processes of the rank's cgroup were held back because it was over memory.high "
    "(cgroup v2).",
)
FROM_GROUP = (
    (
        on_run(
            "gpuwhy_run_memory_bytes",
            "Memory that the rank's cgroup uses, page cache included; of the group above it that "
            "holds the limit, if one does. Ranks of one group tell the same.",
        ),
        "memory_current",
    ),
    (
        on_run(
            "gpuwhy_run_memory_limit_bytes",
            "Lowest memory limit of the rank's cgroup and those above it; absent without one.",
        ),
        "memory_max",
    ),
    (OOM_KILLS, "oom_kills"),
    (MEMORY_HIGH, "memory_high_events"),
)
"""Metrics that are a field of ``cgroup``."""

PRESSURE = Metric(
    "gpuwhy_run_pressure_seconds_total",
    "counter",
    (*RUN, "resource", "tasks"),
    6,
    "GPU and run",
    "Time in which tasks of the rank's cgroup waited (PSI, cgroup v2). resource: cpu, memory, io; "
    "tasks: some, full.",
)
METRICS = (*(metric for metric, _ in FROM_GROUP), PRESSURE)


def collect(view: View) -> Samples:
    """The group of each rank in the last look at the process table."""
    for uuid, process in holders(view):
        if process.get("role") != "rank":
            continue
        group = view.fact("cgroup", str(process.get("cgroup")))
        labels = view.run((uuid, str(process.get("run") or ""), process.get("rank")))
        for metric, field in FROM_GROUP:
            yield metric, labels, group.get(field)
        for name, seconds in group.get("psi", {}).items():
            resource, _, tasks = name.partition("_")
            yield PRESSURE, (*labels, resource, tasks), seconds
