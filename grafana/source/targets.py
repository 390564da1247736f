"""Queries as panels hold them."""

from __future__ import annotations

from typing import Any

from grafana.source import queries

Target = dict[str, Any]

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def query(expr: str, legend: str = "__auto", *, table: bool = False, now: bool = False) -> Target:
    """A query over the time range; with ``table`` or ``now`` at its end only."""
    return {
        "datasource": DATASOURCE,
        "editorMode": "code",
        "expr": expr,
        "format": "table" if table else "time_series",
        "instant": table or now,
        "range": not (table or now),
        "legendFormat": legend,
    }


def lines(expr: str, name: str, *, of_gpu: bool = True, host: bool = False) -> list[Target]:
    """A line for each GPU and rank, named so; of a crowd its lowest, median and highest.

    ``of_gpu``: a series of GPUs, which gets its rank first; else one of ranks.
    """
    each = queries.with_rank(expr) if of_gpu else queries.named_rank(expr)
    where = " {{host}}" if host else ""
    return [
        query(queries.few(each, expr), f"{name} {queries.NAMES}{where}"),
        query(queries.crowd(expr), f"{name}, {{{{of}}}} of all"),
    ]


def strips(expr: str, *, host: bool = False) -> list[Target]:
    """A strip for each rank, in the order of their numbers; none of a crowd."""
    each = queries.in_order(queries.few(queries.named_rank(expr), expr))
    return [query(each, f"{queries.NAMES}{' {{host}}' if host else ''}")]
