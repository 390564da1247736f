"""What really happened in a job: read from the lines that the job wrote about itself.

A truth file holds JSON lines of every rank (see ``bench/jobs/README.md``). Times are UTC, shares
are ratios of a window. The lost share compares a job with itself without the fault: how many steps
a window held against how many it could have held.
"""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]

NAMED, SILENT = 0.15, 0.08
"""A cause must be named from ``NAMED`` of a window lost, and must not below ``SILENT``."""

HANDOVER_S = 2e-6
"""Seconds from the end of a kernel to the start of the next in a queue that is never empty: healthy
GPTs whose GPU is always busy run 14,000 to 23,000 kernels/s that fill 95 to 97 % of the time. No
host, however fast, would save these."""

CAUSE_LAPS = {
    "data": ("data_wait", "data_inline"),
    "host": ("user", "logging", "gc"),
    "copy": ("h2d_copy", "d2h_copy"),
}
"""Host laps behind each cause, to split the loss of a job with two of them."""


@dataclass
class Rank:
    """One rank's lines, in order."""

    header: Row
    fault_from: float | None = None
    steps: list[Row] = field(default_factory=list)
    device: list[Row] = field(default_factory=list)
    pauses: list[Row] = field(default_factory=list)
    kernels: Row | None = None
    ended: bool = False

    @property
    def causes(self) -> tuple[str, ...]:
        """The accounts planted in this rank, empty for a healthy one."""
        fault = self.header["fault"]
        faults = [fault] if isinstance(fault, str) else fault
        return tuple(name for name in faults if name != "none")


@dataclass(frozen=True)
class Expected:
    """Causes that a verdict must name, and those that it may."""

    must: frozenset[str]
    may: frozenset[str]

    def holds(self, named: set[str]) -> bool:
        """Whether the named causes are a right answer."""
        return self.must <= named <= self.must | self.may


def load(path: Path) -> dict[int, Rank]:
    """Ranks by number; a line cut short by the end of the job is left out.

    Raises ``ValueError`` naming file and line where anything but the last line is broken, or where
    a rank's line comes before its header.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        lines = file.readlines()
    ranks: dict[int, Rank] = {}
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            if row["kind"] == "header":
                ranks[row["rank"]] = Rank(row)
            else:
                _add(ranks[row["rank"]], row)
        except (ValueError, KeyError) as error:
            if number == len(lines) and not line.endswith("\n"):
                break
            raise ValueError(f"{path}:{number}: {error!r}") from error
    return ranks


def _add(rank: Rank, row: Row) -> None:
    kind = row["kind"]
    if kind == "start":
        rank.fault_from = row["fault_from"]
    elif kind == "kernels":
        rank.kernels = row
    elif kind == "end":
        rank.ended = True
    elif kind in ("step", "gpu", "pause"):
        {"step": rank.steps, "gpu": rank.device, "pause": rank.pauses}[kind].append(row)


def paused(rank: Rank, t0: float, t1: float) -> float:
    """Seconds of legitimate pauses between ``t0`` and ``t1``."""
    return sum(_overlap(p["t0"], p["t1"], t0, t1) for p in rank.pauses)


def progress(rank: Rank, t0: float, t1: float) -> float:
    """Steps done between ``t0`` and ``t1``; a step counts by the part of it inside."""
    total = 0.0
    first = max(bisect_right([s["t"] for s in rank.steps], t0), 0)
    for step in rank.steps[first:]:
        if step["t0"] >= t1:
            break
        whole = step["t"] - step["t0"] - paused(rank, step["t0"], step["t"])
        a, b = max(step["t0"], t0), min(step["t"], t1)
        if whole > 0:
            total += max(b - a - paused(rank, a, b), 0.0) / whole
    return total


def lost(rank: Rank, t0: float, t1: float, step_s: float | None = None) -> float | None:
    """Share of the window, pauses apart, that the job without the fault would have saved.

    ``step_s`` are the seconds of a healthy step (see ``pace_as``); without it the pace that
    the job measured of itself before it began. A job bound by its launches has no healthy pace of
    its own: its kernels alone are what it could take. None where nothing is known.
    """
    step_s = step_s or kernel_step_s(rank) or float(rank.header.get("step_s") or 0)
    available = t1 - t0 - paused(rank, t0, t1)
    if not step_s or available <= 0:
        return None
    share = 1 - progress(rank, t0, t1) * step_s / available
    return float(min(max(share, 0.0), 1.0))


def kernel_step_s(rank: Rank) -> float | None:
    """Seconds of a step of a job bound by its launches if its kernels were queued back to back,
    where it profiled them."""
    if "launch" not in rank.causes or not rank.kernels or not rank.kernels["devices"]:
        return None
    devices = rank.kernels["devices"].values()
    total = max(d["kernel_s"] + HANDOVER_S * d.get("kernels", 0) for d in devices)
    return float(total) / int(rank.kernels["steps"])


def healthy_step_s(rank: Rank, skip_s: float = 5.0) -> float | None:
    """Mean seconds of a step of a healthy run, without pauses and its first ``skip_s`` seconds."""
    if not rank.steps:
        return None
    t0, t1 = rank.steps[0]["t0"] + skip_s, rank.steps[-1]["t"]
    done = progress(rank, t0, t1) if t1 > t0 else 0.0
    return (t1 - t0 - paused(rank, t0, t1)) / done if done else None


def pace_as(rank: Rank, healthy: Rank) -> float | None:
    """Seconds of a step that this job would take without its fault: the pace that it measured
    before it began, times how much slower the healthy job was in steady state than in its own
    measurement (a GPU that works all the time gets warm, and its clock falls). None where either is
    not known."""
    own, measured = rank.header.get("step_s"), healthy.header.get("step_s")
    steady = healthy_step_s(healthy)
    return float(own) * steady / float(measured) if own and measured and steady else None


def busy(rank: Rank, t0: float, t1: float) -> dict[str, float] | None:
    """Per device: share of the window with a kernel resident, in NCCL alone, in copies alone.

    From the kernel seconds a step that the job profiled at its end. None without them.
    """
    if not rank.kernels or not rank.kernels["steps"] or t1 <= t0:
        return None
    steps = progress(rank, t0, t1) / rank.kernels["steps"] / (t1 - t0)
    devices = rank.kernels["devices"]
    keys = {"kernel_s": "busy", "nccl_only_s": "nccl", "copy_only_s": "copy"}
    return {
        f"{device}.{name}": min(values[key] * steps, 1.0)
        for device, values in devices.items()
        for key, name in keys.items()
    }


def phases(rank: Rank, t0: float, t1: float) -> dict[str, float]:
    """Share of the window that the host spent in each lap."""
    found: dict[str, float] = {}
    for step in rank.steps:
        if step["t"] <= t0 or step["t0"] >= t1:
            continue
        at = step["t0"]
        for name, seconds in step["laps"]:
            inside = _overlap(at, at + seconds, t0, t1)
            found[name] = found.get(name, 0.0) + inside / (t1 - t0)
            at += seconds
    return found


def device_laps(rank: Rank, t0: float, t1: float) -> dict[str, float]:
    """The same on the device: time its queue stood between the events of each lap."""
    found: dict[str, float] = {}
    for step in rank.device:
        at = step["t"]
        for name, seconds in reversed(step["laps"]):
            inside = _overlap(at - seconds, at, t0, t1)
            found[name] = found.get(name, 0.0) + inside / (t1 - t0)
            at -= seconds
    return found


def step_at(rank: Rank, t: float) -> int | None:
    """The step in progress at ``t``."""
    index = bisect_right([s["t"] for s in rank.steps], t)
    if index == len(rank.steps) or rank.steps[index]["t0"] > t:
        return None
    return int(rank.steps[index]["step"])


def queue_at(rank: Rank, t: float) -> Row | None:
    """Ready and outstanding batches at the end of the last step before ``t``."""
    index = bisect_right([s["t"] for s in rank.steps], t) - 1
    if index < 0 or "ready" not in rank.steps[index]:
        return None
    return {key: rank.steps[index][key] for key in ("ready", "outstanding")}


def expected(rank: Rank, t0: float, t1: float, step_s: float | None = None) -> Expected:
    """What a verdict on the window has to say of this rank.

    A window across the onset of a fault may go either way. A job that stands still, and one at its
    power limit, lose what no step can tell: they must be named once they do.
    """
    causes, onset = rank.causes, rank.fault_from or t0
    if not causes or t1 <= onset:
        return Expected(frozenset(), frozenset())
    if "stalled" in causes:
        stands = not rank.steps or rank.steps[-1]["t"] <= t0
        # until it is sure: what the job waits for, its loader or its peers
        certain, possible = frozenset(causes), frozenset((*causes, "data", "comm"))
        return Expected(certain, frozenset()) if stands else Expected(frozenset(), possible)
    share = lost(rank, t0, t1, step_s)
    if "throttle" in causes:
        return Expected(frozenset(causes), frozenset())
    if share is None or t0 < onset:
        return Expected(frozenset(), frozenset(causes))
    shares = _split(rank, t0, t1, causes, share)
    must = frozenset(name for name, part in shares.items() if part >= NAMED)
    may = frozenset(name for name, part in shares.items() if SILENT <= part < NAMED)
    return Expected(must, may)


def _split(
    rank: Rank, t0: float, t1: float, causes: tuple[str, ...], share: float
) -> dict[str, float]:
    if len(causes) == 1:
        return {causes[0]: share}
    spent = phases(rank, t0, t1)
    laps = {name: sum(spent.get(lap, 0.0) for lap in CAUSE_LAPS.get(name, ())) for name in causes}
    total = sum(laps.values()) or 1.0
    return {name: share * part / total for name, part in laps.items()}


def _overlap(a0: float, a1: float, b0: float, b1: float) -> float:
    return max(min(a1, b1) - max(a0, b0), 0.0)
