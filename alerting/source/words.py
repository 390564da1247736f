"""Sentences of notifications, as templates that Prometheus fills in when an alert fires.

Numbers, functions and neighbours are looked up at that moment: they are no labels, so that an
alert stays the same alert when another function becomes the hottest.
"""

from __future__ import annotations

RUN = "{{ $labels.run }}"
SHORT_RUN = '{{ printf "%.24s" $labels.run }}'
"""A summary has to fit the subject line of a phone."""

PLACE = (
    "GPU {{ .Labels.gpu }}{{ with .Labels.mig }} (MIG {{ . }}){{ end }}"
    "{{ with .Labels.rank }}, rank {{ . }}{{ end }} on {{ or .Labels.host .Labels.instance }}"
)
"""Where a looked-up series is; the dot is the sample."""

GPU_PLACE = (
    "GPU {{ $labels.gpu }}{{ with $labels.mig }} (MIG {{ . }}){{ end }}"
    " on {{ or $labels.host $labels.instance }}"
)
"""The same of the alert's own labels."""

FUNCTION = "{{ .Labels.function }} ({{ .Labels.file }}:{{ .Labels.line }})"

WHY = "/d/gpuwhy-why?var-run={{ urlquery $labels.run }}"
ONE_GPU = "/d/gpuwhy-gpu?var-host={{ urlquery $labels.host }}&var-gpu={{ urlquery $labels.uuid }}"
LOCKSTEP = "/d/gpuwhy-lockstep?var-run={{ urlquery $labels.run }}"
MONITOR = "/d/gpuwhy-monitor?var-host={{ urlquery $labels.host }}"
SINCE = (
    '&from={{ with query "1000 * (time() - 1800)" }}{{ printf "%.0f" (. | first | value) }}'
    "{{ end }}&to=now"
)
"""From half an hour before the alert was evaluated."""


def found(query: str, text: str, *, otherwise: str = "", key: str = "$labels.run") -> str:
    """``text`` with the first series of ``query`` as its dot; ``otherwise`` where there is none.

    Each ``%q`` of the query is ``key``.
    """
    arguments = f" {key}" * query.count("%q")
    lookup = f"{{{{ with printf `{query}`{arguments} | query }}}}"
    other = f"{{{{ else }}}}{otherwise}" if otherwise else ""
    return f"{lookup}{{{{ with first . }}}}{text}{{{{ end }}}}{other}{{{{ end }}}}"


def every(query: str, text: str, *, key: str = "$labels.run") -> str:
    """``text`` for each series of ``query``."""
    arguments = f" {key}" * query.count("%q")
    return f"{{{{ range printf `{query}`{arguments} | query }}}}{text}{{{{ end }}}}"


def share(expr: str) -> str:
    """A looked-up ratio as whole per cent."""
    return found(f"100 * {expr}", '{{ printf "%.0f%%" .Value }}')


def percent(value: str) -> str:
    """A ratio that is at hand as whole per cent; templates cannot multiply, queries can."""
    return (
        f"{{{{ with printf `100 * %g` {value} | query }}}}"
        '{{ with first . }}{{ printf "%.0f%%" .Value }}{{ end }}{{ end }}'
    )


PERCENT = percent(".Value")
"""Of the sample that was looked up."""


PRICE = (
    "{{ with printf `%g * max(gpuwhy_gpu_hour_price)` $value | query }}{{ with first . }}"
    ', {{ printf "%.2f" .Value }} an hour at the price that was set{{ end }}{{ end }}'
)
