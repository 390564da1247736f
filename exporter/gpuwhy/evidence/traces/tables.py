"""A table of a report: rows of plain values in base units, drawn by whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, SupportsFloat

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """``unit``: ``s``, ``bytes``, ``bytes/s``, ``ratio``, ``1/s``, ``count``, ``utc`` (Unix s),
    or none for text."""

    key: str
    title: str
    unit: str = ""


@dataclass(slots=True)
class Table:
    """A value that is not known is absent from its row."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: list[Row] = field(default_factory=list)
    note: str = ""
    shown: int = 12  # rows in a terminal; the rest is in JSON

    def as_json(self) -> dict[str, Any]:
        """The table as it stands in ``--json``."""
        return {
            "title": self.title,
            "columns": [{"key": c.key, "title": c.title, "unit": c.unit} for c in self.columns],
            "rows": self.rows,
        } | ({"note": self.note} if self.note else {})


WHO = (Column("rank", "rank"), Column("gpu", "gpu"))
"""The columns that say of which rank and GPU a row is."""


def seconds(ns: SupportsFloat) -> float:
    """ns to s, without noise below the clock's resolution."""
    return round(float(ns) / 1e9, 9)


def ratio(part: SupportsFloat, whole: SupportsFloat) -> float:
    """A share, to four digits."""
    return round(float(part) / float(whole), 4) if float(whole) else 0.0


def quantile(values: Any, share: float) -> float:
    """A quantile in seconds of values in ns."""
    import numpy as np

    return seconds(float(np.quantile(values, share)))
