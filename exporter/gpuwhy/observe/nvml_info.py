"""Who a GPU is: identity, MIG instances, NUMA node, and the ways to the other GPUs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpuwhy.observe.nvml_device import Device, put
from gpuwhy.observe.nvml_library import GARBAGE, LOST, NvmlError, call, constant
from gpuwhy.observe.nvml_limits import nvlink_states
from gpuwhy.observe.nvml_sample import MOST_BYTES, memory_info
from gpuwhy.observe.observation import Observation

ARCHITECTURES = {  # NVML_DEVICE_ARCH_*
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
VIRTUALIZED_GUEST = 2  # NVML_GPU_VIRTUALIZATION_MODE_VGPU
TOPOLOGY = {  # nvmlGpuTopologyLevel_t -> the word of `nvidia-smi topo -m`
    0: "INTERNAL",
    10: "PIX",
    20: "PXB",
    30: "PHB",
    40: "NODE",
    50: "SYS",
}
P2P_NVLINK = 2  # NVML_P2P_CAPS_INDEX_NVLINK
P2P_OK = 0  # NVML_P2P_STATUS_OK
LONGEST_NAME = 96
"""NVML_DEVICE_NAME_V2_BUFFER_SIZE and NVML_DEVICE_UUID_V2_BUFFER_SIZE, in nvml.h."""
_UUID = re.compile(r"[!-~]{1,96}")
SWITCH = constant("NVML_NVLINK_DEVICE_TYPE_SWITCH")


def info(device: Device, t: float, pci: Path) -> Observation:
    """One ``gpu_info`` observation of a physical GPU; sets ``device.mig_enabled`` and
    ``virtual``."""
    out: Observation = {"t": t, "kind": "gpu_info", "uuid": device.uuid, "gpu": device.index}
    put_text(out, "name", device.get("nvmlDeviceGetName"))
    architecture = ARCHITECTURES.get(device.get("nvmlDeviceGetArchitecture"))
    put_text(out, "architecture", architecture)
    bus = bus_id(device)
    put_text(out, "bus", bus)
    put(out, "minor", device.get("nvmlDeviceGetMinorNumber"), low=0, high=2**20)
    node = numa_node(device, bus, pci)
    if node is not None:
        out["numa"] = node
    device.mig_enabled = mig_enabled(device)
    device.virtual = device.get("nvmlDeviceGetVirtualizationMode") == VIRTUALIZED_GUEST
    if device.virtual:
        out["virtual"] = True
    memory = memory_info(device)
    if memory is not None and 0 < memory.total < MOST_BYTES:
        out["memory_total"] = int(memory.total)
    elif memory is None and not device.virtual and not device.mig_enabled:
        # GB10 and Tegra: the GPU has no memory of its own, and NVML says NOT_SUPPORTED.
        out["unified_memory"] = True
    return out


def instance_info(instance: Device, of_gpu: Observation, t: float) -> Observation:
    """The same for a MIG instance."""
    out: Observation = {
        k: of_gpu[k] for k in ("gpu", "architecture", "bus", "minor", "numa") if k in of_gpu
    }
    out |= {"t": t, "kind": "gpu_info", "uuid": instance.uuid, "parent_uuid": of_gpu["uuid"]}
    out["mig"] = f"{instance.gpu_instance}/{instance.compute_instance}"
    put_text(out, "name", instance.get("nvmlDeviceGetName") or of_gpu.get("name"))
    memory = memory_info(instance)
    if memory is not None and 0 < memory.total < MOST_BYTES:
        out["memory_total"] = int(memory.total)
    attributes = instance.get("nvmlDeviceGetAttributes_v2")
    whole = multiprocessors(instance.parent) if instance.parent else None
    if attributes is not None and whole and 0 < attributes.multiprocessorCount <= whole:
        out["sm_ratio"] = attributes.multiprocessorCount / whole
    return out


MOST_INSTANCES = 64
"""Of one GPU; the driver knows 7. What it says beyond is garbage, and a long loop."""


def mig_enabled(device: Device) -> bool:
    """Is MIG mode on now (not only pending)?"""
    mode = device.get("nvmlDeviceGetMigMode")
    return bool(mode) and mode[0] == 1


def instances(device: Device) -> list[Device]:
    """The MIG instances of a GPU, each a device of its own. Raises NvmlError if the GPU is lost."""
    found: list[Device] = []
    for slot in range(min(device.get("nvmlDeviceGetMaxMigDeviceCount") or 0, MOST_INSTANCES)):
        try:
            handle = call("nvmlDeviceGetMigDeviceHandleByIndex", device.handle, slot)
            instance = Device(handle, uuid_of(handle), device.index, device)
            instance.gpu_instance = call("nvmlDeviceGetGpuInstanceId", handle)
            instance.compute_instance = call("nvmlDeviceGetComputeInstanceId", handle)
        except NvmlError as error:
            if error.code in LOST:
                raise
            continue  # NOT_FOUND: the slot is free
        instance.now = device.now
        found.append(instance)
    return found


def multiprocessors(device: Device) -> int | None:
    """Of a whole GPU. NVML counts CUDA cores: 64 a multiprocessor on Volta to A100 (compute
    capability 7.x and 8.0), 128 on what came after."""
    cores = device.get("nvmlDeviceGetNumGpuCores")
    capability = device.get("nvmlDeviceGetCudaComputeCapability")
    if not cores or capability is None:
        return None
    return int(cores) // (64 if (7, 0) <= tuple(capability) <= (8, 0) else 128)


def bus_id(device: Device) -> str | None:
    """As in /sys/bus/pci: NVML writes the domain with eight digits, the kernel with four."""
    pci = device.get("nvmlDeviceGetPciInfo")
    return None if pci is None else kernel_bus_id(text(pci.busId))


def kernel_bus_id(bus: str) -> str | None:
    domain, colon, rest = bus.lower().partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest}" if colon and rest else None
    except ValueError:
        return None


def numa_node(device: Device, bus: str | None, pci: Path) -> int | None:
    """NUMA node of the CPUs and memory next to the GPU: from sysfs, else the driver's memory
    affinity. (nvmlDeviceGetNumaNodeId is another thing: the node that the GPU's own memory makes
    on Grace systems.)"""
    try:
        node = int((pci / (bus or "none") / "numa_node").read_text())
    except (OSError, ValueError):
        node = -1
    if node >= 0:
        return node
    words = device.get("nvmlDeviceGetMemoryAffinity", 4, 0)
    nodes = [64 * w + b for w, word in enumerate(words or ()) for b in range(64) if word >> b & 1]
    return nodes[0] if len(nodes) == 1 else None


def topology(device: Device, others: Sequence[Device]) -> list[dict[str, Any]]:
    """The way to each other GPU: class as in `nvidia-smi topo -m`, and the NVLinks between them
    (through a switch: all that are up on both ends)."""
    out: list[dict[str, Any]] = []
    links = nvlink_ends(device)
    for other in others:
        if other is device:
            continue
        way: dict[str, Any] = {"uuid": other.uuid}
        level = call_quietly("nvmlDeviceGetTopologyCommonAncestor", device.handle, other.handle)
        put_text(way, "class", TOPOLOGY.get(level))
        direct = call_quietly("nvmlDeviceGetP2PStatus", device.handle, other.handle, P2P_NVLINK)
        if direct == P2P_OK:
            bus = bus_id(other)
            both = min(len(links), sum(nvlink_states(other).values()))
            way["nvlinks"] = sum(end == bus for end in links) or both
        if len(way) > 1:
            out.append(way)
    return out


def nvlink_ends(device: Device) -> list[str]:
    """Bus id at the other end of each link that is up; "" where it is not known."""
    ends = []
    for link, up in nvlink_states(device).items():
        if up:
            pci = device.get("nvmlDeviceGetNvLinkRemotePciInfo", link)
            ends.append((kernel_bus_id(text(pci.busId)) or "") if pci is not None else "")
    return ends


def call_quietly(name: str, *args: Any) -> Any:
    """For pairs of GPUs: None on any refusal. Raises NvmlError if one of them is lost."""
    try:
        return call(name, *args)
    except NvmlError as error:
        if error.code in LOST:
            raise
        return None


def uuid_of(handle: Any) -> str:
    """The key of everything that is told of a GPU. Raises NvmlError, also if it is none."""
    uuid = str(call("nvmlDeviceGetUUID", handle))
    if not _UUID.fullmatch(uuid):
        raise NvmlError(GARBAGE, "nvmlDeviceGetUUID")
    return uuid


def text(value: Any) -> str:
    """What a driver calls something: a short line."""
    found = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
    return "".join(c if c.isprintable() else "?" for c in found[:LONGEST_NAME])


def put_text(out: dict[str, Any], name: str, value: Any) -> None:
    if value:
        out[name] = text(value)
