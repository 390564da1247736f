"""Queries for alerts: those that somebody is told of, as Alertmanager's inhibition leaves them."""

from __future__ import annotations

from dataclasses import dataclass

STEP_BEFORE = " offset $__interval"
"""One step of the query earlier."""
AT_LEFT = " and on () (vector(1000 * time()) > $__from <= $__from + $__interval_ms)"
"""At the first step within the range only: Grafana asks from the step before, and draws no mark
left of the axis."""


@dataclass(frozen=True)
class Marks:
    """Queries for the marks of a page: where alerts begin, where they end, and at the left edge
    those that fire since before it.

    Not over all the time between: that would colour what lies below, and several of them would make
    one account's colour look like another's.
    """

    begin: str
    end: str
    before: str


def told(select: str) -> str:
    """Alerts that fire, each at its worst severity only, a cause instead of what it looks like.

    Rules for several severities hold together. As in notifications, severity ``none`` is left out
    (``INHIBITION`` of ``gpuwhy alerting render``).
    """
    return f"{_firing(select)}{_silenced(select)}"


def marks(*selects: str, of: str = "") -> Marks:
    """Marks of the alerts that one of ``selects`` finds; ``of``: of the last, only those."""
    kinds = (_begins, _ends, _goes_on)
    begin, end, before = (" or ".join(map(made, selects)) + of for made in kinds)
    return Marks(_named(begin), _named(end), _named(f"({before}){AT_LEFT}"))


def _named(alerts: str) -> str:
    """Those alerts with a label ``device`` for the text of a mark: alerts of runs have no GPU."""
    return f'label_replace({alerts}, "device", "GPU $1", "gpu", "(.+)")'


def _begins(select: str) -> str:
    """Alerts that are told, at the step at which they begin to fire or become worse."""
    return f"({_firing(select)} unless {_firing(select)}{STEP_BEFORE}{_silenced(select)})"


def _goes_on(select: str) -> str:
    """Alerts that are told and fired a step before at this severity too."""
    return f"({_firing(select)} and {_firing(select)}{STEP_BEFORE}{_silenced(select)})"


def _ends(select: str) -> str:
    """Alerts at the step at which they no longer fire at any severity."""
    before, now = _firing(select) + STEP_BEFORE, _firing(select)
    gone = f"max without (severity) ({before}) unless max without (severity) ({now})"
    return f"({gone}{_explained(select)})"


def _silenced(select: str) -> str:
    """``unless`` a worse severity of the same alert fires, or a cause that explains it."""
    critical = _firing(select, 'severity="critical"')
    worse = _firing(select, 'severity=~"critical|warning"')
    milder = f"{_as('severity', 'warning', critical)} or {_as('severity', 'info', worse)}"
    worst = f" unless on (alertname, run, instance, uuid, severity) ({milder})"
    return worst + _explained(select)


def _explained(select: str) -> str:
    """``unless`` a cause is named of which this is only what it looks like."""
    causes = _firing(select, 'severity=~"critical|warning",cause!=""')
    return f" unless on (run, scope) {_as('scope', 'general', causes)}"


def _firing(select: str, kind: str = 'severity!="none"') -> str:
    return f'ALERTS{{alertstate="firing",{kind},{select}}}'


def _as(label: str, value: str, alerts: str) -> str:
    """Those alerts with another value of one label: that of the alerts which they silence."""
    return f'label_replace(max without ({label}) ({alerts}), "{label}", "{value}", "", "")'


OF_RUN = marks('run="$run",host=~"$host|"', 'run="",uuid=~"$gpu"')
"""Alerts on the run, which have no host, and those on one of its GPUs that no run is to blame for;
where there is no run, without gpuwhy, those of the chosen hosts."""

OF_GPU = marks(
    'uuid=~"$gpu"', 'uuid="",run!=""', of=' and on (run) rank:gpuwhy_held:info{uuid=~"$gpu"}'
)
"""Alerts on the GPU, and those on the runs that hold it."""
