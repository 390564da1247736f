"""What the monitor costs and what it lost."""

from __future__ import annotations

from grafana.source import palette
from grafana.source.fields import by_pattern, dashed
from grafana.source.panels import Panel, timeseries
from grafana.source.queries import rate
from grafana.source.targets import query

OURS = 'job="gpuwhy"'


def on_host(name: str, more: str = "") -> str:
    """A series of the chosen hosts."""
    return f'{name}{{host=~"$host"{"," + more if more else ""}}}'


def cost() -> Panel:
    """Cores by source."""
    cores = rate(on_host("gpuwhy_source_cpu_seconds_total"))
    return timeseries(
        "What does each source cost?",
        "Cores used by each source, mean over the hosts, and the bound on sampling one rank's "
        "stacks (--max-overhead). Sampling slows down by itself to keep the bound.",
        [
            query(f"avg by (source) ({cores})", "{{source}}"),
            query(f"min({on_host('gpuwhy_overhead_limit_ratio')})", "bound for one rank's stacks"),
        ],
        unit="none",
        overrides=[dashed("^bound")],
    )


def losses() -> Panel:
    """What was lost while observing."""
    return timeseries(
        "What was lost while watching?",
        "Per second: failed reads, torn stacks (dropped, so that none is misread), seconds of the "
        "driver's rings that wrapped before they were read. A host short of CPU loses some; a "
        "gap in the observation is never taken for idle time.",
        [
            query(f"sum({rate(on_host('gpuwhy_source_failures_total'))})", "failed reads"),
            query(f"sum({rate(on_host('gpuwhy_source_torn_stacks_total'))})", "torn stacks"),
            query(f"sum({rate(on_host('gpuwhy_source_lost_seconds_total'))})", "ring seconds"),
        ],
        unit="none",
        missing="nothing told (needs gpuwhy)",
    )


def series() -> Panel:
    """Series exposed and dropped."""
    return timeseries(
        "How many series?",
        "Series of the largest host's exposition, and series left out in the five minutes before "
        "because a bound was reached. Bounds keep a job that restarts under ever new names from "
        "filling Prometheus.",
        [
            query(f"max({on_host('gpuwhy_series')})", "series, largest host"),
            query(f"sum(increase({on_host('gpuwhy_series_dropped_total')}[5m]))", "left out"),
        ],
        unit="none",
        overrides=[
            by_pattern("^series", color=palette.LINES[0]),
            by_pattern("^left", color=palette.BAD),
        ],
    )


def scrapes() -> Panel:
    """Durations of scrapes."""
    return timeseries(
        "How long do scrapes take?",
        "Duration of Prometheus's scrapes by job, longest of the hosts, and the slowest family of "
        "gpuwhy's metrics. A scrape never waits for a source: values are those of the last "
        "complete second.",
        [
            query(f"max by (job) ({on_host('scrape_duration_seconds')})", "scrape of {{job}}"),
            query(f"max({on_host('gpuwhy_scrape_family_duration_seconds')})", "slowest family"),
        ],
        unit="s",
    )


def memory() -> Panel:
    """Memory of the server."""
    return timeseries(
        "How much memory does it use?",
        "Resident memory of the process that serves, largest host. It is bounded by the bounds on "
        "series and by fifteen minutes of rows.",
        [
            query(f"max({on_host('process_resident_memory_bytes', OURS)})", "resident, largest"),
        ],
        unit="bytes",
    )
