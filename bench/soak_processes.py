"""A /proc of files in which jobs come and go, and the source that knows them by it."""

from __future__ import annotations

from pathlib import Path

from bench.soak_jobs import LIFE_S
from tests.observe.proc_tree import ProcTree

from gpuwhy.observe.hub import Hub
from gpuwhy.observe.processes import ProcessSource

TRAINER = ["/usr/bin/python3.12", "/job/train.py"]
WORKERS = 2


class Churn:
    """Each second some job ends and another begins, with the workers that ``fork`` gives it."""

    def __init__(self, folder: Path, gpus: int) -> None:
        self.tree = ProcTree(folder / "proc")
        self.gpus = gpus
        self.hub = Hub()
        self.source = ProcessSource(proc=str(self.tree.root), cgroup_mount=str(folder / "cgroup"))
        self.hub.processes = self.source
        self._born = 0
        self._alive: list[list[int]] = [[] for _ in range(gpus)]

    def second(self) -> None:
        """One second more."""
        self.tree.now += 1.0
        second = int(self.tree.now)
        for gpu in range(self.gpus):
            if (second + gpu) % LIFE_S == 0:
                self._replace(gpu)
            listed = [{"pid": pid} for pid in self._alive[gpu][:1]]
            uuid = f"GPU-soak-{gpu}"
            self.hub.see(
                {"t": self.tree.now, "kind": "gpu_processes", "uuid": uuid, "processes": listed}
            )
        for observation in self.source.poll(self.tree.now):
            self.hub.see(observation)

    def kept(self) -> float:
        """Entries in every table that the source, its parts and the hub hold."""
        holders = [self.source, *vars(self.source).values(), self.hub, *vars(self.hub).values()]
        tables = [v for h in holders if hasattr(h, "__dict__") for v in vars(h).values()]
        sized = [table for table in tables if isinstance(table, dict | set | frozenset | list)]
        return float(sum(map(len, sized)))

    def _replace(self, gpu: int) -> None:
        for pid in self._alive[gpu]:
            self.tree.remove(pid)
        self._born += 1
        rank = 1000 + self._born * 8 % 60_000
        env = {"RANK": "0", "GPUWHY_RUN": f"job-{self._born}"}
        self.tree.add(rank, TRAINER, env=env, age=3.0, cgroup=f"0::/job-{self._born}\n")
        below = [rank + 1 + i for i in range(WORKERS)]
        for pid in below:
            self.tree.add(pid, TRAINER, ppid=rank, env=env, age=2.5)
        self._alive[gpu] = [rank, *below]
