"""Who holds a GPU: one series a process, the only place for PIDs, pods and command lines."""

from __future__ import annotations

from gpuwhy.expose.metric import GPU, RUN, Metric

MOST = 16
"""Processes exposed per GPU."""

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
    MOST,
    "GPU",
    "A process that holds the GPU, or a rank without a GPU in sight. role: rank, or tenant for a "
    "process that is no training rank. Command lines are trimmed and secrets in them masked.",
)
START = Metric(
    "gpuwhy_process_start_timestamp_seconds",
    "gauge",
    (*RUN, "pid"),
    MOST,
    "GPU",
    "When the process started, Unix time.",
)
MEMORY = Metric(
    "gpuwhy_process_gpu_memory_bytes",
    "gauge",
    (*GPU, "pid"),
    MOST,
    "GPU",
    "Device memory that the process holds.",
)

METRICS = (INFO, START, MEMORY)
