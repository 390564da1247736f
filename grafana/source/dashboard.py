"""A dashboard around its panels: variables, links, annotations, layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grafana.source import palette
from grafana.source.alerts import Marks
from grafana.source.panels import Panel
from grafana.source.queries import RUNS
from grafana.source.targets import DATASOURCE

DATASOURCE_UID = "gpuwhy-prometheus"
"""As in provisioning/datasources; elsewhere the variable offers what is there."""
TAG = "gpuwhy"
COLUMNS = 24

Variable = dict[str, Any]
Shelf = tuple[int, Sequence[tuple[int, Panel]]]
"""Panels side by side: their common height, and each one's width (of 24)."""

_GPUS = "rank:gpuwhy_held:info|gpu:memory_used:bytes"
"""Who holds a GPU, and every GPU: without gpuwhy only the latter, which has no run."""


def datasource() -> Variable:
    """Which Prometheus; the provisioned one unless another is chosen."""
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {"text": "Prometheus", "value": DATASOURCE_UID},
        "hide": 0,
        "refresh": 1,
        "regex": "",
        "options": [],
    }


def _query(
    name: str, label: str, text: str, *, many: bool, everything: str | None = None, regex: str = ""
) -> Variable:
    """A variable whose values are asked for; ``many`` offers All, ``everything`` is its value."""
    variable: Variable = {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": text,
        "query": {"query": text, "refId": f"variable-{name}"},
        "refresh": 2,
        "sort": 3 if name == "rank" else 1,
        "multi": many,
        "includeAll": many,
        "regex": regex,
        "hide": 0,
        "options": [],
        "current": {"text": ["All"], "value": ["$__all"]} if many else {},
    }
    if everything is not None:
        variable["allValue"] = everything
    return variable


def host() -> Variable:
    """Hosts, by the label ``host`` that Prometheus gives its targets."""
    known = '{__name__=~"gpuwhy_build_info|gpu:memory_used:bytes"}'
    return _query("host", "Host", f"label_values({known}, host)", many=True, everything=".*")


def run() -> Variable:
    """One run. Without gpuwhy there is none, and panels of GPUs show all GPUs."""
    known = f'{{__name__=~"{RUNS}",host=~"$host"}}'
    return _query("run", "Run", f"label_values({known}, run)", many=False)


def rank() -> Variable:
    """Ranks of the run."""
    known = f'{{__name__=~"{RUNS}",host=~"$host",run="$run"}}'
    return _query("rank", "Rank", f"label_values({known}, rank)", many=True, everything=".*")


def gpu(*, of_run: bool, many: bool) -> Variable:
    """GPUs and MIG instances: shown by host and index, chosen by UUID."""
    select = f'__name__=~"{_GPUS if of_run else "gpu:memory_used:bytes"}",host=~"$host"'
    if of_run:
        select += ',run="$run"'
    text = (
        "query_result(group by (name, uuid) (label_replace(label_join(label_join("
        f'last_over_time({{{select}}}[$__range]), "device", "/", "gpu", "mig"),'
        ' "name", " GPU ", "host", "device"), "name", "$1", "name", "(.+?)/?")))'
    )
    regex = '/name"?[=:]"(?<text>[^"]+).*uuid"?[=:]"(?<value>[^"]+)/'
    return _query("gpu", "GPU", text, many=many, regex=regex)


def _annotations(alerts: Marks) -> dict[str, Any]:
    return {
        "list": [
            _marks("Alerts", alerts.begin, "{{alertname}}", palette.BAD),
            _marks("Their end", alerts.end, "{{alertname}} ended", palette.NEUTRAL),
            _marks("Since before", alerts.before, "{{alertname}} since before", palette.BAD),
        ]
    }


def _marks(name: str, expr: str, title: str, colour: str) -> dict[str, Any]:
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": True,
        "hide": False,
        "iconColor": colour,
        "expr": expr,
        "step": "15s",
        "titleFormat": title,
        "textFormat": "{{severity}} {{cause}} {{run}} {{device}} {{host}}",
        "tagKeys": "severity,cause",
        "useValueForTime": False,
    }


def _links() -> list[dict[str, Any]]:
    return [
        {
            "type": "dashboards",
            "title": "gpuwhy",
            "tags": [TAG],
            "asDropdown": False,
            "includeVars": True,
            "keepTime": True,
            "targetBlank": False,
            "icon": "external link",
            "tooltip": "",
            "url": "",
        }
    ]


def heading(title: str) -> Shelf:
    """A row's title, between shelves."""
    return (1, [(COLUMNS, {"type": "row", "title": title, "collapsed": False, "panels": []})])


def _placed(shelves: Sequence[Shelf]) -> list[Panel]:
    placed: list[Panel] = []
    y = 0
    for height, panels in shelves:
        x = 0
        for width, panel in panels:
            place = {"x": x, "y": y, "w": width, "h": height}
            placed.append({"id": len(placed) + 1, **panel, "gridPos": place})
            x += width
        assert x <= COLUMNS, f"a shelf is {x} wide"
        y += height
    return placed


def dashboard(
    uid: str,
    title: str,
    description: str,
    variables: Sequence[Variable],
    shelves: Sequence[Shelf],
    *,
    alerts: Marks,
) -> dict[str, Any]:
    """A dashboard of Grafana 12 and 13 (the classic schema, which both load).

    ``alerts`` are marked on its time axes.
    """
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": [TAG],
        "editable": False,
        "graphTooltip": 1,
        "schemaVersion": 41,
        "version": 1,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "timepicker": {"refresh_intervals": ["5s", "10s", "30s", "1m", "5m"]},
        "timezone": "utc",
        "templating": {"list": [datasource(), *variables]},
        "annotations": _annotations(alerts),
        "links": _links(),
        "panels": _placed(shelves),
    }
