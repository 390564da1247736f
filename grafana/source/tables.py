"""Tables, put together of several queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from grafana.source.fields import Override, by_name, by_pattern
from grafana.source.panels import NEEDS_GPUWHY, Panel, panel
from grafana.source.targets import Target


def table(
    title: str,
    description: str,
    targets: Sequence[Target],
    *,
    columns: Mapping[str, str],
    unit: str = "none",
    missing: str = NEEDS_GPUWHY,
    overrides: Sequence[Override] = (),
    sort: str | None = None,
    rising: bool = False,
    numbered: str | None = None,
    most: int | None = None,
) -> Panel:
    """A table of the rows of one or several queries, put together by what they have in common.

    ``columns``: names of fields in their order, and what each is called; others are left out.
    Sorted by column ``sort``, largest first unless ``rising``, and cut after ``most`` rows. Rows
    that are alike in it stand in the order of the numbers in ``numbered``, a label: 2 before 10.
    """
    organize = {
        "id": "organize",
        "options": {
            "includeByName": dict.fromkeys(columns, True),
            "indexByName": {name: i for i, name in enumerate(columns)},
            "renameByName": dict(columns),
        },
    }
    steps: list[dict[str, Any]] = [{"id": "merge", "options": {}}] if len(targets) > 1 else []
    steps.append(organize)
    if numbered is not None:
        kind = {"targetField": numbered, "destinationType": "number"}
        steps.append({"id": "convertFieldType", "options": {"fields": {}, "conversions": [kind]}})
        steps.append(_sorted(numbered, desc=False))
        overrides = [*overrides, by_name(numbered, unit="none", decimals=0, align="left")]
    if sort is not None:
        steps.append(_sorted(sort, desc=not rising))
    if most is not None:
        steps.append({"id": "limit", "options": {"limitField": most}})
    made = panel(
        "table",
        title,
        description,
        targets,
        unit=unit,
        low=None,
        high=None,
        missing=missing,
        overrides=[by_pattern(".", noValue="–"), *overrides],
        options={"showHeader": True, "cellHeight": "sm"},
        defaults={
            "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": False},
            "color": {"mode": "thresholds"},
            "thresholds": {"mode": "absolute", "steps": [{"value": None, "color": "text"}]},
        },
    )
    made["transformations"] = steps
    return made


def _sorted(column: str, *, desc: bool) -> dict[str, Any]:
    """Grafana sorts stably: rows that are alike stay in the order that they have."""
    return {"id": "sortBy", "options": {"sort": [{"field": column, "desc": desc}]}}
