"""Tables of the fleet: runs, hosts, alerts. Their GPU-hours are those of the whole fleet's page."""

from __future__ import annotations

from grafana.source import words
from grafana.source.alerts import told
from grafana.source.fields import FILLED, by_name, link
from grafana.source.panels import Panel
from grafana.source.queries import LOST
from grafana.source.tables import table
from grafana.source.targets import query

HOST = 'host=~"$host"'
HOST_OR_NONE = 'host=~"$host|"'
"""Of the chosen hosts; alerts on runs have none."""
SENT = f'severity=~"critical|warning",{HOST_OR_NONE}'
SHARES = f"gpu_run_account:gpuwhy_device_share:ratio{{{HOST}"
"""Recorded shares of each GPU's time over 5 minutes, by run and account (throttle: and reason)."""


def hours(by: str, select: str) -> str:
    """GPU-hours of the selected accounts over the time range: shares of five minutes each, laid
    end to end."""
    part = f"{SHARES},{select}}}"
    return f"sum_over_time((sum by ({by}) ({part}))[$__range:5m]) / 12"


WHY = "/d/gpuwhy-why?var-run=${__data.fields.Run:percentencode}"


def runs() -> Panel:
    """Runs by what they lose."""
    costs = hours("run, account", LOST)
    held = f'sum_over_time((sum by (run) ({SHARES},run!=""}}))[$__range:5m]) / 12'
    return table(
        "Which runs lose most?",
        "Runs and their causes by GPU-hours lost in the time range; beside them all GPU-hours that "
        "the run held. A click on the run leads to why. Up to 50 rows.",
        [
            query(f"topk(50, {costs} > 0.005)", table=True),
            query(
                f"{held} * on (run) group_right () (topk(50, {costs} > 0.005) * 0 + 1)", table=True
            ),
            query(
                f"topk(50, {costs} > 0.005) * on () group_left ()"
                f" max(gpuwhy_gpu_hour_price{{{HOST}}})",
                table=True,
            ),
        ],
        columns={
            "run": "Run",
            "account": "Cause",
            "Value #A": "GPU-hours lost",
            "Value #B": "held",
            "Value #C": "price",
        },
        sort="GPU-hours lost",
        most=50,
        missing="no run lost GPU time (or needs gpuwhy)",
        overrides=[
            by_name("Run", links=[link("Why is it waiting?", WHY)]),
            by_name("Cause", width=200, mappings=words.causes(), cell=FILLED),
            by_name("GPU-hours lost", width=130, decimals=2),
            by_name("held", width=110, decimals=2),
            by_name("price", width=110, decimals=2),
        ],
    )


def hosts() -> Panel:
    """Hosts by what is lost on them."""
    lost_on = f"sum by (host) ({SHARES},{LOST}}})"
    free_on = f'sum by (host) ({SHARES},account="free"}})'
    busy = f"avg by (host) (gpu:busy:ratio{{{HOST}}})"
    count = f"count by (host) (gpu:memory_used:bytes{{{HOST}}})"
    return table(
        "Which hosts stand out?",
        "Hosts at the end of the range: GPUs, how busy they are, how many GPUs' worth of time is "
        "lost and free there (means over 5 minutes). Busy alone does not tell work from waiting.",
        [query(q, table=True) for q in (count, busy, lost_on, free_on)],
        columns={
            "host": "Host",
            "Value #A": "GPUs",
            "Value #B": "Busy",
            "Value #C": "GPUs lost",
            "Value #D": "GPUs free",
        },
        sort="GPUs lost",
        most=100,
        missing="no exporter answers",
        overrides=[
            by_name("GPUs", width=70),
            by_name("Busy", width=80, unit="percentunit", decimals=0),
            by_name("GPUs lost", width=90, decimals=2),
            by_name("GPUs free", width=90, decimals=2),
        ],
    )


def alerts() -> Panel:
    """Alerts that fire."""
    return table(
        "Which alerts fire?",
        "Alerts firing at the end of the range that somebody is told of, with the run that they "
        "are about: critical first, each at its worst severity; what a named cause explains is "
        "left out. Their runbooks are linked in the notifications.",
        [query(f"count by (severity, alertname, run, host) ({told(SENT)})", table=True)],
        columns={
            "severity": "Severity",
            "alertname": "Alert",
            "run": "Run",
            "host": "Host",
            "Value": "Count",
        },
        sort="Severity",
        rising=True,
        missing="none (or the alert rules are not loaded)",
        overrides=[
            by_name("Severity", width=90),
            by_name("Run", links=[link("Why is it waiting?", WHY)]),
            by_name("Count", width=70),
        ],
    )
