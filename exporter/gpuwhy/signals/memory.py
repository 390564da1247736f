"""What was observed lately, bounded: the only state that signals are made from."""

from __future__ import annotations

from typing import Any

from gpuwhy.observe.observation import Observation
from gpuwhy.signals.tracks import GpuTrack, Samples

GPU_KINDS = frozenset(
    (
        "gpu",
        "gpm",
        "ring",
        "gpu_info",
        "gpu_limits",
        "gpu_health",
        "gpu_processes",
        "sm_share",
        "gpu_reasons",
    )
)
LOCALS_S = 120.0
"""Step counters are read every 10 s: a rate needs several of them."""
FORGET_EVERY_S = 30.0
FORGET_AFTER_S = 60.0
"""What belongs to a process that is gone is dropped after this long."""

Life = tuple[int, float]
"""(PID, start): a PID may be used again."""


class Memory:
    """Buffers by GPU, process and cgroup. ``started`` holds the ranks that are known to train."""

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
        self.started: set[Life] = set()
        self.worked: dict[Life, int] = {}
        self._forgot = 0.0

    def set_back(self) -> Memory:
        """What remains where the clock was set back: what things are, not what they did when."""
        left = Memory()
        left.gpus = {
            uuid: GpuTrack(uuid, track.info, track.limits, track.health)
            for uuid, track in self.gpus.items()
        }
        left.sources, left.refusals = self.sources, self.refusals
        left.started, left.worked = self.started, self.worked
        return left

    def add(self, observation: Observation) -> None:
        """Take one observation; unknown kinds are passed over (a newer recorder wrote them)."""
        kind = observation["kind"]
        if kind in GPU_KINDS:
            uuid = observation["uuid"]
            self.gpus.setdefault(uuid, GpuTrack(uuid)).add(observation)
        elif kind == "processes":
            self.processes.add(observation)
            self._forget(observation)
        elif kind == "stack":
            self.stacks.setdefault(observation["pid"], Samples()).add(observation)
        elif kind == "locals":
            self.locals.setdefault(observation["pid"], Samples(LOCALS_S)).add(observation)
        elif kind == "cgroup":
            self.cgroups.setdefault(observation["path"], Samples()).add(observation)
        elif kind == "source":
            self._source(observation)
        elif kind == "nccl":
            self.nccl.add(observation)
        elif kind == "host":
            self.host.add(observation)

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

    def _forget(self, table: Observation) -> None:
        """Drop what belongs to processes and groups that are no longer in the table."""
        now = float(table["t"])
        if 0 <= now - self._forgot < FORGET_EVERY_S:
            return
        self._forgot = now
        lives = {(int(p["pid"]), float(p.get("start") or 0.0)) for p in table["processes"]}
        alive = {pid for pid, _ in lives}
        groups = {p.get("cgroup") for p in table["processes"]}
        for store in (self.stacks, self.locals):
            _drop_old(store, alive, now)
        _drop_old(self.cgroups, groups, now)
        self.refusals = {pid: said for pid, said in self.refusals.items() if pid in alive}
        self.started &= lives
        self.worked = {life: count for life, count in self.worked.items() if life in lives}


def _drop_old(store: dict[Any, Samples], alive: set[Any], now: float) -> None:
    for key, samples in list(store.items()):
        newest = samples.last()
        if key not in alive and (newest is None or now - float(newest["t"]) > FORGET_AFTER_S):
            del store[key]
