"""Fleet: all GPUs in the device view, the only one that may be summed. No line per GPU."""

from __future__ import annotations

from typing import Any

from grafana.source import dashboard as d
from grafana.source import fleet_tables as tables
from grafana.source import palette, words
from grafana.source.alerts import marks
from grafana.source.fields import by_name, by_pattern, colored, dashed
from grafana.source.fleet_tables import HOST, HOST_OR_NONE, SHARES, hours
from grafana.source.panels import NOT_TOLD, Panel, bars, stat, timeseries
from grafana.source.queries import CAUSES, LOST
from grafana.source.strips import account_names
from grafana.source.targets import query


def _hours(title: str, description: str, select: str, **more: Any) -> Panel:
    return stat(
        title,
        description,
        [query(f"sum({hours('account', select)})", now=True)],
        unit="none",
        low=0,
        decimals=1,
        **more,
    )


def gpus() -> Panel:
    """GPUs in sight."""
    return stat(
        "GPUs in sight",
        "GPUs and MIG instances that either exporter tells of, at the end of the range. A GPU that "
        "is lost, or a host whose exporters are down, is missing here.",
        [query(f"count(gpu:memory_used:bytes{{{HOST}}})", now=True)],
        unit="none",
        low=0,
        missing="none: no exporter answers",
    )


def lost() -> Panel:
    """Lost GPU-hours."""
    return _hours(
        "GPU-hours lost",
        "GPU time held by runs that went to a cause, over the time range. What a card at its "
        "factory power limit loses is not counted: it is well used.",
        LOST,
        steps=((None, "text"), (1, palette.WARN)),
    )


def price() -> Panel:
    """Their price."""
    return stat(
        "Price of what is lost",
        "GPU-hours lost times the price that was set (gpuwhy serve --gpu-hour-price), in the "
        "currency in which you set it. Mending one cause saves less than its price: what limits "
        "next takes a part of it.",
        [
            query(
                f"sum({hours('account', LOST)}) * on () group_left ()"
                f" max(gpuwhy_gpu_hour_price{{{HOST}}})",
                now=True,
            )
        ],
        unit="none",
        low=0,
        decimals=2,
        missing="no price set, or needs gpuwhy",
    )


def worked() -> Panel:
    """GPU-hours of work."""
    return _hours(
        "GPU-hours of work",
        "GPU time in which kernels of some run did its own work, over the time range. A rank that "
        "spins in a collective reads busy and is not in it.",
        'account="compute"',
    )


def free() -> Panel:
    """GPU-hours without a run."""
    return _hours(
        "GPU-hours free",
        "GPU time in which no run held the GPU. Not a loss of a run but of the scheduler, or "
        "spare.",
        'account="free"',
    )


def share() -> Panel:
    """Lost share of what was held."""
    held = 'account!="free"'
    return stat(
        "Lost of what was held",
        "GPU-hours lost as a share of all that runs held in the time range. Free GPUs are not in "
        "it: a low share says nothing of how many stand idle.",
        [query(f"sum({hours('account', LOST)}) / sum({hours('account', held)})", now=True)],
        unit="percentunit",
        low=0,
        high=1,
        decimals=0,
        steps=((None, palette.GOOD), (0.08, palette.WARN), (0.3, palette.BAD)),
    )


def ledger() -> Panel:
    """Accounts over time, in GPUs."""
    groups = (
        "compute",
        "throttle|shared",
        "copy|data|host|launch|quota|comm|stalled",
        "startup|checkpoint|evaluation",
        "unknown",
        "free",
    )
    return timeseries(
        "Where does the fleet's GPU time go, in GPUs?",
        "All GPUs by account, in GPUs: the height is the number of GPUs observed. Device view: "
        "each GPU-second counts once, however many runs share the GPU. Means over 5 minutes.",
        [query(f'sum by (account) ({SHARES},account=~"{g}"}})', "{{account}}") for g in groups],
        unit="none",
        stacked=True,
        overrides=account_names(),
    )


def by_cause() -> Panel:
    """GPU-hours by cause."""
    return bars(
        "Which causes cost most?",
        "GPU-hours lost in the time range, by cause, over all runs. The longest bar is where a "
        "general measure pays: faster storage, more cores for each GPU, a template for loaders.",
        [query(f"sort_desc({hours('account', LOST)})", "{{account}}", now=True)],
        unit="none",
        decimals=1,
        overrides=[
            by_name(cause, color=palette.CAUSES[cause], display=words.CAUSES[cause])
            for cause in CAUSES.split("|")
        ],
    )


def activity() -> Panel:
    """Quantiles of activity over the fleet."""
    targets = []
    for name, series in (("busy", "gpu:busy:ratio"), ("SM active", "gpu:sm_active:ratio")):
        for quantile, label in ((0.1, "lowest tenth"), (0.5, "median"), (0.9, "highest tenth")):
            expr = f"quantile({quantile}, {series}{{{HOST}}})"
            targets.append(query(expr, f"{name}, {label}"))
    return timeseries(
        "How busy is the fleet, and does it work?",
        "Tenths of all GPUs: below the lowest curve lies a tenth of them. A wide gap between busy "
        "and SM active all over the fleet is waiting that utilisation hides.",
        targets,
        unit="percentunit",
        high=1,
        missing=NOT_TOLD,
        overrides=[
            *colored(palette.SIGNALS),
            by_pattern("tenth", line_style={"fill": "dash", "dash": [4, 4]}),
        ],
    )


def power() -> Panel:
    """Power of the fleet."""
    return timeseries(
        "How much power does the fleet draw?",
        "Power of all GPUs and the sum of their limits. Not the hosts' power: CPUs, fans and "
        "losses are not in it.",
        [
            query(f"sum(gpu:power:watts{{{HOST}}})", "drawn"),
            query(f"sum(gpu:power_limit:watts{{{HOST}}})", "limits"),
        ],
        unit="watt",
        missing=NOT_TOLD,
        overrides=[by_pattern("^drawn", color=palette.SIGNALS["power"], fill=15), dashed("^limit")],
    )


def build() -> dict[str, Any]:
    """The dashboard."""
    made = d.dashboard(
        "gpuwhy-fleet",
        "Fleet",
        "All GPUs: how many GPU-hours are lost, by which run and cause, at which price.",
        [d.host()],
        [
            (
                4,
                [(4, gpus()), (4, worked()), (4, lost()), (4, share()), (4, price()), (4, free())],
            ),
            (9, [(24, ledger())]),
            (9, [(15, tables.runs()), (9, by_cause())]),
            (9, [(12, tables.hosts()), (12, tables.alerts())]),
            (7, [(24, activity())]),
            (6, [(24, power())]),
        ],
        alerts=marks(f'severity="critical",{HOST_OR_NONE}'),
    )
    return {**made, "time": {"from": "now-24h", "to": "now"}, "refresh": "1m"}
