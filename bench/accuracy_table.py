"""A table in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Table = Iterable[Sequence[str]]
"""Rows of cells."""


def table(heads: Sequence[str], rows: Table) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
