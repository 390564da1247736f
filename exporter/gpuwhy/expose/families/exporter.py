"""The exporter itself: its version, cost, lag, series, and failures."""

from __future__ import annotations

from gpuwhy.expose.metric import Metric, on_host


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(name, "counter", labels, 1, "family" if labels else "host", text)


BUILD = Metric(
    "gpuwhy_build_info", "info", ("version", "python"), 1, "host", "Version of the exporter."
)
RECORDED = on_host(
    "gpuwhy_recorded", "1 if everything here was recorded earlier and is played back, else 0."
)
SERIES = on_host("gpuwhy_series", "Series in this exposition.")
LIMIT = Metric(
    "gpuwhy_series_limit",
    "gauge",
    ("kind",),
    1,
    "family",
    "Bound on what multiplies series. kind: gpus, runs_per_gpu, processes_per_gpu, "
    "functions_per_rank.",
)
DROPPED = _counter(
    "gpuwhy_series_dropped_total",
    "Series left out of an exposition because a bound was reached, by metric family.",
    "family",
)
FAMILY_FAILURES = _counter(
    "gpuwhy_scrape_family_failures_total",
    "Scrapes from which this family was left out because it failed.",
    "family",
)
FAMILY_DURATION = Metric(
    "gpuwhy_scrape_family_duration_seconds",
    "gauge",
    ("family",),
    1,
    "family",
    "Time that collecting this family took.",
)
LAST_SECOND = on_host(
    "gpuwhy_last_second_timestamp_seconds",
    "The last complete second, which the values of this exposition describe, Unix time.",
)
LAG = on_host("gpuwhy_lag_seconds", "How far the values of this exposition are behind the clock.")
OVERHEAD_LIMIT = on_host(
    "gpuwhy_overhead_limit_ratio",
    "CPU that sampling the stacks of one rank may use, as a share of a core (--max-overhead).",
)
PRICE = on_host(
    "gpuwhy_gpu_hour_price", "Price of a GPU-hour as set by --gpu-hour-price; absent if not set."
)
NOTIFICATIONS = _counter(
    "gpuwhy_notifications_received_total", "Notifications that Alertmanager delivered to the page."
)
CPU = _counter(
    "process_cpu_seconds_total", "CPU time of the process that serves (not of the observer)."
)
RESIDENT = on_host("process_resident_memory_bytes", "Resident memory of the process that serves.")
VIRTUAL = on_host("process_virtual_memory_bytes", "Virtual memory of the process that serves.")
STARTED = on_host("process_start_time_seconds", "When the process that serves started, Unix time.")
OPEN_FDS = on_host("process_open_fds", "File descriptors open in the process that serves.")
MAX_FDS = on_host("process_max_fds", "File descriptors that it may open.")

METRICS = (
    BUILD,
    RECORDED,
    SERIES,
    LIMIT,
    DROPPED,
    FAMILY_FAILURES,
    FAMILY_DURATION,
    LAST_SECOND,
    LAG,
    OVERHEAD_LIMIT,
    PRICE,
    NOTIFICATIONS,
    CPU,
    RESIDENT,
    VIRTUAL,
    STARTED,
    OPEN_FDS,
    MAX_FDS,
)
