"""Properties of single fields: names, colours, units, links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grafana.source import palette

Override = dict[str, Any]

FILLED = {"type": "color-background", "mode": "basic"}
"""A cell in the colour of its mapping; the text takes what contrasts with it."""


def by_name(name: str, **properties: Any) -> Override:
    """Properties of the field of this name."""
    return _override({"id": "byName", "options": name}, properties)


def by_pattern(pattern: str, **properties: Any) -> Override:
    """Properties of fields whose name fits a regular expression."""
    return _override({"id": "byRegexp", "options": f"/{pattern}/"}, properties)


_CUSTOM = {
    "line_width": "custom.lineWidth",
    "line_style": "custom.lineStyle",
    "fill": "custom.fillOpacity",
    "stacking": "custom.stacking",
    "axis": "custom.axisPlacement",
    "axis_label": "custom.axisLabel",
    "draw": "custom.drawStyle",
    "cell": "custom.cellOptions",
    "width": "custom.width",
    "align": "custom.align",
    "display": "displayName",
    "scale": "custom.scaleDistribution",
    "points": "custom.showPoints",
}


def _override(matcher: dict[str, Any], properties: Mapping[str, Any]) -> Override:
    found = []
    for name, value in properties.items():
        if name == "color":
            value = {"mode": "fixed", "fixedColor": value}
        found.append({"id": _CUSTOM.get(name, name), "value": value})
    return {"matcher": matcher, "properties": found}


def hidden(name: str) -> Override:
    """A column that only links need: hidden in Grafana 12, and as 13 has it."""
    found = by_name(name)
    everywhere = {"viz": True, "legend": True, "tooltip": True}
    found["properties"] = [
        {"id": "custom.hidden", "value": True},
        {"id": "custom.hideFrom", "value": everywhere},
    ]
    return found


def dashed(pattern: str, color: str = palette.LIMIT) -> Override:
    """A limit: a dashed grey line without filling."""
    style = {"fill": "dash", "dash": [8, 6]}
    return by_pattern(pattern, color=color, line_style=style, line_width=1, fill=0)


def colored(colors: Mapping[str, str]) -> list[Override]:
    """Fixed colours for fields whose names begin so."""
    return [by_pattern(f"^{name}\\b", color=color) for name, color in colors.items()]


def by_gpu() -> list[Override]:
    """A colour for each GPU of a host, the same in all panels; beyond eight they come again."""
    count = len(palette.LINES)
    return [
        by_pattern(f"GPU ({index}|{index + count}) ", color=color)
        for index, color in enumerate(palette.LINES)
    ]


def by_rank() -> list[Override]:
    """A colour for each rank of a run, whatever host it is on; beyond eight they come again."""
    count = len(palette.LINES)
    return [
        by_pattern(f"rank ({'|'.join(str(i + count * n) for n in range(4))})( |$)", color=color)
        for i, color in enumerate(palette.LINES)
    ]


def link(title: str, url: str) -> dict[str, Any]:
    """A link of a cell; it keeps data source, host and time range."""
    kept = "${datasource:queryparam}&${host:queryparam}&${__url_time_range}"
    return {"title": title, "url": f"{url}&{kept}", "targetBlank": False}
