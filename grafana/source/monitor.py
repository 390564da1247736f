"""The monitor itself: what it can see, what it costs, what it lost."""

from __future__ import annotations

from typing import Any

from grafana.source import dashboard as d
from grafana.source import monitor_cost as cost
from grafana.source import palette, words
from grafana.source.alerts import marks
from grafana.source.fields import FILLED, by_name
from grafana.source.monitor_cost import OURS, on_host
from grafana.source.panels import Panel, stat, states
from grafana.source.queries import rate
from grafana.source.tables import table
from grafana.source.targets import query

ALERTS = (
    "Gpuwhy.*|DcgmExporterDown|AlertmanagerDown|NotificationsFailing"
    "|GPUSourceMissing|GPULost|NetworkPortDown"
)
"""Those that lead here."""


NOT_EVERYWHERE = "nccl_ras|infiniband"
"""Sources that most jobs and hosts do not have."""


def _expected() -> str:
    """Whether sources serve; those that are not everywhere only where they did within the range."""
    always = on_host("gpuwhy_source_up", f'source!~"{NOT_EVERYWHERE}"')
    some = on_host("gpuwhy_source_up", f'source=~"{NOT_EVERYWHERE}"')
    return f"({always} or {some} and max_over_time({some}[$__range]) == 1)"


def exporters() -> Panel:
    """Exporters that answer."""
    return stat(
        "Exporters that answer",
        "Targets that Prometheus could scrape at the end of the range, of all that it knows on "
        "these hosts. One that does not answer leaves gaps, not zeros.",
        [
            query(f"sum({on_host('up')})", "answer", now=True),
            query(f"count({on_host('up')})", "in all", now=True),
        ],
        unit="none",
        names=True,
        decimals=0,
        missing="Prometheus knows no target here",
    )


def lag() -> Panel:
    """Lag of the values."""
    return stat(
        "Age of the values",
        "How far gpuwhy's values are behind the clock, highest of the hosts. 3 to 4 s is normal: "
        "a second is entered once, when all of it is in.",
        [query(f"max({on_host('gpuwhy_lag_seconds')})", now=True)],
        unit="s",
        low=0,
        decimals=1,
        steps=((None, palette.GOOD), (15, palette.BAD)),
    )


def missing() -> Panel:
    """Sources that do not serve."""
    return stat(
        "Missing sources",
        "Sources of gpuwhy that do not serve, over all hosts. NCCL RAS and InfiniBand count only "
        "where they served within the range: most jobs and hosts have none.",
        [query(f"count({_expected()} == 0)", now=True)],
        unit="none",
        low=0,
        decimals=0,
        missing="none (or needs gpuwhy)",
    )


def recorded() -> Panel:
    """Whether this is played back."""
    return stat(
        "Recorded?",
        "Whether the values come from a recording that is played back, as in the demonstration. "
        "If so, they tell nothing of the host on which it is played.",
        [query(f"max({on_host('gpuwhy_recorded')})", now=True)],
        unit="none",
        mappings=words.recorded(),
    )


def cpu_now() -> Panel:
    """Cores used by gpuwhy on a host."""
    watching = rate(on_host("gpuwhy_source_cpu_seconds_total"))
    own = rate(on_host("process_cpu_seconds_total", OURS))
    total = f"sum by (instance) ({watching}) + on (instance) sum by (instance) ({own})"
    return stat(
        "Cost to a host",
        "Cores used by observer and server together, highest of the hosts. The cost to the job "
        "itself is not CPU alone; it was measured and is in the documentation.",
        [query(f"max({total})", now=True)],
        unit="none",
        low=0,
        decimals=3,
        missing="needs gpuwhy",
    )


def targets() -> Panel:
    """Targets over time."""
    return states(
        "Which exporters answered, when?",
        "Scrapes by exporter and host, lowest over the hosts shown for each job. A gap is time in "
        "which Prometheus itself did not run.",
        [query(f"min by (job) ({on_host('up')})", "{{job}}")],
        mappings=words.up_down(),
        missing="Prometheus knows no target here",
    )


def sources() -> Panel:
    """Sources over time."""
    return states(
        "Which sources served, when?",
        "Sources of gpuwhy, lowest over the hosts shown. What is lost without each is in the table "
        "below. A missing source never stops the others. NCCL RAS and InfiniBand only where they "
        "served within the range: most jobs and hosts have none.",
        [query(f"min by (source) ({_expected()})", "{{source}}")],
        mappings=words.up_down(),
    )


def table_of_sources() -> Panel:
    """One row for each source of each host."""
    by = "host, source"
    up = f"max by ({by}) ({_expected()})"
    parts = (
        f'label_replace({up}, "lost", "$1", "source", "(.+)")',
        f"max by ({by}) ({on_host('gpuwhy_source_age_seconds')})",
        f"max by ({by}) ({on_host('gpuwhy_source_lag_seconds')})",
        f"max by ({by}) ({on_host('gpuwhy_source_period_seconds')})",
        f"sum by ({by}) ({rate(on_host('gpuwhy_source_cpu_seconds_total'))})",
        f"sum by ({by}) (increase({on_host('gpuwhy_source_failures_total')}[$__range]))",
        f"sum by ({by}) ({on_host('gpuwhy_source_parts_down')})",
        f"sum by ({by}) ({on_host('gpuwhy_source_missing_fields')})",
    )
    return table(
        "What does each source say?",
        "Sources at the end of the range, those that do not serve first: how old their last "
        "report is, how late their reads are, how often they are read, cores used, reads that "
        "failed in the time range; GPUs and processes that a source which serves does not serve, "
        "and values that it does not give: the exporter's page names them. A failed read now and "
        "then is no loss. gpuwhy doctor names the remedy.",
        [query(f"{part} and on ({by}) {up}", table=True) for part in parts],
        columns={
            "host": "Host",
            "source": "Source",
            "Value #A": "State",
            "lost": "Lost without it",
            "Value #B": "Age",
            "Value #C": "Late by",
            "Value #D": "Every",
            "Value #E": "Cores",
            "Value #F": "Failed reads",
            "Value #G": "Parts down",
            "Value #H": "Values missing",
        },
        sort="State",
        rising=True,
        most=200,
        overrides=[
            by_name("Host", width=140),
            by_name("Source", width=200, mappings=words.sources()),
            by_name(
                "State",
                width=90,
                align="left",
                mappings=words.up_down(),
                cell=FILLED,
            ),
            by_name("Lost without it", mappings=words.lost_without()),
            by_name("Age", width=80, unit="s", decimals=1),
            by_name("Late by", width=80, unit="s"),
            by_name("Every", width=80, unit="s"),
            by_name("Cores", width=80, decimals=3),
            by_name("Failed reads", width=110, decimals=0),
            by_name("Parts down", width=100, decimals=0),
            by_name("Values missing", width=120, decimals=0),
        ],
    )


def blind_gpus() -> Panel:
    """GPUs on which a source does not serve."""
    by = "host, gpu, mig, source"
    blind = f"count by ({by}) ({on_host('gpuwhy_gpu_source_up')} == 0)"
    return table(
        "On which GPUs is a source missing?",
        "Sources that did not serve the last second of a GPU, up to 100. GPM is missing on cards "
        "before Hopper, utilisation under MIG: there the verdicts rest on what remains.",
        [query(f"topk(100, {blind})", table=True)],
        columns={"host": "Host", "gpu": "GPU", "mig": "MIG", "source": "Source"},
        missing="on none (or needs gpuwhy)",
        overrides=[by_name("Source", mappings=words.sources())],
    )


def versions() -> Panel:
    """Versions by host."""
    return table(
        "Which versions run?",
        "Version of gpuwhy and of Python by host. Hosts of one fleet should agree.",
        [query(f"count by (version, python) ({on_host('gpuwhy_build_info')})", table=True)],
        columns={"version": "gpuwhy", "python": "Python", "Value": "Hosts"},
    )


def rules() -> Panel:
    """Whether the recording rules are there."""
    ours = on_host("gpuwhy_gpu_info")
    return stat(
        "GPUs by rules",
        "GPUs in the canonical series that the recording rules make, and GPUs that gpuwhy tells "
        "of itself. If the first is missing, the rules in prometheus/rules are not loaded, and "
        "panels of GPUs stay empty.",
        [
            query(f"count({on_host('gpu:memory_used:bytes')})", "by the rules", now=True),
            query(f"count({ours})", "by gpuwhy", now=True),
        ],
        unit="none",
        names=True,
        decimals=0,
        missing="the recording rules are not loaded, or no exporter answers",
    )


def build() -> dict[str, Any]:
    """The dashboard."""
    return d.dashboard(
        "gpuwhy-monitor",
        "The monitor itself",
        "What gpuwhy can see on these hosts, what it costs them, and what it lost.",
        [d.host()],
        [
            (
                4,
                [
                    (4, exporters()),
                    (4, rules()),
                    (4, lag()),
                    (4, missing()),
                    (4, cpu_now()),
                    (4, recorded()),
                ],
            ),
            (5, [(24, targets())]),
            (9, [(24, sources())]),
            (11, [(24, table_of_sources())]),
            (6, [(24, cost.cost())]),
            (6, [(24, cost.losses())]),
            (6, [(24, cost.series())]),
            (6, [(24, cost.scrapes())]),
            (6, [(24, cost.memory())]),
            (7, [(12, blind_gpus()), (12, versions())]),
        ],
        alerts=marks(f'host=~"$host",alertname=~"{ALERTS}"'),
    )
