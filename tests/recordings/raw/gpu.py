"""What the driver told ten times a second, GPM among it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.recordings.raw.folder import MIB, Raw

from gpuwhy.observe.observation import Observation

GPM_NAMES = {
    "graphics_util": ("graphics", 0.01),
    "sm_util": ("sm", 0.01),
    "sm_occupancy": ("occupancy", 0.01),
    "any_tensor": ("tensor", 0.01),
    "dram_bw": ("dram", 0.01),
    "pcie_tx": ("pcie_tx", MIB),
    "pcie_rx": ("pcie_rx", MIB),
    "nvlink_tx": ("nvlink_tx", MIB),
    "nvlink_rx": ("nvlink_rx", MIB),
}


def gpu_observations(raw: Raw) -> Iterator[Observation]:
    for gpu in range(raw.gpus):
        yield {
            "t": raw.start,
            "kind": "gpu_info",
            "uuid": raw.uuid(gpu),
            "gpu": gpu,
            "name": "NVIDIA H200",
            "architecture": "Hopper",
            "memory_total": 143771 * MIB,
        }
        yield {
            "t": raw.start,
            "kind": "gpu_limits",
            "uuid": raw.uuid(gpu),
            "max_sm_mhz": 1980,
            "max_mem_mhz": 3201,
            "power_limit_w": 700.0,
            "power_default_w": 700.0,
            "power_max_w": 700.0,
        }
    for before, row in zip([None, *raw.nvml], raw.nvml, strict=False):
        for gpu, values in enumerate(row["gpus"]):
            yield gpu_sample(raw.uuid(gpu), row["t"], values)
            if before is not None and values.get("gpm"):
                yield gpm_sample(raw.uuid(gpu), row["t"], row["t"] - before["t"], values["gpm"])
        for gpu, slow in enumerate(row.get("slow") or []):
            yield {
                "t": row["t"],
                "kind": "gpu_processes",
                "uuid": raw.uuid(gpu),
                "processes": [
                    {"pid": pid, "memory": memory, "type": "compute"}
                    for pid, memory in slow.get("procs") or []
                ],
            }


def gpu_sample(uuid: str, t: float, values: dict[str, Any]) -> Observation:
    return {
        "t": t,
        "kind": "gpu",
        "uuid": uuid,
        "utilization": values["util"] / 100,
        "memory_utilization": values["mem_util"] / 100,
        "sm_mhz": values["sm_mhz"],
        "mem_mhz": values["mem_mhz"],
        "power_mean_w": values["power_w"],
        "temperature_c": values["temp_c"],
        "reasons": values["reasons"],
        "memory_used": values["mem_used"],
    }


def gpm_sample(uuid: str, t: float, dt: float, gpm: dict[str, float | None]) -> Observation:
    sample: Observation = {"t": t, "kind": "gpm", "uuid": uuid, "dt": dt}
    for theirs, (ours, scale) in GPM_NAMES.items():
        value = gpm.get(theirs)
        if value is not None:
            sample[ours] = round(value * scale, 6)
    return sample


def thin_gpm(observations: list[Observation], period: float = 0.5) -> Iterator[Observation]:
    """Merge 10 Hz GPM samples to the rate gpuwhy samples at: a longer interval is an exact mean."""
    open_: dict[str, list[Observation]] = {}
    for observation in observations:
        if observation["kind"] != "gpm":
            yield observation
            continue
        group = open_.setdefault(observation["uuid"], [])
        group.append(observation)
        if sum(sample["dt"] for sample in group) >= period - 0.02:
            yield merge_gpm(group)
            group.clear()


def merge_gpm(group: list[Observation]) -> Observation:
    total = sum(sample["dt"] for sample in group)
    merged: Observation = {k: group[-1][k] for k in ("t", "kind", "uuid")}
    merged["dt"] = total
    for name, _ in GPM_NAMES.values():
        parts = [(s[name], s["dt"]) for s in group if name in s]
        if parts:
            merged[name] = round(sum(v * w for v, w in parts) / sum(w for _, w in parts), 6)
    return merged
