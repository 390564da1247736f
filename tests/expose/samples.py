"""Hand-made input of the exposition: a host on which everything is known, and recordings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpuwhy.expose.state import State
from gpuwhy.expose.view import Accounts, Seen, Self, View
from gpuwhy.observe.observation import SOURCES, Observation
from gpuwhy.observe.recording import read
from gpuwhy.signals.row import GpuRow, GpuSignals, InputQueue, RunSignals, Second, Wave

RECORDINGS = Path(__file__).parent.parent / "recordings"
T = 1_800_000_000
UUID = "GPU-1"
RUN = "job-7"


def gpu(**known: Any) -> GpuSignals:
    """A GPU with every field known."""
    full: dict[str, Any] = {
        "uuid": UUID,
        "gpu": 0,
        "mig": None,
        "name": "NVIDIA H200",
        "busy": 0.9,
        "busy_source": "gpm",
        "utilization": 0.91,
        "memory_utilization": 0.3,
        "sm_active": 0.8,
        "occupancy": 0.4,
        "tensor": 0.35,
        "dram": 0.25,
        "pcie_tx": 1e6,
        "pcie_rx": 2e6,
        "nvlink_tx": 3e6,
        "nvlink_rx": 4e6,
        "power_w": 650.0,
        "power_limit_w": 700.0,
        "power_default_w": 700.0,
        "temperature_c": 60.0,
        "memory_temperature_c": 70.0,
        "slowdown_c": 87.0,
        "sm_mhz": 1900.0,
        "attainable_sm_mhz": 1980.0,
        "mem_mhz": 3201.0,
        "max_mem_mhz": 3201.0,
        "memory_used": 1e10,
        "memory_total": 1.4e11,
        "reasons": frozenset({"sw_power_cap"}),
        "wave": Wave(0.1, 0.8, 300.0, 0.6, 0.8, T - 5.0),
    }
    return GpuSignals(**{**full, **known})


def rank(**known: Any) -> RunSignals:
    """A rank with every field known."""
    full: dict[str, Any] = {
        "run": RUN,
        "rank": 0,
        "pid": 100,
        "age_s": 300.0,
        "own_sm": 0.7,
        "other_sm": 0.1,
        "phases": {"data_wait": 0.6, "forward": 0.4},
        "contexts": {"evaluation": 0.1},
        "functions": {"data_wait": (("train", "/job/train.py", 58), 0.6)},
        "worker_function": (("Text.tokenize", "/job/data.py", 24), 0.9),
        "samples": 10,
        "stuck_s": 0.1,
        "cpu": 1.0,
        "main_cpu": 0.9,
        "run_delay": 0.05,
        "worker_cpu": 0.8,
        "workers_running": 1.0,
        "children_cpu": 3.2,
        "queue": InputQueue(4, 3.0, 0.5, 0.2, 8),
        "throttled": 0.5,
        "quota_cores": 4.0,
        "allowed_cores": 8,
        "step": 1200,
        "epoch": 3,
        "total_steps": 5000,
        "step_name": "step",
        "steps_per_second": 10.0,
        "waiting": 0.2,
        "ahead": False,
        "behind": True,
        "peer_missing": False,
        "peers": 1,
        "world_size": 2,
    }
    return RunSignals(**{**full, **known})


def second(
    t: int = T, rows: Iterable[GpuRow] | None = None, sources: Iterable[str] = SOURCES
) -> Second:
    """One second of one GPU with one rank."""
    row = GpuRow(gpu(), (rank(),), frozenset(sources), (4242,))
    return Second(t, tuple([row] if rows is None else rows), {})


VERDICTS: dict[str, Any] = {
    "schema": 1,
    "window": {"start": T - 60.0, "end": T + 1.0},
    "gpus": [
        {
            "gpu": 0,
            "uuid": UUID,
            "mig": None,
            "run": RUN,
            "rank": 0,
            "cause": "data",
            "causes": [
                {
                    "cause": "data",
                    "reason": "waiting",
                    "lost_ratio": 0.47,
                    "confidence": 0.9,
                    "evidence": [
                        {
                            "text": "the main thread waits in next(loader) 65 % of the time",
                            "value": 0.65,
                            "unit": "ratio",
                            "source": "stacks",
                        }
                    ],
                    "function": {"name": "Text.tokenize", "file": "/job/data.py", "line": 24},
                    "next_action": "Tokenise once, ahead of training.",
                }
            ],
            "accounts": {"compute": 0.53, "data": 0.47},
            "cannot_see": [{"signal": "cgroup", "why": "hidden", "remedy": "mount /sys/fs/cgroup"}],
        }
    ],
    "runs": [{"run": RUN, "ranks": [0], "cause": "data", "summary": "Starved by its loader."}],
}

PROCESS = {
    "cgroup": "/job",
    "pid": 100,
    "role": "rank",
    "run": RUN,
    "rank": 0,
    "user": "ada",
    "python": "3.12",
    "container": "c1",
    "pod": "p1",
    "namespace": "n1",
    "gpus": [UUID],
    "script": "train.py",
    "command": "python train.py",
    "start": T - 300.0,
}

FACTS: dict[str, Observation] = {
    "gpu_info": {
        "uuid": UUID,
        "gpu": 0,
        "name": "NVIDIA H200",
        "architecture": "Hopper",
        "bus": "0000:01:00.0",
        "numa": 0,
    },
    "gpu_limits": {
        "uuid": UUID,
        "max_sm_mhz": 1980.0,
        "power_max_w": 700.0,
        "shutdown_c": 92.0,
        "max_operating_c": 85.0,
        "pcie_generation": 5,
        "pcie_max_generation": 5,
        "pcie_width": 16,
        "pcie_max_width": 16,
        "nvlinks": 18,
        "nvlinks_active": 18,
        "mig_enabled": False,
    },
    "gpu_reasons": {"uuid": UUID, "seconds": {"sw_power_cap": 12.5}},
    "gpu_health": {
        "uuid": UUID,
        "xid_errors": 1,
        "ecc_volatile_corrected": 1,
        "ecc_volatile_uncorrected": 0,
        "ecc_aggregate_corrected": 2,
        "ecc_aggregate_uncorrected": 0,
        "row_remaps_corrected": 0,
        "row_remaps_uncorrected": 0,
        "row_remap_pending": False,
        "row_remap_failed": False,
        "pages_retired_pending": False,
        "recovery_action": "none",
        "pcie_replays": 3,
        "nvlink_errors": {"crc": 4},
    },
    "gpu_processes": {"uuid": UUID, "processes": [{"pid": 100, "memory": 10_000_000}]},
    "gpu": {"uuid": UUID, "energy_j": 5e6},
    "xid": {"uuid": UUID, "xid": 79},
    "processes": {"processes": [PROCESS]},
    "cgroup": {
        "path": "/job",
        "memory_current": 6_000_000,
        "memory_max": 8_000_000,
        "memory_high_events": 2,
        "oom_kills": 1,
        "psi": {"memory_some": 2.5, "memory_full": 0.5},
    },
    "host": {
        "cpus": 16,
        "cpu_seconds": {"user": 10.0, "idle": 90.0},
        "load1": 4.0,
        "running": 4,
        "blocked": 1,
        "context_switches": 1000,
        "interrupts": 500,
        "memory_total": 1 << 37,
        "memory_available": 1 << 36,
        "swap_total": 1 << 34,
        "swap_free": 1 << 33,
        "swap_in": 0,
        "swap_out": 0,
        "disk_read_bytes": 1,
        "disk_write_bytes": 2,
        "network_receive_bytes": 3,
        "network_transmit_bytes": 4,
        "psi": {"cpu_some": 1.5},
    },
    "network_port": {
        "device": "mlx5_0",
        "port": 1,
        "link_layer": "InfiniBand",
        "numa": 0,
        "up": True,
        "rate": 5e10,
        "receive_bytes": 7,
        "transmit_bytes": 8,
        "errors": {"symbol_error": 0},
        "congestion": {"port_xmit_wait": 9},
    },
    "source": {
        "source": "stacks",
        "up": True,
        "period_s": 0.1,
        "lag_s": 0.02,
        "share": 0.04,
        "cpu_s": 1.5,
        "reads": 100,
        "failures": 1,
        "lost_s": 0.4,
        "torn": 2,
        "dropped": 3,
    },
}
_KEYS = {
    "processes": "",
    "host": "",
    "cgroup": "/job",
    "network_port": "mlx5_0/1",
    "source": "stacks/None/None",
    "xid": f"{UUID}/79",
}


def view(**known: Any) -> View:
    """A view in which nothing is missing, two seconds after the second that it describes."""
    on = (UUID, RUN, 0)
    full: dict[str, Any] = {
        "now": T + 3.0,
        "second": second(),
        "recent": tuple(second(t) for t in range(T - 5, T + 1)),
        "accounts": Accounts(
            {(UUID, RUN, "data", "waiting"): 4.0, (UUID, RUN, "compute", ""): 6.0},
            {(*on, "data", "waiting"): 4.0, (*on, "compute", ""): 6.0},
            {UUID: 10.0},
            {on: 10.0},
        ),
        "seen": {on: T + 1.0},
        "gpus": {UUID: Seen(T + 1.0, "0", "")},
        "facts": {
            kind: {_KEYS.get(kind, UUID): {"t": T + 0.5, "kind": kind, **fact}}
            for kind, fact in FACTS.items()
        },
        "verdicts": VERDICTS,
        "last_t": T,
        "about": Self("0.1.0", "3.12", False, 60.0, 2.5, 0.02, 3),
    }
    return View(**{**full, **known})


class Clock:
    """Time that moves when told."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def replay(name: str, clock: Clock | None = None) -> State:
    """The state after a recording, one second after its last complete second."""
    clock = clock or Clock()
    state = State(recorded=True, clock=clock)
    _, observations = read(RECORDINGS / f"{name}.gpuwhy.gz")
    batch: list[Observation] = []
    for observation in observations:
        clock.now = max(clock.now, float(observation["t"]))
        batch.append(observation)
        if len(batch) == 200:
            state.feed(batch)
            batch = []
    state.feed(batch)
    state.finish()
    last = state.view().last_t
    assert last is not None
    clock.now = last + 2.0
    return state
