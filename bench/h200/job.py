"""One planted job on its GPUs: started, watched through its truth, ended."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.h200.limits import Limits, own_cores, tuned
from bench.h200.processes import end, spawn, tell, wait_gone

from bench import truth

JOBS = Path(__file__).resolve().parents[1] / "jobs"
STEADY_STEPS = 3


class JobError(Exception):
    """The job did not come to run steadily."""


class Job:
    """A variant with its companions. ``gpus`` are indices, ``cores`` what it may use."""

    def __init__(
        self, variant: str, entry: dict[str, Any], gpus: list[int], cores: list[int], folder: Path
    ) -> None:
        self.variant, self.entry, self.gpus, self.cores = variant, entry, gpus, cores
        self.launch: dict[str, Any] = entry.get("launch", {})
        self.folder = folder
        self.temporary = folder / f"{variant}.tmp"
        self.temporary.mkdir(parents=True)
        self.truth_path = folder / f"{variant}.truth.jsonl"
        self.log_path = folder / f"{variant}.log"
        self.popens: list[subprocess.Popen[bytes]] = []
        self.limits: Limits | None = None
        self.notes: dict[str, Any] = {}

    def start(self, gate: Path) -> None:
        """Start its ranks; they touch the GPU once ``gate`` exists."""
        if "quota_lost" in self.launch or "cpuset_cores" in self.launch:
            self.limits = Limits(self.variant)
        script = str(JOBS / self.entry["job"])
        env = self._env() | {"JOB_GATE": str(gate)}
        way = self.launch.get("start") or ("torchrun" if len(self.gpus) > 1 else "plain")
        if way == "torchrun":
            count = str(len(self.gpus))
            run = ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
            self._spawn([sys.executable, *run, "--nproc-per-node", count, script], env)
        elif way == "ranks":
            port = str(free_port())
            for rank in range(len(self.gpus)):
                own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": len(self.gpus)}
                address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
                ranked = {key: str(value) for key, value in own.items()}
                self._spawn([sys.executable, script], env | ranked | address)
        else:
            self._spawn([sys.executable, script], env)

    def ranks(self) -> dict[int, truth.Rank]:
        """What the job has written so far."""
        with contextlib.suppress(OSError):
            return truth.load(self.truth_path)
        return {}

    def begun(self) -> bool:
        """Whether every rank's loop has begun."""
        ranks = self.ranks()
        return len(ranks) >= self._world() and all(rank.fault_from for rank in ranks.values())

    def steady(self, settle_s: float) -> bool:
        """Every rank has made some steps, and the loop is ``settle_s`` seconds old."""
        ranks = self.ranks().values()
        if len(ranks) < self._world() or any(len(r.steps) < STEADY_STEPS for r in ranks):
            return False
        return bool(time.time() - max(rank.steps[0]["t0"] for rank in ranks) > settle_s)

    def check(self) -> None:
        """Raise ``JobError`` with the end of its log if a process of it has ended."""
        for popen in self.popens:
            if (code := popen.poll()) is not None:
                tail = self.log_path.read_text(errors="replace").strip().splitlines()[-3:]
                raise JobError(f"{self.variant} ended with {code}: {' | '.join(tail)}")

    def ready(self, settle_s: float, start_s: float, tune_s: float) -> None:
        """Bring the job to where it can be recorded; raises ``JobError`` or ``OSError``."""
        self.wait(settle_s, start_s)
        self.disturb(tune_s)

    def wait(self, settle_s: float, seconds: float) -> None:
        """Wait until steady (or begun, for one recorded from its start); else ``JobError``."""
        until = time.monotonic() + seconds
        from_start = self.launch.get("record_from") == "start"
        while not (self.begun() if from_start else self.steady(settle_s)):
            self.check()
            if time.monotonic() > until:
                raise JobError(f"{self.variant} was not steady after {seconds:.0f} s")
            time.sleep(0.3)

    def disturb(self, seconds: float) -> None:
        """Plant what comes from outside, from companions on the GPU to CPU limits."""
        for variant in self.launch.get("beside", []):
            self._neighbour(variant)
        if self.limits and (count := self.launch.get("cpuset_cores")):
            self.limits.cores(self.cores[:count])
            self.notes["cpuset_cores"] = count
        if self.limits and (wanted := self.launch.get("quota_lost")):
            self._tune_quota(wanted, seconds)

    def kill_rank(self, number: int) -> None:
        """End one rank at once, as the kernel's memory killer does."""
        rank = self.ranks()[number]
        end([rank.header["pid"]], [])
        self.notes["killed"] = {"rank": number, "t": time.time()}

    def ask_to_stop(self) -> None:
        """SIGTERM to the ranks alone: they profile a few steps, then leave."""
        tell(rank.header["pid"] for rank in self.ranks().values())

    def stop(self, seconds: float) -> None:
        """Wait for the ranks to leave, then kill what is left and clean up."""
        pids = [rank.header["pid"] for rank in self.ranks().values()]
        self.notes["left_by_itself"] = wait_gone(pids, seconds)
        end([*pids, *(popen.pid for popen in self.popens)], self.popens)
        if self.limits:
            self.limits.remove()
        shutil.rmtree(self.temporary, ignore_errors=True)

    def _world(self) -> int:
        return len(self.gpus) if self.launch.get("start") != "plain" else 1

    def _env(self) -> dict[str, str]:
        env = {
            "JOB_VARIANT": self.variant,
            "TRUTH_FILE": str(self.truth_path),
            "TMPDIR": str(self.temporary),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "STORE_PORT": str(8765 + (self.gpus[0] if self.gpus else 0)),
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
            **self.launch.get("env", {}),
        }
        if os.environ.get("JOB_SCALE") != "tiny":
            env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, self.gpus))
        return env

    def _spawn(self, command: list[str], env: dict[str, str]) -> None:
        popen = spawn(command, env, self.log_path)
        self.popens.append(popen)
        if self.cores != own_cores():
            os.sched_setaffinity(popen.pid, self.cores)
        if self.limits:
            self.limits.join(popen.pid)

    def companions(self) -> None:
        """Start what the job needs beside it, before its gate opens."""
        for script in self.launch.get("companions", []):
            self._spawn([sys.executable, str(JOBS / script)], self._env())

    def _neighbour(self, variant: str) -> None:
        entry = json.loads((JOBS / "variants.json").read_text())[variant]
        path = self.folder / f"{self.variant}.beside.truth.jsonl"
        env = self._env() | {"JOB_VARIANT": variant, "TRUTH_FILE": str(path)}
        self._spawn([sys.executable, str(JOBS / entry["job"])], env)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            self.check()
            with contextlib.suppress(OSError):
                if any(len(rank.steps) > STEADY_STEPS for rank in truth.load(path).values()):
                    return
            time.sleep(0.3)
        raise JobError(f"{variant}, beside {self.variant}, did not run after 60 s")

    def _tune_quota(self, wanted: float, seconds: float, rounds: int = 4) -> None:
        """Set the CPU quota, look at what it costs, and mend it, so that ``wanted`` is lost."""
        assert self.limits
        cores = float(self.launch.get("quota_cores", 2.5))
        for _ in range(rounds):
            self.limits.quota(cores)
            time.sleep(seconds / rounds)
            now = time.time()
            share = truth.lost(self.ranks()[0], now - seconds / rounds * 0.6, now)
            self.notes["quota"] = {"cores": round(cores, 3), "lost": share}
            if share is not None and abs(share - wanted) < 0.03:
                return
            cores = tuned(cores, share or 0.0, wanted)
        self.limits.quota(cores)
        self.notes["quota"]["cores"] = round(cores, 3)


def free_port() -> int:
    """A TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
