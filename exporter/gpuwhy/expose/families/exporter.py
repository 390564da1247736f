"""The exporter itself: its version, cost, lag, series, and failures."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import ProcessCollector

from gpuwhy.expose.limits import EXPORTED
from gpuwhy.expose.metric import Metric, Sample, Samples, on_host
from gpuwhy.expose.view import View


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
    "Bound on what multiplies series. kind: " + ", ".join(EXPORTED) + ".",
)
DROPPED = _counter(
    "gpuwhy_series_dropped_total",
    "Series left out of an exposition because a bound was reached, by metric family.",
    "family",
)
LEFT_OUT = on_host(
    "gpuwhy_left_out", "GPUs and ranks in sight beyond the bounds, which have no series at all."
)
FAMILY_FAILURES = _counter(
    "gpuwhy_scrape_family_failures_total",
    "Scrapes from which this family was left out because it failed or no time was left; family "
    "feed: batches of observations that were not understood.",
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
PROCESS = {
    metric.name: metric
    for metric in (
        _counter(
            "process_cpu_seconds_total", "CPU time of the process that serves (not the observer)."
        ),
        on_host("process_resident_memory_bytes", "Resident memory of the process that serves."),
        on_host("process_virtual_memory_bytes", "Virtual memory of the process that serves."),
        on_host("process_start_time_seconds", "When the process that serves started, Unix time."),
        on_host("process_open_fds", "File descriptors open in the process that serves."),
        on_host("process_max_fds", "File descriptors that it may open."),
    )
}
"""What the client library tells of its own process, under the names that everybody knows."""

METRICS = (
    BUILD,
    RECORDED,
    SERIES,
    LIMIT,
    DROPPED,
    LEFT_OUT,
    FAMILY_FAILURES,
    FAMILY_DURATION,
    LAST_SECOND,
    LAG,
    OVERHEAD_LIMIT,
    PRICE,
    NOTIFICATIONS,
    *PROCESS.values(),
)


def collect(view: View, durations: Mapping[str, float], series: int) -> Samples:
    """The exporter's own; ``durations`` and ``series`` are those of the other families."""
    about, failures = view.about, view.about.failures
    parts = {"feed", *durations, *failures}
    own: list[Sample] = [
        (BUILD, (about.version, about.python), 1.0),
        (RECORDED, (), float(about.recorded)),
        (LAST_SECOND, (), view.last_t),
        (LAG, (), None if view.last_t is None else max(0.0, view.now - (view.last_t + 1))),
        (OVERHEAD_LIMIT, (), about.overhead_limit),
        (PRICE, (), about.gpu_hour_price),
        (NOTIFICATIONS, (), about.notifications),
        (LEFT_OUT, (), view.left_out),
        *((LIMIT, (kind,), most) for kind, most in EXPORTED.items()),
        *((FAMILY_DURATION, (family,), spent) for family, spent in durations.items()),
        *((DROPPED, (family,), about.dropped.get(family, 0)) for family in durations),
        *((FAMILY_FAILURES, (part,), failures.get(part, 0)) for part in sorted(parts)),
        *_process(),
    ]
    known = [sample for sample in own if sample[2] is not None]
    yield from known
    yield SERIES, (), series + len(known) + 1


def _process() -> list[Sample]:
    families = ProcessCollector(registry=None).collect()
    samples = [sample for family in families for sample in family.samples]
    return [(PROCESS[s.name], (), s.value) for s in samples if s.name in PROCESS]
