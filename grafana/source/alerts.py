"""Queries for alerts: those that somebody is told of, as Alertmanager's inhibition leaves them."""

from __future__ import annotations


def told(select: str) -> str:
    """Alerts that fire, each at its worst severity only, a cause instead of what it looks like.

    Rules for several severities fire together: a mark for each would colour what lies below. As in
    notifications, severity ``none`` is left out (``INHIBITION`` of ``gpuwhy alerting render``).
    """
    chosen = _firing('severity!="none"', select)
    critical = _firing('severity="critical"', select)
    worse = _firing('severity=~"critical|warning"', select)
    causes = _firing('severity=~"critical|warning",cause!=""', select)
    milder = f"{_as('severity', 'warning', critical)} or {_as('severity', 'info', worse)}"
    return (
        f"({chosen}"
        f" unless on (alertname, run, instance, uuid, severity) ({milder})"
        f" unless on (run, scope) {_as('scope', 'general', causes)})"
    )


def _firing(kind: str, select: str) -> str:
    return f'ALERTS{{alertstate="firing",{kind},{select}}}'


def _as(label: str, value: str, alerts: str) -> str:
    """Those alerts with another value of one label: that of the alerts which they silence."""
    return f'label_replace(max without ({label}) ({alerts}), "{label}", "{value}", "", "")'


ALERTS_OF_RUN = told('run="$run"') + " or " + told('run="",uuid=~"$gpu"')
"""Alerts on the run, and those on one of its GPUs that no run is to blame for."""

ALERTS_OF_GPU = (
    told('uuid=~"$gpu"')
    + " or "
    + told('uuid="",run!=""')
    + ' and on (run) rank:gpuwhy_held:info{uuid=~"$gpu"}'
)
"""Alerts on the GPU, and those on the runs that hold it."""
