"""A host with eight GPUs, eight ranks and 64 workers, on a machine without a GPU.

The driver's library is the stand-in of the tests: what it answers is not looked at here, what its
calls cost is (the CPU time of each as measured on an H200). Ranks, workers and py-spy are real.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bench.h200.processes import descendants, end, spawn
from tests.standin_nvml.standin import build

JOB = Path(__file__).with_name("own_cost_job.py")
START_S = 240.0

COSTS_US = {
    # CPU of a call on an H200 (driver 580.159), as bench.own_cost_nvml tells it; where nvidia-ml-py
    # makes two of one (the first asks how much there is), half of it. The rest take less than 50.
    "nvmlGpmMetricsGet": 2040,
    "nvmlGpmSampleGet": 190,
    "nvmlDeviceGetSamples": 500,  # 260 for power, 1270 for utilisation, which is read less often
    "nvmlDeviceGetProcessUtilization": 1290,
    "nvmlDeviceGetMaxClockInfo": 1770,
    "nvmlDeviceGetApplicationsClock": 1060,
    "nvmlDeviceGetTemperatureThreshold": 330,
    "nvmlDeviceGetMigMode": 320,
    "nvmlDeviceGetTotalEnergyConsumption": 3240,
    "nvmlDeviceGetMemoryInfo_v2": 40,
    "nvmlDeviceGetFieldValues": 45,
    "nvmlEventSetWait_v2": 40,
    "nvmlDeviceGetPcieReplayCounter": 380,
    "nvmlDeviceGetMaxMigDeviceCount": 450,
}


class HostError(Exception):
    """The ranks or the exporter do not come up."""


class Host:
    """A context manager: within it the job runs. ``environment`` is what the exporter needs to see
    the GPUs of the stand-in."""

    def __init__(self, folder: Path, gpus: int, workers: int) -> None:
        self.folder, self.gpus, self.workers = folder, gpus, workers
        self.log = folder / "host.log"
        self.ranks: list[subprocess.Popen[bytes]] = []
        self._script = folder / "script"

    def __enter__(self) -> Host:
        build(self.folder)
        self.environment = {
            "LD_LIBRARY_PATH": str(self.folder),
            "STANDIN_NVML": str(self._script),
        }
        self.ranks = [self._start(rank) for rank in range(self.gpus)]
        self._write()
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        end([rank.pid for rank in self.ranks], self.ranks)

    def _start(self, rank: int) -> subprocess.Popen[bytes]:
        env = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(self.gpus),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
            "OMP_NUM_THREADS": "1",
        }
        return spawn([sys.executable, str(JOB), "--workers", str(self.workers)], env, self.log)

    def _write(self) -> None:
        """Tell the stand-in who holds which GPU, at one blow: it may be reading."""
        fresh = self._script.with_suffix(".new")
        fresh.write_text("\n".join(self._lines()) + "\n")
        fresh.replace(self._script)

    def _lines(self) -> list[str]:
        lines = [f"gpus {self.gpus}", "set wave_ms 140"]
        lines += [f"process {i} {rank.pid} 8000000000 compute" for i, rank in enumerate(self.ranks)]
        lines += [f"share {i} {rank.pid} 90 40" for i, rank in enumerate(self.ranks)]
        return lines + [f"cost {name} {us}" for name, us in COSTS_US.items()]

    def _wait(self) -> None:
        """Until every rank has its workers."""
        until = time.monotonic() + START_S
        while any(len(descendants([rank.pid])) <= self.workers for rank in self.ranks):
            if any(rank.poll() is not None for rank in self.ranks) or time.monotonic() > until:
                tail = self.log.read_text(errors="replace").strip().splitlines()[-3:]
                raise HostError(f"the ranks do not start: {' | '.join(tail)}")
            time.sleep(0.5)
