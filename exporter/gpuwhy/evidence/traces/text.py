"""The report of traces as text: the verdict as ``gpuwhy diagnose`` tells it, then the tables."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.evidence import report
from gpuwhy.evidence.terminal import Style, printable
from gpuwhy.evidence.traces.analysis import Analysis
from gpuwhy.evidence.traces.tables import Column, Table
from gpuwhy.evidence.traces.units import shown

LONGEST = 44
"""Characters of a cell; a kernel's name may have thousands."""


def render(analysis: Analysis, style: Style, files: Sequence[str]) -> str:
    """The whole report."""
    verdict = report.render(analysis.as_verdict(), style, f"from {', '.join(files)}")
    tables = [drawn(table, style) for table in analysis.tables]
    return "\n".join([verdict, *tables])


def drawn(table: Table, style: Style) -> str:
    """One table; columns that say nothing new are left out, and so are rows beyond ``shown``."""
    columns = [column for column in table.columns if _says_something(table, column)]
    cells = [[_cell(row.get(c.key), c) for c in columns] for row in table.rows[: table.shown]]
    heads = [column.title for column in columns]
    widths = [max(len(line[i]) for line in [heads, *cells]) for i in range(len(columns))]
    lines = [style.paint(table.title, "bold"), style.paint(_line(heads, widths, columns), "dim")]
    lines += [_line(row, widths, columns) for row in cells]
    if len(table.rows) > table.shown:
        more = f"  and {len(table.rows) - table.shown} more: --json or --html has all"
        lines.append(style.paint(more, "dim"))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _says_something(table: Table, column: Column) -> bool:
    values = [row.get(column.key) for row in table.rows]
    if column.key in ("rank", "gpu"):  # told only where there are several
        return len(set(values)) > 1
    return any(value is not None for value in values)


def _cell(value: object, column: Column) -> str:
    text = printable(shown(value, column.unit))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _line(cells: Sequence[str], widths: Sequence[int], columns: Sequence[Column]) -> str:
    padded = [
        cell.rjust(width) if column.unit else cell.ljust(width)
        for cell, width, column in zip(cells, widths, columns, strict=True)
    ]
    return "  " + "  ".join(padded)
