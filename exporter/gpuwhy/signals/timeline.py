"""Observations in, one ``Second`` of signal rows out for each UTC second that is complete.

A second is complete once the observations have moved LAG_S past it: stacks and rings arrive that
late. Rows are made by pure functions over the tracks; nothing here knows of accounts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuwhy.observe.observation import Observation
from gpuwhy.signals import contention, host, lockstep, steps
from gpuwhy.signals.gpu import activity, busy, gpu_signals
from gpuwhy.signals.row import GpuRow, GpuSignals, RunSignals, Second
from gpuwhy.signals.tracks import GpuTrack, Samples, mean
from gpuwhy.signals.wave import find_wave

LAG_S = 3.0
PROCESS_HOLD_S = 5.0
GPU_KINDS = frozenset(
    ("gpu", "gpm", "ring", "gpu_info", "gpu_limits", "gpu_health", "gpu_processes", "sm_share")
) | {"gpu_reasons"}
CLOCK_KINDS = frozenset(("gpu", "gpm", "processes", "host"))
"""Kinds whose time stamps move the watermark: sampled, not dug out of a ring."""
MAX_PIDS = 4096
STARTUP_S = 300.0
"""A job may prepare for this long before its first step is expected."""
WORKING, WORKING_S = 0.05, 3
STEP_PHASES = ("forward", "backward", "optimizer")
LOCKSTEP_S = 2
"""Ranks are compared over this many seconds to either side."""

Process = Mapping[str, Any]


class Timeline:
    """Bounded memory of what was observed, and the seconds made of it."""

    def __init__(self) -> None:
        self.gpus: dict[str, GpuTrack] = {}
        self.processes = Samples()
        self.cgroups: dict[str, Samples] = {}
        self.stacks: dict[int, Samples] = {}
        self.locals: dict[int, Samples] = {}
        self.nccl = Samples()
        self.host = Samples()
        self.sources: dict[str, Observation] = {}
        self.refusals: dict[int, dict[str, tuple[str, str]]] = {}
        self.started: set[tuple[int, float]] = set()
        self.worked: dict[tuple[int, float], int] = {}
        self._newest: float | None = None
        self._next: int | None = None

    def add(self, observation: Observation) -> None:
        """Take one observation; unknown kinds are passed over (a newer recorder wrote them)."""
        kind = observation["kind"]
        if kind in CLOCK_KINDS:
            self._tick(float(observation["t"]))
        if kind in GPU_KINDS:
            uuid = observation["uuid"]
            self.gpus.setdefault(uuid, GpuTrack(uuid)).add(observation)
        elif kind == "processes":
            self.processes.add(observation)
            self._forget_dead(observation)
        elif kind == "stack":
            self.stacks.setdefault(observation["pid"], Samples()).add(observation)
        elif kind == "locals":
            self.locals.setdefault(observation["pid"], Samples(120.0)).add(observation)
        elif kind == "cgroup":
            self.cgroups.setdefault(observation["path"], Samples()).add(observation)
        elif kind == "source":
            self._source(observation)
        elif kind in ("nccl", "host"):
            (self.nccl if kind == "nccl" else self.host).add(observation)

    def _tick(self, t: float) -> None:
        if self._next is None:
            self._next = int(t)
        self._newest = t if self._newest is None else max(self._newest, t)

    def _source(self, observation: Observation) -> None:
        if "pid" in observation:
            refused = self.refusals.setdefault(observation["pid"], {})
            refused.pop(observation["source"], None)
            if not observation.get("up", True):
                said = str(observation.get("why", "")), str(observation.get("remedy", ""))
                refused[observation["source"]] = said
        else:
            key = observation["source"]
            self.sources[f"{key} {observation['uuid']}" if "uuid" in observation else key] = (
                observation
            )

    def _forget_dead(self, table: Observation) -> None:
        if max(len(self.stacks), len(self.refusals), len(self.locals)) <= MAX_PIDS:
            alive = None
        else:
            alive = {p["pid"] for p in table["processes"]}
        for store in (self.stacks, self.locals, self.refusals):
            if alive is not None:
                for pid in [pid for pid in store if pid not in alive]:
                    del store[pid]

    def complete(self, *, to_the_end: bool = False) -> list[Second]:
        """The seconds that have become complete, in order; each is returned once."""
        if self._next is None or self._newest is None:
            return []
        limit = self._newest if to_the_end else self._newest - LAG_S
        out = []
        while self._next + 1 <= limit:
            if limit - self._next > 3600:  # a clock that jumped, or a recording that was paused
                self._next = int(limit) - 1
            second, self._next = self._next, self._next + 1  # first: one bad second is lost alone
            out.append(self._second(second))
        return out

    def _second(self, second: int) -> Second:
        table = self._table(second)
        rows = [self._gpu_row(track, second, table) for track in self._observed(second)]
        placed = {run.pid for row in rows for run in row.runs}
        rows += [
            self._row_without_gpu(rank, second, table)
            for rank in table
            if rank.get("role") == "rank" and rank["pid"] not in placed
        ]
        return Second(
            second,
            tuple(self._with_waiting(rows, second)),
            dict(self.sources),
            self.host.around(second, PROCESS_HOLD_S),
        )

    def _observed(self, second: int) -> list[GpuTrack]:
        seen = [t for t in self.gpus.values() if t.seen_in(second, second + 1.0)]
        return sorted(seen, key=lambda t: (t.info.get("gpu", 0), t.uuid))

    def _table(self, second: int) -> list[Process]:
        found = self.processes.around(second, PROCESS_HOLD_S)
        return list(found["processes"]) if found else []

    # -- rows ------------------------------------------------------------------------------------

    def _gpu_row(self, track: GpuTrack, second: int, table: Sequence[Process]) -> GpuRow:
        held = contention.holders(track, second)
        shares = contention.sm_shares(track, second)
        ranks = [p for p in table if self._on_gpu(p, track, held)]
        signals = gpu_signals(track, second, find_wave(track, second + 1.0))
        seen = self._seen(track, second, held, shares, signals)
        runs = [
            self._run(
                rank,
                second,
                table,
                {**self._tenancy(rank, ranks, held, shares, table), "gpu_busy": signals.busy},
            )
            for rank in ranks
        ]
        known = {int(p["pid"]) for p in ranks} | {
            int(d["pid"]) for p in ranks for d in contention.descendants(int(p["pid"]), table)
        }
        foreign = tuple(sorted((held or set()) - known))
        return GpuRow(signals, tuple(runs), seen | self._seen_of(runs), foreign)

    def _row_without_gpu(self, rank: Process, second: int, table: Sequence[Process]) -> GpuRow:
        run = self._run(rank, second, table, {"gpu_busy": None})
        return GpuRow(None, (run,), self._seen_of([run]) | {"processes"})

    def _on_gpu(self, process: Process, track: GpuTrack, held: set[int] | None) -> bool:
        if process.get("role") not in ("rank", "tenant"):
            return False
        if held is not None:
            return process["pid"] in held
        if process.get("gpus"):
            return track.uuid in process["gpus"]
        return len(self.gpus) == 1  # no process list, but there is only this GPU

    def _tenancy(
        self,
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

    def _run(
        self, rank: Process, second: int, table: Sequence[Process], tenancy: dict[str, Any]
    ) -> RunSignals:
        pid = int(rank["pid"])
        stacks = self.stacks.get(pid)
        phases = host.host_phases(stacks, second) if stacks else None
        below = contention.descendants(pid, table)
        loaders = [p for p in below if p.get("role") == "worker"]
        waits = phases.shares.get("data_wait") if phases else None
        crew = host.workers(self.stacks, [int(p["pid"]) for p in loaders], second, waits)
        group = self.cgroups.get(str(rank.get("cgroup")))
        limits = group.around(second, PROCESS_HOLD_S) if group else None
        found = steps.read_steps(self.locals[pid], second) if pid in self.locals else steps.Steps()
        machine = self.host.around(second, PROCESS_HOLD_S) or {}
        age = second - float(rank["start"]) if rank.get("start") else None
        run = RunSignals(
            run=str(rank["run"]),
            rank=rank.get("rank"),
            pid=pid,
            age_s=age,
            starting=self._starting(rank, age, phases, tenancy.pop("gpu_busy")),
            phases=phases.shares if phases else None,
            contexts=phases.contexts if phases else {},
            functions=phases.functions if phases else {},
            calls=phases.calls if phases else {},
            loop_lines=phases.loop_lines if phases else 0.0,
            samples=phases.samples if phases else 0,
            worker_function=crew.function if crew else None,
            stuck_s=host.stuck_for(stacks, second + 1.0) if stacks else None,
            cpu=rank.get("cpu"),
            main_cpu=rank.get("main_cpu"),
            run_delay=rank.get("run_delay"),
            worker_cpu=_per_head(contention.total_cpu(loaders), len(loaders)),
            worker_delay=_average(loaders, "run_delay"),
            workers_running=_share(loaders, "state", ("R", "D")),
            children_cpu=contention.total_cpu(below),
            queue=crew.queue if crew else None,
            throttled=contention.throttled(group, second) if group else None,
            quota_cores=limits.get("quota_cores") if limits else None,
            allowed_cores=contention.allowed_cores([rank], limits),
            workers=len(loaders),
            worker_cores=contention.allowed_cores(loaders, limits),
            host_cores=machine.get("cpus"),
            cgroup_seen=limits is not None,
            step=found.step,
            step_t=found.t,
            step_name=found.name,
            epoch=found.epoch,
            total_steps=found.total,
            steps_per_second=found.per_second,
            step_still_s=found.still_s,
            refused=dict(self.refusals.get(pid, {})),
            world_size=rank.get("world_size"),
            **tenancy,
        )
        return replace(run, **self._collectives(pid, second))

    def _starting(
        self,
        rank: Process,
        age: float | None,
        phases: host.HostPhases | None,
        gpu_busy: float | None,
    ) -> bool:
        """Young, and neither a training step nor some seconds of GPU work have been seen of it (a
        jitted step may leave no frame)."""
        key = (int(rank["pid"]), float(rank.get("start") or 0.0))
        if (gpu_busy or 0.0) >= WORKING:
            self.worked[key] = self.worked.get(key, 0) + 1
        stepping = phases is not None and any(phases.shares.get(p) for p in STEP_PHASES)
        working = self.worked.get(key, 0) >= WORKING_S
        if key in self.started or stepping or working or age is None or age > STARTUP_S:
            self.worked.pop(key, None)
            self.started.add(key)
            return False
        return phases is not None

    def _collectives(self, pid: int, second: int) -> dict[str, Any]:
        """What NCCL RAS says of the rank: ahead of or behind the others, a peer gone."""
        answer = self.nccl.around(second, 12.0)
        out: dict[str, Any] = {}
        for communicator in answer["communicators"] if answer else ():
            ranks = communicator["ranks"]
            mine = next((r for r in ranks if r.get("pid") == pid), None)
            if mine is None or len(ranks) < 2:
                continue
            counts = [sum(r["counts"].values()) for r in ranks if r.get("counts")]
            own = sum((mine.get("counts") or {}).values())
            out["peer_missing"] = any(r.get("missing") for r in ranks)
            if len(counts) > 1 and max(counts) > min(counts):
                out["ahead"], out["behind"] = own > min(counts), own == min(counts)
        return out

    # -- what served, and who waits --------------------------------------------------------------

    def _seen(
        self,
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

    def _seen_of(self, runs: Sequence[RunSignals]) -> frozenset[str]:
        found = {
            "processes": bool(runs),
            "stacks": any(r.phases is not None for r in runs),
            "cgroup": any(r.throttled is not None for r in runs),
            "nccl_ras": any(r.ahead is not None or r.peer_missing is not None for r in runs),
            "host": bool(self.host),
        }
        return frozenset(name for name, there in found.items() if there)

    def _with_waiting(self, rows: Sequence[GpuRow], second: int) -> list[GpuRow]:
        """Compare the ranks of each run in sight and write the result into their rows."""
        ranks: dict[str, list[tuple[GpuRow, RunSignals]]] = {}
        for row in rows:
            for run in row.runs:
                ranks.setdefault(run.run, []).append((row, run))
        found: dict[int, tuple[lockstep.Waiting, bool]] = {}
        peers: dict[int, int] = {}
        for members in ranks.values():
            seen = [self._activity(row, run, second) for row, run in members]
            for _, run in members:
                peers[run.pid] = len({m.rank for _, m in members}) - 1
            if len({run.pid for _, run in members}) > 1:
                judged = lockstep.waiting(seen)
                late = {w.straggler for w in judged.values() if w.share >= lockstep.BUSY_GAP}
                for pid, verdict in judged.items():
                    found[int(str(pid))] = (verdict, pid in late)
            elif (members[0][1].world_size or 1) > 1:
                alone = lockstep.signature(seen[0])
                if alone is not None:
                    found[members[0][1].pid] = (alone, False)
        return [
            replace(row, runs=tuple(_judged(r, found.get(r.pid), peers) for r in row.runs))
            for row in rows
        ]

    def _activity(self, row: GpuRow, run: RunSignals, second: int) -> lockstep.RankActivity:
        if row.gpu is None:
            return lockstep.RankActivity(run.pid, None)
        track = self.gpus[row.gpu.uuid]
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
            alone=len({r.run for r in row.runs}) == 1 and not row.foreign,
        )


def _judged(
    run: RunSignals, found: tuple[lockstep.Waiting, bool] | None, peers: Mapping[int, int]
) -> RunSignals:
    if found is None:
        return replace(run, peers=peers.get(run.pid, 0))
    verdict, late = found
    return replace(
        run,
        waiting=verdict.share,
        waiting_how=verdict.how,
        straggler=late or run.behind is True,
        peers=peers.get(run.pid, 0),
    )


def _per_head(total: float | None, count: int) -> float | None:
    return total / count if total is not None and count else None


def _average(processes: Sequence[Process], name: str) -> float | None:
    return mean([p.get(name) for p in processes])


def _share(processes: Sequence[Process], name: str, values: tuple[str, ...]) -> float | None:
    known = [p[name] for p in processes if p.get(name)]
    return sum(v in values for v in known) / len(known) if known else None


def _lesser(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else min(a, b)
