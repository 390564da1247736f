"""What each kernel of an Nsight Compute report is bound by, and what to do about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from gpuwhy.evidence.terminal import Style, printable
from gpuwhy.evidence.traces.kernels import short
from gpuwhy.evidence.traces.ncu_csv import (
    COMPUTE,
    DRAM,
    LIMIT,
    MEMORY,
    OCCUPANCY,
    WAVES,
    Kernel,
)
from gpuwhy.evidence.traces.tables import Column, Row, Table

NEAR_LIMIT = 0.80
"""Share of the peak from which ncu itself says that a kernel is near it (SpeedOfLight rule)."""
LATENCY = 0.60
"""Below this share of both peaks a kernel is bound by latency (same rule)."""

ADVISED = 5
NOTE = "Durations are those under ncu, one kernel at a time: compare them, do not add them up."

BOUND_WORDS = {
    "near-limit": "near the card's limit",
    "memory-bound": "bound by memory",
    "compute-bound": "bound by compute",
    "latency-bound": "bound by latency",
    "too-small": "too small to fill the card",
    "unknown": "cannot tell: no throughput was recorded",
}


def bound_of(kernel: Kernel) -> str:
    """What keeps a kernel from being faster, by the rule of ncu's SpeedOfLight section."""
    memory, compute = kernel.percent(MEMORY), kernel.percent(COMPUTE)
    memory = kernel.percent(DRAM) if memory is None else memory
    if memory is None or compute is None:
        return "unknown"
    if max(memory, compute) >= NEAR_LIMIT:
        return "near-limit"
    if max(memory, compute) < LATENCY:
        waves = kernel.value(WAVES)
        return "too-small" if waves is not None and waves < 1 else "latency-bound"
    return "memory-bound" if memory > compute else "compute-bound"


NEXT = {
    "near-limit": "Only less work makes it faster: a fused or lower-precision kernel.",
    "memory-bound": "Move fewer bytes: fuse it with its neighbours, use bf16, reuse loads.",
    "compute-bound": "Use tensor cores (bf16, TF32, shapes in multiples of 8 or 16).",
    "latency-bound": "More warps in flight or fewer dependent loads; see the top stall.",
    "too-small": "More work for each launch: a larger batch, fused operators, CUDA Graphs.",
    "unknown": "Profile with --set basic or --section SpeedOfLight.",
}


STALLS = {
    "long scoreboard": "for global, local or texture memory",
    "short scoreboard": "for shared memory or special functions",
    "gmma": "for matrix products of the tensor cores",
    "math pipe throttle": "for a busy arithmetic pipe",
    "mio throttle": "for the queue of memory input and output",
    "lg throttle": "for the queue of global and local memory",
    "tex throttle": "for the queue of the texture unit",
    "barrier": "for other warps of their block",
    "membar": "for a memory barrier",
    "wait": "a fixed number of cycles for the instruction before",
    "dispatch stall": "for the dispatcher",
    "branch resolving": "for a branch",
    "no instruction": "for an instruction, or for one to be fetched",
    "imc miss": "for constants",
    "drain": "for their last stores",
    "sleeping": "asleep",
}
"""What warps wait for (Nsight Compute, Profiling Guide, warp stall reasons)."""

NO_STALLS = "This page of ncu has no stalls: ncu --import REPORT --csv --page raw has them."


def table(kernels: Sequence[Kernel]) -> Table:
    """A row for each kernel and launch shape: means over its launches, most time first."""
    groups: dict[tuple[str, str, str], list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        groups[kernel.name, kernel.grid, kernel.block].append(kernel)
    rows = [_row(members) for members in groups.values()]
    rows.sort(key=lambda row: -(row.get("time") or 0.0))
    note = "" if any("stall" in row for row in rows) else NO_STALLS
    return Table("kernels", "Kernels, and what each is bound by", COLUMNS, rows, note, shown=25)


COLUMNS = (
    Column("kernel", "kernel"),
    Column("count", "launches", "count"),
    Column("time", "time", "s"),
    Column("compute", "compute", "ratio"),
    Column("memory", "memory", "ratio"),
    Column("occupancy", "occupancy", "ratio"),
    Column("waves", "waves", "number"),
    Column("stall", "top stall"),
    Column("bound", "bound"),
)


def _row(members: Sequence[Kernel]) -> Row:
    first = members[0]
    stalls = [stall[0] for kernel in members if (stall := kernel.top_stall)]
    bounds = [bound_of(kernel) for kernel in members]
    bound = max(set(bounds), key=bounds.count)
    values = {
        "time": [kernel.duration_s for kernel in members],
        "compute": [kernel.percent(COMPUTE) for kernel in members],
        "memory": [kernel.percent(MEMORY) for kernel in members],
        "dram": [kernel.percent(DRAM) for kernel in members],
        "occupancy": [kernel.percent(OCCUPANCY) for kernel in members],
        "occupancy_limit": [kernel.percent(LIMIT) for kernel in members],
        "waves": [kernel.value(WAVES) for kernel in members],
    }
    row: Row = {"kernel": short(first.name), "name": first.name, "count": len(members)}
    row |= {"grid": first.grid, "block": first.block}
    for key, found in values.items():
        known = [value for value in found if value is not None]
        if known:
            total = sum(known) if key == "time" else sum(known) / len(known)
            row[key] = round(total, 9)
    if stalls:
        row["stall"] = max(set(stalls), key=stalls.count).replace("_", " ")
    why = BOUND_WORDS[bound]
    if row.get("stall") in STALLS:
        why += f"; its warps wait most {STALLS[row['stall']]}"
    return row | {"bound": bound, "next_action": NEXT[bound], "why": why}


def advice(table: Table, style: Style) -> str:
    """For the kernels with most time, in words: what bounds each and what to do about it."""
    lines = []
    for row in table.rows[:ADVISED]:
        lines.append(style.paint(printable(row["kernel"]), "bold") + ": " + row["why"])
        lines += style.column("next", row["next_action"])
    notes = [style.paint(note, "dim") for note in (table.note, NOTE) if note]
    return "\n".join([*lines, "", *notes]) + "\n"
