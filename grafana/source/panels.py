"""Panels of every kind that the dashboards use, as Grafana's JSON model has them."""

from __future__ import annotations

import itertools
import string
from collections.abc import Mapping, Sequence
from typing import Any

from grafana.source import palette
from grafana.source.fields import Override, by_name, by_pattern
from grafana.source.targets import DATASOURCE, Target

Panel = dict[str, Any]

NEEDS_GPUWHY = "needs gpuwhy"
"""Shown by a panel of gpuwhy's own where there is no sample: absent, not zero."""
NOT_TOLD = "not told by this GPU or its exporter"
"""Shown by a panel of the canonical GPU series where there is no sample."""
LEGEND_WIDTH = 380
AXIS_WIDTH = 64
"""The same in all panels below one another, so that their time axes lie below one another too."""


def panel(
    kind: str,
    title: str,
    description: str,
    targets: Sequence[Target],
    *,
    unit: str,
    low: float | None,
    high: float | None,
    missing: str,
    overrides: Sequence[Override],
    options: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> Panel:
    refs = string.ascii_uppercase
    field: dict[str, Any] = {"unit": unit, "noValue": missing, **defaults}
    if low is not None:
        field["min"] = low
    if high is not None:
        field["max"] = high
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "targets": [{**t, "refId": ref} for ref, t in zip(refs, targets, strict=False)],
        "fieldConfig": {"defaults": field, "overrides": list(overrides)},
        "options": dict(options),
    }


def timeseries(
    title: str,
    description: str,
    targets: Sequence[Target],
    *,
    unit: str,
    low: float | None = 0,
    high: float | None = None,
    missing: str = NEEDS_GPUWHY,
    overrides: Sequence[Override] = (),
    stacked: bool = False,
    ranked: bool = True,
    narrow: bool = False,
    decimals: int | None = None,
) -> Panel:
    """Curves over time. A gap is time without samples and stays a gap.

    Curves of one name each have a colour of their own, in order, unless ``overrides`` say another.
    ``ranked``: the legend's largest first. ``narrow``: for half a page, with its legend below.
    """
    custom = {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 0 if stacked else 1,
        "fillOpacity": 85 if stacked else 0,
        "showPoints": "never" if stacked else "auto",
        "pointSize": 4,
        "spanNulls": False,
        "axisWidth": AXIS_WIDTH,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
    }
    legend: dict[str, Any] = {"showLegend": True, "calcs": ["lastNotNull", "mean"]}
    if narrow:
        legend |= {"displayMode": "list", "placement": "bottom"}
    else:
        legend |= {"displayMode": "table", "placement": "right", "width": LEGEND_WIDTH}
    if ranked and not narrow:
        legend |= {"sortBy": "Mean", "sortDesc": True}
    color = {"mode": "shades", "fixedColor": palette.LINES[0]}
    defaults: dict[str, Any] = {"custom": custom, "color": color}
    if decimals is not None:
        defaults["decimals"] = decimals
    return panel(
        "timeseries",
        title,
        description,
        targets,
        unit=unit,
        low=low,
        high=high,
        missing=missing,
        overrides=[*_in_order(targets), *_crowd(targets), *overrides],
        options={"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}},
        defaults=defaults,
    )


def _in_order(targets: Sequence[Target]) -> list[Override]:
    names = [str(t["legendFormat"]) for t in targets if "{{" not in t["legendFormat"]]
    colors = itertools.cycle(palette.LINES)
    return [by_name(name, color=color) for name, color in zip(names, colors, strict=False)]


def _crowd(targets: Sequence[Target]) -> list[Override]:
    """Dashes for the lowest and the highest of a crowd, round its median."""
    style = {"fill": "dash", "dash": [4, 4]}
    several = any("{{of}}" in t["legendFormat"] for t in targets)
    return [by_pattern("(lowest|highest) of all", line_style=style)] if several else []


def stat(
    title: str,
    description: str,
    targets: Sequence[Target],
    *,
    unit: str,
    low: float | None = None,
    high: float | None = None,
    missing: str = NEEDS_GPUWHY,
    overrides: Sequence[Override] = (),
    mappings: Sequence[dict[str, Any]] = (),
    steps: Sequence[tuple[float | None, str]] = ((None, "text"),),
    field: str = "",
    filled: bool = False,
    size: int | None = None,
    decimals: int | None = None,
    names: bool = False,
) -> Panel:
    """A number or word. ``field``: the text of this column of a table query."""
    defaults: dict[str, Any] = {
        "mappings": list(mappings),
        "color": {"mode": "thresholds"},
        "thresholds": {
            "mode": "absolute",
            "steps": [{"value": value, "color": color} for value, color in steps],
        },
    }
    if decimals is not None:
        defaults["decimals"] = decimals
    options: dict[str, Any] = {
        "reduceOptions": {
            "calcs": ["lastNotNull"],
            "values": False,
            "fields": f"/^{field}$/" if field else "",
        },
        "colorMode": "background_solid" if filled else "value",
        "graphMode": "none",
        "justifyMode": "center",
        "textMode": "value_and_name" if names else "value",
        "orientation": "auto",
        "wideLayout": True,
    }
    if size is not None:
        options["text"] = {"valueSize": size}
    return panel(
        "stat",
        title,
        description,
        targets,
        unit=unit,
        low=low,
        high=high,
        missing=missing,
        overrides=overrides,
        options=options,
        defaults=defaults,
    )


def states(
    title: str,
    description: str,
    targets: Sequence[Target],
    *,
    mappings: Sequence[dict[str, Any]],
    unit: str = "none",
    missing: str = NEEDS_GPUWHY,
    overrides: Sequence[Override] = (),
    legend: bool = True,
) -> Panel:
    """What held when: one strip for each series."""
    return panel(
        "state-timeline",
        title,
        description,
        targets,
        unit=unit,
        low=None,
        high=None,
        missing=missing,
        overrides=overrides,
        options={
            "mergeValues": True,
            "showValue": "auto",
            "alignValue": "left",
            "rowHeight": 0.85,
            "perPage": 16,
            "legend": {"showLegend": legend, "displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "single", "sort": "none"},
        },
        defaults={
            "mappings": list(mappings),
            "color": {"mode": "thresholds"},
            "thresholds": {
                "mode": "absolute",
                "steps": [{"value": None, "color": palette.NEUTRAL}],
            },
            "custom": {"fillOpacity": 80, "lineWidth": 0},
        },
    )


def bars(
    title: str,
    description: str,
    targets: Sequence[Target],
    *,
    unit: str,
    missing: str = NEEDS_GPUWHY,
    overrides: Sequence[Override] = (),
    high: float | None = None,
    decimals: int | None = None,
) -> Panel:
    """One bar for each series, at the end of the time range."""
    defaults: dict[str, Any] = {
        "color": {"mode": "fixed", "fixedColor": palette.NEUTRAL},
        "thresholds": {"mode": "absolute", "steps": [{"value": None, "color": palette.NEUTRAL}]},
    }
    if decimals is not None:
        defaults["decimals"] = decimals
    return panel(
        "bargauge",
        title,
        description,
        targets,
        unit=unit,
        low=0,
        high=high,
        missing=missing,
        overrides=overrides,
        options={
            "displayMode": "basic",
            "orientation": "horizontal",
            "valueMode": "text",
            "namePlacement": "left",
            "showUnfilled": False,
            "reduceOptions": {"calcs": ["lastNotNull"], "values": False, "fields": ""},
            # No titleSize: Grafana makes room for names of a size that it chooses itself.
            "text": {"valueSize": 14},
            "minVizHeight": 14,
            "maxVizHeight": 26,
            "sizing": "auto",
        },
        defaults=defaults,
    )


def text(title: str, description: str, content: str) -> Panel:
    """A few lines of Markdown."""
    return {
        "type": "text",
        "title": title,
        "description": description,
        "options": {"mode": "markdown", "content": content},
    }
