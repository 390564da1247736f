"""What the exporter can see: each source's state, lag, cost and loss."""

from __future__ import annotations

from gpuwhy.expose.metric import Kind, Metric


def _of_source(name: str, text: str) -> Metric:
    kind: Kind = "counter" if name.endswith("_total") else "gauge"
    return Metric(name, kind, ("source",), 1, "source", text)


UP = _of_source(
    "gpuwhy_source_up",
    "1 if the source serves, 0 if it does not or has not been heard of; every source always has a "
    "series.",
)
LAG = _of_source("gpuwhy_source_lag_seconds", "How late the source's last read was.")
PERIOD = _of_source("gpuwhy_source_period_seconds", "How often the source is read at present.")
AGE = _of_source("gpuwhy_source_age_seconds", "Time since the source last reported its state.")
CPU = _of_source(
    "gpuwhy_source_cpu_seconds_total", "CPU time that the source has used, its helpers included."
)
READS = _of_source("gpuwhy_source_reads_total", "Reads of the source.")
FAILURES = _of_source("gpuwhy_source_failures_total", "Reads of the source that failed.")
LOST = _of_source(
    "gpuwhy_source_lost_seconds_total", "Time for which the driver's ring wrapped before a read."
)
TORN = _of_source("gpuwhy_source_torn_stacks_total", "Stacks dropped because they were torn.")

METRICS = (UP, LAG, PERIOD, AGE, CPU, READS, FAILURES, LOST, TORN)
