"""Compare the ranks of each run in sight, and write into their rows who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuwhy.signals import lockstep
from gpuwhy.signals.gpu import activity, busy
from gpuwhy.signals.memory import Memory
from gpuwhy.signals.row import GpuRow, RunSignals

LOCKSTEP_S = 2
"""Ranks are compared over this many seconds to either side."""
IDLE_SM = 0.01
"""SM share of other processes up to which they do nothing: the driver gives whole percents."""


def with_waiting(memory: Memory, rows: Sequence[GpuRow], second: int) -> list[GpuRow]:
    """Compare the ranks of each run in sight and write the result into their rows."""
    ranks: dict[str, list[tuple[GpuRow, RunSignals]]] = {}
    for row in rows:
        for run in row.runs:
            ranks.setdefault(run.run, []).append((row, run))
    found: dict[int, tuple[lockstep.Waiting, bool]] = {}
    peers: dict[int, int] = {}
    for members in ranks.values():
        if not _one_job([run for _, run in members]):
            continue
        seen = [_activity(memory, row, run, second) for row, run in members]
        for _, run in members:
            peers[run.pid] = len({m.rank for _, m in members}) - 1
        if len({run.pid for _, run in members}) > 1:
            judged = lockstep.waiting(seen)
            late = {w.straggler for w in judged.values() if w.share >= lockstep.BUSY_GAP}
            for pid, verdict in judged.items():
                found[int(str(pid))] = (verdict, pid in late)
        for rank, (_, run) in zip(seen, members, strict=True):
            # A peer may be known by its process alone: its GPU is elsewhere, or was not read.
            alone = None if run.pid in found else lockstep.signature(rank)
            if alone is not None and (run.world_size or 1) > 1:
                found[run.pid] = (alone, False)
    return [
        replace(row, runs=tuple(_judged(r, found.get(r.pid), peers) for r in row.runs))
        for row in rows
    ]


def _one_job(members: Sequence[RunSignals]) -> bool:
    """Do they train together? Two jobs of one script that were started in the same second share
    the run's name, and are numbered by their GPUs, but neither was told of a world of several
    ranks, nor does NCCL know both."""
    return any((run.world_size or 1) > 1 or run.ahead is not None for run in members)


def _activity(memory: Memory, row: GpuRow, run: RunSignals, second: int) -> lockstep.RankActivity:
    if row.gpu is None:
        return lockstep.RankActivity(run.pid, None)
    track = memory.gpus[row.gpu.uuid]
    start, end = second - LOCKSTEP_S, second + 1.0 + LOCKSTEP_S
    means = activity(track, start, end)
    return lockstep.RankActivity(
        key=run.pid,
        busy=busy(track, start, end)[0],
        sm=means["sm"],
        tensor=means["tensor"],
        dram=means["dram"],
        power_w=row.gpu.power_w,
        pcie=_lesser(means["pcie_rx"], means["pcie_tx"]),
        alone=_alone(row, run),
    )


def _alone(row: GpuRow, run: RunSignals) -> bool:
    """Is the GPU's activity this rank's? A notebook that merely holds memory does not work."""
    alone = len({r.run for r in row.runs}) == 1 and not row.foreign
    return alone or (run.other_sm is not None and run.other_sm <= IDLE_SM)


def _judged(
    run: RunSignals, found: tuple[lockstep.Waiting, bool] | None, peers: Mapping[int, int]
) -> RunSignals:
    behind = run.behind is True and not peers.get(run.pid)
    if found is None:  # no peer on this host, and nothing of its own to judge by
        return replace(run, straggler=behind, peers=peers.get(run.pid, 0))
    verdict, late = found
    return replace(
        run,
        waiting=verdict.share,
        waiting_how=verdict.how,
        straggler=late or behind,
        peers=peers.get(run.pid, 0),
    )


def _lesser(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else min(a, b)
