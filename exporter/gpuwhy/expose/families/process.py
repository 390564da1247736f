"""Who holds a GPU: one series a process, the only place for PIDs, pods and command lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuwhy.expose.limits import PROCESSES_PER_GPU
from gpuwhy.expose.metric import GPU, RUN, Metric, Samples
from gpuwhy.expose.view import View

HOLDERS = ("rank", "tenant")
"""Roles that are exposed; workers and children are counted elsewhere."""

INFO = Metric(
    "gpuwhy_process_info",
    "info",
    (
        *RUN,
        "pid",
        "role",
        "user",
        "container",
        "pod",
        "namespace",
        "script",
        "command",
        "python",
    ),
    PROCESSES_PER_GPU,
    "GPU",
    "A process that holds the GPU, or a rank without a GPU in sight. role: rank, or tenant for a "
    "process that is no training rank. Command lines are trimmed and secrets in them masked.",
)
START = Metric(
    "gpuwhy_process_start_timestamp_seconds",
    "gauge",
    (*RUN, "pid"),
    PROCESSES_PER_GPU,
    "GPU",
    "When the process started, Unix time.",
)
MEMORY = Metric(
    "gpuwhy_process_gpu_memory_bytes",
    "gauge",
    (*GPU, "pid"),
    PROCESSES_PER_GPU,
    "GPU",
    "Device memory that the process holds.",
)

METRICS = (INFO, START, MEMORY)


def collect(view: View) -> Samples:
    """The processes of the last look at the process table that hold a GPU in sight."""
    for uuid, process in holders(view):
        run = process.get("run")
        on = (*view.gpu(uuid), str(run or ""), _text(process.get("rank")))
        pid = str(process["pid"])
        told = (_text(process.get(field)) for field in INFO.labels[len(RUN) + 1 :])
        yield INFO, (*on, pid, *told), 1
        yield START, (*on, pid), process.get("start")
    for uuid in view.gpus:
        for held in view.fact("gpu_processes", uuid).get("processes", ()):
            yield MEMORY, (*view.gpu(uuid), str(held["pid"])), held.get("memory")


def holders(view: View) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """(uuid or None, process) for each rank and tenant, once for each GPU that it holds."""
    for process in view.fact("processes").get("processes", ()):
        if process.get("role") in HOLDERS:
            in_sight = [uuid for uuid in process.get("gpus", ()) if uuid in view.gpus]
            for uuid in in_sight or [None]:
                yield uuid, process


def _text(value: object) -> str:
    return "" if value is None else str(value)
