"""What the exporter can see: each source's state, lag, cost and loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuwhy.expose.metric import Kind, Metric, Samples
from gpuwhy.expose.view import View
from gpuwhy.observe.observation import SOURCES, Observation


def _of_source(name: str, text: str) -> Metric:
    kind: Kind = "counter" if name.endswith("_total") else "gauge"
    return Metric(name, kind, ("source",), 1, "source", text)


UP = _of_source(
    "gpuwhy_source_up",
    "1 if the source serves (at least one GPU or process, where it tells them apart), 0 if it does "
    "not or has not been heard of; every source always has a series. Where a recording holds no "
    "state of sources: whether it served the last second.",
)
AGE = _of_source("gpuwhy_source_age_seconds", "Time since the source last reported its state.")
LATEST = (
    (_of_source("gpuwhy_source_lag_seconds", "How late the source's last read was."), "lag_s"),
    (
        _of_source("gpuwhy_source_period_seconds", "How often the source is read at present."),
        "period_s",
    ),
    (
        _of_source(
            "gpuwhy_source_cpu_limit_ratio",
            "CPU that the source may use at present, its helpers included, as a share of one core: "
            "--max-overhead for all ranks, less while the host is short of CPU.",
        ),
        "share",
    ),
)
SUMS = (
    (
        _of_source(
            "gpuwhy_source_cpu_seconds_total",
            "CPU time that the source has used, its helpers included.",
        ),
        "cpu_s",
    ),
    (_of_source("gpuwhy_source_reads_total", "Reads of the source."), "reads"),
    (_of_source("gpuwhy_source_failures_total", "Reads of the source that failed."), "failures"),
    (
        _of_source(
            "gpuwhy_source_lost_seconds_total",
            "Time for which the driver's ring wrapped before a read.",
        ),
        "lost_s",
    ),
    (
        _of_source("gpuwhy_source_torn_stacks_total", "Stacks dropped because they were torn."),
        "torn",
    ),
    (
        _of_source(
            "gpuwhy_source_dropped_observations_total",
            "Observations of the source that were lost, since who reads them was too slow.",
        ),
        "dropped",
    ),
)

PARTS_DOWN = _of_source(
    "gpuwhy_source_parts_down",
    "GPUs and processes that the source does not serve, each by itself; the page names them.",
)
MISSING = _of_source(
    "gpuwhy_source_missing_fields",
    "Values that the source should give and does not, of all GPUs that it serves (told by nvml); "
    "the page names them.",
)

METRICS = (
    UP,
    AGE,
    PARTS_DOWN,
    MISSING,
    *(metric for metric, _ in LATEST),
    *(metric for metric, _ in SUMS),
)


def collect(view: View) -> Samples:
    """Every source, heard of or not."""
    for source in SOURCES:
        reports = reports_of(view, source)
        yield UP, (source,), is_up(view, source)
        if reports:
            yield AGE, (source,), max(0.0, view.now - max(float(r["t"]) for r in reports))
            parts = [r for r in reports if "uuid" in r or "pid" in r]
            yield PARTS_DOWN, (source,), sum(not r.get("up") for r in parts)
            yield MISSING, (source,), sum(len(missing(r)) for r in reports)
        for metric, field in LATEST:
            known = [float(r[field]) for r in reports if field in r]
            yield metric, (source,), max(known, default=None)
        for metric, field in SUMS:
            known = [float(r[field]) for r in reports if field in r]
            yield metric, (source,), sum(known) if known else None


def reports_of(view: View, source: str) -> list[Observation]:
    """The fresh reports of a source: on the whole, or of its parts (a GPU, a process)."""
    return [r for r in view.facts.get("source", {}).values() if r.get("source") == source]


def missing(report: Mapping[str, Any]) -> list[str]:
    """The fields that the GPU of a report does not give, while it gives the others."""
    return list(report.get("missing", ())) if report.get("up") else []


def is_up(view: View, source: str) -> bool:
    """What a source says of itself on the whole decides; else whether any of its parts is up; and
    where it says nothing, whether it served the last second."""
    reports = reports_of(view, source)
    if not reports:
        return any(source in row.seen for row in (view.second.rows if view.second else ()))
    whole = [r for r in reports if "uuid" not in r and "pid" not in r]
    return any(bool(r.get("up")) for r in whole or reports)
