"""The rows of one second: each GPU with the runs on it, and the runs without a GPU in sight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuwhy.signals import contention
from gpuwhy.signals.gpu import gpu_signals
from gpuwhy.signals.memory import Memory
from gpuwhy.signals.row import GpuRow, GpuSignals, RunSignals, Second
from gpuwhy.signals.run import Process, run_signals
from gpuwhy.signals.tracks import GpuTrack
from gpuwhy.signals.waiting import with_waiting
from gpuwhy.signals.wave import find_wave

PROCESS_HOLD_S = 5.0
ENDED_S = 2.0


def second_of(memory: Memory, second: int) -> Second:
    table = _table(memory, second)
    tracks = _observed(memory, second)
    divided = {track.info.get("parent_uuid") for track in tracks}
    rows = [_gpu_row(memory, t, second, table, t.uuid in divided) for t in tracks]
    placed = {run.pid for row in rows for run in row.runs}
    rows += [
        _row_without_gpu(memory, rank, second, table)
        for rank in table
        if rank.get("role") == "rank" and rank["pid"] not in placed
    ]
    return Second(
        second,
        tuple(with_waiting(memory, rows, second)),
        dict(memory.sources),
        memory.host.around(second, PROCESS_HOLD_S),
    )


def _observed(memory: Memory, second: int) -> list[GpuTrack]:
    seen = [t for t in memory.gpus.values() if t.seen_in(second, second + 1.0)]
    return sorted(seen, key=lambda t: (t.info.get("gpu", 0), t.uuid))


def _table(memory: Memory, second: int) -> list[Process]:
    """The processes of the second, without those that the next look no longer finds: the second in
    which a rank ends is neither work nor a fault of it."""
    found = memory.processes.around(second, PROCESS_HOLD_S)
    if found is None:
        return []
    later = memory.processes.between(second + 1.0, second + 1.0 + ENDED_S)
    alive = {p["pid"] for p in later[0]["processes"]} if later else None
    return [p for p in found["processes"] if alive is None or p["pid"] in alive]


def _gpu_row(
    memory: Memory, track: GpuTrack, second: int, table: Sequence[Process], divided: bool
) -> GpuRow:
    held = contention.holders(track, second)
    shares = contention.sm_shares(track, second)
    ranks = [p for p in table if _on_gpu(memory, p, track, held)]
    signals = gpu_signals(track, second, find_wave(track, second + 1.0))
    seen = _seen_on(track, second, held, shares, signals)
    runs = [
        run_signals(
            memory,
            rank,
            second,
            table,
            _tenancy(rank, ranks, held, shares, table),
            signals.busy,
        )
        for rank in ranks
    ]
    known = {int(p["pid"]) for p in ranks} | {
        int(d["pid"]) for p in ranks for d in contention.descendants(int(p["pid"]), table)
    }
    foreign = tuple(sorted((held or set()) - known))
    signals = replace(signals, divided=divided) if divided else signals
    return GpuRow(signals, tuple(runs), seen | _seen_of(memory, runs), foreign)


def _row_without_gpu(
    memory: Memory, rank: Process, second: int, table: Sequence[Process]
) -> GpuRow:
    run = run_signals(memory, rank, second, table)
    return GpuRow(None, (run,), _seen_of(memory, [run]) | {"processes"})


def _on_gpu(memory: Memory, process: Process, track: GpuTrack, held: set[int] | None) -> bool:
    if process.get("role") not in ("rank", "tenant"):
        return False
    if held is not None:
        return process["pid"] in held
    if process.get("gpus"):
        return track.uuid in process["gpus"]
    return len(memory.gpus) == 1  # no process list, but there is only this GPU


def _tenancy(
    rank: Process,
    ranks: Sequence[Process],
    held: set[int] | None,
    shares: Mapping[int, float],
    table: Sequence[Process],
) -> dict[str, Any]:
    """Who else is on the GPU and how its SM time is divided."""
    own = {int(rank["pid"])} | {
        int(p["pid"]) for p in contention.descendants(int(rank["pid"]), table)
    }
    everyone = (held or set()) | {int(p["pid"]) for p in ranks} | set(shares)
    others = tuple(sorted(everyone - own))
    own_shares = [v for pid, v in shares.items() if pid in own]
    return {
        "own_sm": sum(own_shares) if own_shares else None,
        "other_sm": sum(v for pid, v in shares.items() if pid not in own) if shares else None,
        "others": others,
        "other_runs": tuple(sorted({str(p["run"]) for p in ranks if p["run"] != rank["run"]})),
    }


def _seen_on(
    track: GpuTrack,
    second: int,
    held: set[int] | None,
    shares: Mapping[int, float],
    signals: GpuSignals,
) -> frozenset[str]:
    start, end = second, second + 1.0
    rings = {n: r for n, r in track.rings.items() if any(r.values(start, end))}
    found = {
        "nvml": bool(track.samples.between(start, end)),
        "gpm": signals.busy_source == "gpm",
        "utilization_ring": "utilization" in rings,
        "power_ring": "power" in rings,
        "gpu_processes": held is not None,
        "sm_share": bool(shares),
    }
    return frozenset(name for name, there in found.items() if there)


def _seen_of(memory: Memory, runs: Sequence[RunSignals]) -> frozenset[str]:
    found = {
        "processes": bool(runs),
        "stacks": any(r.phases is not None for r in runs),
        "cgroup": any(r.throttled is not None for r in runs),
        "nccl_ras": any(r.ahead is not None or r.peer_missing is not None for r in runs),
        "host": bool(memory.host),
    }
    return frozenset(name for name, there in found.items() if there)
