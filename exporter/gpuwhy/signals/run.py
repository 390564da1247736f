"""What is true of one rank of a run in one second, from everything that was observed of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuwhy.signals import contention, host, steps
from gpuwhy.signals.loader_index import loader_index
from gpuwhy.signals.memory import Memory
from gpuwhy.signals.row import InputQueue, RunSignals
from gpuwhy.signals.tracks import mean
from gpuwhy.signals.workers import workers

HOLD_S = 5.0
RAS_HOLD_S = 12.0
RAS_MARGIN = 3
"""Collectives: counts of ranks in step differ by what is in flight just now."""
STARTUP_S = 300.0
"""A job may prepare for this long before its first step is expected."""
WORKING, WORKING_S = 0.05, 3
"""... unless its GPU was this busy in so many seconds."""
STEP_PHASES = ("forward", "backward", "optimizer")

Process = Mapping[str, Any]


def run_signals(
    memory: Memory,
    rank: Process,
    second: int,
    table: Sequence[Process],
    tenancy: Mapping[str, Any] | None = None,
    gpu_busy: float | None = None,
) -> RunSignals:
    """Everything that is known of a rank in [second, second + 1). ``tenancy`` are the fields of
    RunSignals that tell who else is on its GPU; ``gpu_busy`` is that GPU's busy share."""
    pid = int(rank["pid"])
    stacks = memory.stacks.get(pid)
    phases = host.host_phases(stacks, second) if stacks else None
    below = contention.descendants(pid, table)
    loaders = [p for p in below if p.get("role") == "worker"]
    crew = workers(memory.stacks, loaders, second, phases.shares if phases else None)
    group = memory.cgroups.get(str(rank.get("cgroup")))
    limits = group.around(second, HOLD_S) if group else None
    found = steps.read_steps(memory.locals[pid], second) if pid in memory.locals else steps.Steps()
    machine = memory.host.around(second, HOLD_S) or {}
    age = second - float(rank["start"]) if rank.get("start") else None
    starting = _starting(memory, rank, age, phases, gpu_busy, found)
    if found.step is None:
        found = _from_workers(memory, loaders, second, crew.queue if crew else None, found)
    run = RunSignals(
        run=str(rank["run"]),
        rank=rank.get("rank"),
        pid=pid,
        age_s=age,
        starting=starting,
        phases=phases.shares if phases else None,
        contexts=phases.contexts if phases else {},
        functions=phases.functions if phases else {},
        calls=phases.calls if phases else {},
        loop_lines=phases.loop_lines if phases else 0.0,
        opaque=phases.opaque if phases else 0.0,
        samples=phases.samples if phases else 0,
        worker_function=crew.function if crew else None,
        stuck_s=host.stuck_for(stacks, second + 1.0) if stacks else None,
        cpu=rank.get("cpu"),
        main_cpu=rank.get("main_cpu"),
        run_delay=rank.get("run_delay"),
        worker_cpu=_per_head(contention.total_cpu(loaders), len(loaders)),
        worker_delay=_worker_delay(memory, loaders, second),
        workers_running=_share(loaders, "state", ("R", "D")),
        children_cpu=contention.total_cpu(below),
        queue=crew.queue if crew else None,
        throttled=contention.throttled(group, second) if group else None,
        quota_cores=limits.get("quota_cores") if limits else None,
        allowed_cores=contention.allowed_cores([rank], limits),
        workers=len(loaders),
        worker_cores=contention.allowed_cores(loaders, limits),
        host_cores=machine.get("cpus"),
        host_idle=contention.idle_cores(memory.host, second),
        cgroup_seen=limits is not None,
        holds_gpu=bool(rank.get("gpus")),
        unlimited=bool(limits and limits.get("unlimited") and not limits.get("hidden_parents")),
        step=found.step,
        step_t=found.t,
        step_name=found.name,
        epoch=found.epoch,
        total_steps=found.total,
        steps_per_second=found.per_second,
        step_still_s=found.still_s,
        refused=dict(memory.refusals.get(pid, {})),
        world_size=rank.get("world_size"),
        **(tenancy or {}),
    )
    return replace(run, **_collectives(memory, pid, second))


def _from_workers(
    memory: Memory,
    loaders: Sequence[Process],
    second: int,
    queue: InputQueue | None,
    counted: steps.Steps,
) -> steps.Steps:
    """What the workers tell of a loop without a counter; epoch and total are the loop's own."""
    seen = [memory.locals[p["pid"]] for p in loaders if p["pid"] in memory.locals]
    found = loader_index(seen, second, queue)
    return replace(found, epoch=counted.epoch, total=counted.total)


def _starting(
    memory: Memory,
    rank: Process,
    age: float | None,
    phases: host.HostPhases | None,
    gpu_busy: float | None,
    counted: steps.Steps,
) -> bool:
    """Young, and neither a training step, nor its counter, nor some seconds of GPU work have been
    seen of it (a jitted step may leave no frame, and a starved one little work)."""
    key = (int(rank["pid"]), float(rank.get("start") or 0.0))
    if (gpu_busy or 0.0) >= WORKING:
        memory.worked[key] = memory.worked.get(key, 0) + 1
    stepping = phases is not None and any(phases.shares.get(p) for p in STEP_PHASES)
    stepping = stepping or counted.surely_moves
    working = memory.worked.get(key, 0) >= WORKING_S
    if key in memory.started or stepping or working or age is None or age > STARTUP_S:
        memory.worked.pop(key, None)
        memory.started.add(key)
        return False
    return phases is not None


def _collectives(memory: Memory, pid: int, second: int) -> dict[str, Any]:
    """What NCCL RAS says of the rank: ahead of or behind the others, a peer gone."""
    answer = memory.nccl.around(second, RAS_HOLD_S)
    out: dict[str, Any] = {}
    for communicator in answer["communicators"] if answer else ():
        ranks = communicator["ranks"]
        mine = next((r for r in ranks if r.get("pid") == pid), None)
        if mine is None or len(ranks) < 2:
            continue
        counts = [sum(r["counts"].values()) for r in ranks if r.get("counts")]
        own = sum((mine.get("counts") or {}).values())
        out["peer_missing"] = any(r.get("missing") for r in ranks)
        if len(counts) > 1:
            out["ahead"] = own - min(counts) > RAS_MARGIN
            out["behind"] = max(counts) - own > RAS_MARGIN and own == min(counts)
    return out


def _worker_delay(memory: Memory, loaders: Sequence[Process], second: int) -> float | None:
    counted = _average(loaders, "run_delay")
    if counted is not None or not loaders:
        return counted
    return contention.unserved(memory.processes, loaders, second)


def _per_head(total: float | None, count: int) -> float | None:
    return total / count if total is not None and count else None


def _average(processes: Sequence[Process], name: str) -> float | None:
    return mean([p.get(name) for p in processes])


def _share(processes: Sequence[Process], name: str, values: tuple[str, ...]) -> float | None:
    known = [p[name] for p in processes if p.get(name)]
    return sum(v in values for v in known) / len(known) if known else None
