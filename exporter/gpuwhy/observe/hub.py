"""What sources tell each other: who holds a GPU, which processes to sample, how short CPU is.

Everything observed passes through here on its way out; the hub only listens.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from gpuwhy.observe.changes import Changes
from gpuwhy.observe.nccl_ras import DEFAULT_ADDRESSES
from gpuwhy.observe.nccl_ras_pids import RankHere
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.processes import ProcessSource
from gpuwhy.observe.stacks import StackSource, Target

Address = tuple[str, int]

WORKER_LOOP = "_worker_loop"
"""The function of torch that every DataLoader's worker runs, whatever its process is called."""


class Hub:
    """Connects the sources that are there. ``see`` is called from the threads of all of them."""

    def __init__(self) -> None:
        self.processes: ProcessSource | None = None
        self.stacks: StackSource | None = None
        self._lock = threading.Lock()
        self._changes = Changes()
        self._roles: dict[int, str] = {}
        self._targets: list[Target] = []
        self._addresses: frozenset[Address] = frozenset()
        self._ranks: list[RankHere] = []
        self._waited: tuple[float, float] | None = None  # time, and PSI seconds by then
        self._pressure: float | None = None

    def see(self, observation: Observation) -> None:
        """Take note of one observation."""
        with self._lock:
            changing = self._changes.see(observation)
            if changing and self.stacks is not None:
                self.stacks.set_changing(changing)
            match observation["kind"]:
                case "gpu_processes":
                    self._see_holders(observation)
                case "processes":
                    self._see_jobs(observation["processes"])
                case "stack":
                    self._see_stack(observation)
                case "host":
                    self._see_host(observation)

    def pressure(self) -> float | None:
        """How short of CPU the host is: share of time in which a task waited for one, 0 to 1."""
        return self._pressure

    def ras_addresses(self) -> list[Address]:
        """Where the jobs' NCCL may answer."""
        return [*DEFAULT_ADDRESSES, *sorted(self._addresses)]

    def ras_ranks(self) -> list[RankHere]:
        """The ranks on this host, for those who know them by other PIDs."""
        return self._ranks

    def _see_holders(self, observation: Observation) -> None:
        """A graphics process is no job."""
        if self.processes is not None:
            held = [p["pid"] for p in observation["processes"] if p.get("type") != "graphics"]
            self.processes.jobs.gpu_processes(observation["uuid"], held)

    def _see_jobs(self, processes: list[dict[str, Any]]) -> None:
        self._roles = {process["pid"]: process["role"] for process in processes}
        targets = [target for process in processes if (target := target_of(process)) is not None]
        if self.stacks is not None and targets != self._targets:
            self.stacks.set_targets(targets)
        self._targets = targets
        if self.processes is not None:
            self._addresses = self.processes.ras_addresses()
            self._ranks = self.processes.ras_ranks()

    def _see_stack(self, observation: Observation) -> None:
        """A child whose stack shows the loop of a DataLoader's worker is one."""
        pid = observation["pid"]
        if self.processes is None or self._roles.get(pid, "worker") == "worker":
            return
        names = (str(frame[0]).rpartition(".")[2] for frame in observation["frames"])
        if observation.get("main") and WORKER_LOOP in names:
            self.processes.jobs.worker_seen(pid)

    def _see_host(self, observation: Observation) -> None:
        waited = observation.get("psi", {}).get("cpu_some")
        if waited is None:
            return
        t, before = observation["t"], self._waited
        self._waited = t, waited
        if before is not None and t > before[0]:
            self._pressure = min(1.0, max(0.0, (waited - before[1]) / (t - before[0])))


def target_of(process: Mapping[str, Any]) -> Target | None:
    """What of the process table is worth sampling: ranks, workers, and Python children that hold a
    GPU (their stacks will tell whether they are workers)."""
    role = process["role"]
    if role == "child" and process.get("gpus") and "python" in process:
        role = "worker"
    if role not in ("rank", "worker"):
        return None
    return Target(process["pid"], process["start"], role, process["rank_pid"])
