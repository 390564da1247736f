"""Traces in, the whole answer out: a verdict for each GPU, and the tables."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpuwhy.evidence.traces import (
    collectives,
    copies,
    kernels,
    lateness,
    launch,
    step_table,
    streams,
    units,
    verdict,
    waits,
)
from gpuwhy.evidence.traces.facts import Facts
from gpuwhy.evidence.traces.gpu import Gpu, gpus_of
from gpuwhy.evidence.traces.tables import Row, Table
from gpuwhy.evidence.traces.trace import Trace, TraceError

SCHEMA = 1
_SUFFIXES = re.compile(r"(?:\.pt)?(?:\.trace)?\.(?:json|sqlite|nsys-rep)(?:\.gz)?$")


@dataclass(slots=True)
class Analysis:
    """``ranks`` are per-GPU objects by rank and GPU, ``gpus`` in the same order."""

    run: str
    ranks: list[dict[str, Any]]
    tables: list[Table]
    gpus: list[Gpu]
    summary: str

    def as_json(self) -> dict[str, Any]:
        """The object of ``gpuwhy trace --json``."""
        return {
            "schema": SCHEMA,
            "run": self.run,
            "summary": self.summary,
            "ranks": self.ranks,
            "tables": {table.key: table.as_json() for table in self.tables},
        }

    def as_verdict(self) -> dict[str, Any]:
        """In the form of ``gpuwhy diagnose --json``, for whoever tells that."""
        ranks = [entry["rank"] for entry in self.ranks if entry["rank"] is not None]
        decisive = max(self.ranks, key=_weight)
        run = {"run": self.run, "ranks": sorted(ranks), "cause": decisive["cause"],
               "summary": self.summary}  # fmt: skip
        window = self.ranks[0]["window"]
        return {"schema": SCHEMA, "window": window, "gpus": self.ranks, "runs": [run]}


def analyse(traces: Sequence[Trace]) -> Analysis:
    """The traces of one run, one or several files.

    Raises TraceError where two files are of the same rank, or none has a GPU's work.
    """
    gpus = sorted(
        (gpu for trace in traces for gpu in gpus_of(trace)),
        key=lambda g: (g.trace.rank is None, g.trace.rank or 0, g.trace.source, g.device),
    )
    if not gpus:
        raise TraceError("no GPU did anything in these traces")
    _refuse_twins(gpus)
    facts = _facts(gpus)
    run = _name(traces)
    ranks = [verdict.entry(one, run) for one in facts]
    return Analysis(run, ranks, list(_tables(facts)), gpus, _summary(ranks, facts))


def _refuse_twins(gpus: Sequence[Gpu]) -> None:
    seen: dict[int, str] = {}
    for gpu in gpus:
        rank, name = gpu.trace.rank, gpu.trace.source
        if rank is not None and seen.setdefault(rank, name) != name:
            raise TraceError(
                f"{seen[rank]} and {name} are both of rank {rank}: give one run at a time "
                "(gpuwhy compare tells two runs apart)"
            )


def _facts(gpus: Sequence[Gpu]) -> list[Facts]:
    met = lateness.find(gpus)
    return [Facts(gpu, len(gpus) - 1, met, place) for place, gpu in enumerate(gpus)]


def _name(traces: Sequence[Trace]) -> str:
    """What the files' names have in common."""
    names = [_SUFFIXES.sub("", trace.source) for trace in traces]
    if len(names) == 1:
        return names[0]
    common = os.path.commonprefix(names)  # noqa: RUF071 - of names, not of paths
    return re.sub(r"[-_. ]*(?:rank)?[-_. 0-9]*$", "", common) or names[0]


def _who(facts: Facts) -> Row:
    rank, device = facts.gpu.trace.rank, facts.gpu.device
    return {"gpu": device} if rank is None else {"rank": rank, "gpu": device}


def _tables(facts: Sequence[Facts]) -> Iterator[Table]:
    """Every table that has a row."""
    whos = [_who(one) for one in facts]
    gpus = [one.gpu for one in facts]
    pairs = list(zip(whos, gpus, strict=True))
    met = facts[0].met
    steps = [row for who, gpu in pairs for row in step_table.table(who, gpu)]
    longest = [row for w, f in zip(whos, facts, strict=True)
               for row in waits.longest(w, f.gpu, f.culprits)]  # fmt: skip
    made = (
        (step_table.columns(steps), steps),
        (lateness.RANKS, lateness.rank_rows(whos, gpus, met) if met else []),
        (waits.WAITS, [row for who, gpu in pairs for row in waits.table(who, gpu)]),
        (waits.LONGEST_WAITS, longest),
        (launch.LAUNCHES, [row for who, gpu in pairs for row in launch.table(who, gpu)]),
        (kernels.OPERATORS, [row for who, gpu in pairs for row in kernels.by_operator(who, gpu)]),
        (kernels.DISTRIBUTION, [r for who, gpu in pairs for r in kernels.distribution(who, gpu)]),
        (kernels.TOP_KERNELS, [row for who, gpu in pairs for row in kernels.top(who, gpu)]),
        (copies.COPIES, [row for who, gpu in pairs for row in copies.table(who, gpu)]),
        (collectives.COLLECTIVES, [r for who, gpu in pairs for r in collectives.table(who, gpu)]),
        (streams.STREAMS, [row for who, gpu in pairs for row in streams.table(who, gpu)]),
    )
    for table, rows in made:
        if rows:
            yield Table(table.key, table.title, table.columns, rows, table.note, table.shown)


def _weight(entry: dict[str, Any]) -> float:
    largest = entry["causes"][0]["lost_ratio"] if entry["causes"] else 0.0
    return float(max(largest, entry["accounts"].get("unknown", 0.0)))


def _summary(ranks: Sequence[dict[str, Any]], facts: Sequence[Facts]) -> str:
    late = next((i for i, one in enumerate(facts) if one.straggler), None)
    entry = ranks[late] if late is not None else max(ranks, key=_weight)
    first = entry["causes"][0] if entry["causes"] else None
    text = "no cause takes a noticeable share of GPU time"
    if entry["cause"] == "unknown":
        text = f"cannot tell: {entry['accounts']['unknown']:.0%} of GPU time has no cause in sight"
    elif first:
        text = f"{first['lost_ratio']:.0%} of GPU time lost to {first['cause']}"
        text += f" on rank {entry['rank']}" if len(ranks) > 1 and entry["rank"] is not None else ""
    if late is not None and facts[late].late_s is not None:
        by = units.time(facts[late].late_s or 0.0)
        text += f"; the other ranks wait for rank {entry['rank']}, {by} late to the collectives"
    return text
