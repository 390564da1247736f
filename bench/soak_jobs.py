"""Jobs that come and go on a few GPUs, fast: what an observer would tell of thousands of them.

Each life is a stretch of a real recording under names of its own: new PIDs (which in the end come
round again), a new run, new control group. Time passes as fast as it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import read

RECORDING = Path(__file__).resolve().parents[1] / "tests/recordings/data_slow.gpuwhy.gz"
LIFE_S = 4
SKIP_S = 8
PIDS = 60_000
"""PIDs are used again after so many."""
START = 1_800_000_000
STACKS_KEPT = 10
"""One stack in so many: the recording's were taken at 100 Hz."""

Table = list[dict[str, Any]]


class Jobs:
    """``second()`` gives the observations of the next second, each of ``gpus`` GPUs under a job of
    ``LIFE_S`` seconds; the lives of neighbours end in different seconds."""

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        self.now = START
        self.lives = 0
        self._script = _seconds()
        self._born = [-1] * gpus  # number of the life on each GPU

    def second(self) -> list[Observation]:
        """In order of time."""
        found: list[Observation] = []
        tables: Table = []
        for gpu in range(self.gpus):
            age = (self.now - START + gpu) % LIFE_S
            if age == 0 or self._born[gpu] < 0:
                self._born[gpu], self.lives = self.lives, self.lives + 1
            for observation in self._script[age]:
                made = self._renamed(observation, gpu, age)
                if made["kind"] == "processes":
                    tables += made["processes"]
                else:
                    found.append(made)
            found.append(self._refusal(gpu))
        found.append({"t": self.now + 0.3, "kind": "processes", "processes": tables})
        self.now += 1
        return sorted(found, key=lambda observation: float(observation["t"]))

    def _renamed(self, observation: Observation, gpu: int, age: int) -> Observation:
        out = {name: self._value(name, value, gpu, age) for name, value in observation.items()}
        out["t"] = self.now + observation["t"] % 1
        if out["kind"] == "sm_share":
            out["shares"] = [[self._pid(pid, gpu), *rest] for pid, *rest in out["shares"]]
        return out

    def _value(self, name: str, value: Any, gpu: int, age: int) -> Any:
        life = self._born[gpu]
        if name in ("pid", "ppid", "rank_pid"):
            return self._pid(value, gpu)
        if name == "pids":
            return [self._pid(pid, gpu) for pid in value]
        if name in ("run", "cgroup", "path"):
            return f"/job-{life}" if name != "run" else f"job-{life}"
        if name in ("uuid", "gpus"):
            uuid = f"GPU-soak-{gpu}"
            return uuid if name == "uuid" else [uuid]
        if name == "gpu":
            return gpu
        if name == "start":
            return float(self.now - age - 3)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return [{k: self._value(k, v, gpu, age) for k, v in one.items()} for one in value]
        return value

    def _pid(self, pid: int, gpu: int) -> int:
        return 1000 + (self._born[gpu] * 16 + pid % 16) % PIDS if pid > 1 else pid

    def _refusal(self, gpu: int) -> Observation:
        """Of each job one process may not be looked into."""
        return {
            "t": self.now + 0.5,
            "kind": "source",
            "source": "stacks",
            "pid": self._pid(7, gpu),
            "up": False,
            "why": "not permitted",
            "remedy": "add SYS_PTRACE",
        }


def _seconds() -> list[list[Observation]]:
    """The observations of ``LIFE_S`` seconds from the middle of the recording."""
    out: list[list[Observation]] = [[] for _ in range(LIFE_S)]
    first = next(int(o["t"]) for o in read(RECORDING)[1] if o["kind"] == "processes")
    for observation in _thinned():
        age = int(observation["t"]) - first - SKIP_S
        if observation["kind"] in ("gpu_info", "gpu_limits"):
            out[0].append(observation)
        elif 0 <= age < LIFE_S:
            out[age].append(observation)
    return out


def _thinned() -> Iterator[Observation]:
    stacks = 0
    for observation in read(RECORDING)[1]:
        stacks += observation["kind"] == "stack"
        if observation["kind"] != "stack" or stacks % STACKS_KEPT == 0:
            yield observation
