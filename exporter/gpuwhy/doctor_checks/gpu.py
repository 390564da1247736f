"""Checks of the driver, NVML and what the GPUs tell of themselves."""

from __future__ import annotations

import re

from gpuwhy.doctor_checks.check import Check, Result, degraded, failed, not_applicable, ok
from gpuwhy.doctor_checks.host import Host
from gpuwhy.observe.observation import Observation

NVIDIA_PCI_VENDOR = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")  # VGA and 3D controllers
ALL_GPU_FIGURES = "every figure of the GPUs: accounts, clocks, power, and all causes but the host's"
INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO in the kernel's proc_ns.h


def driver(host: Host) -> Result:
    """The kernel module and its device files."""
    version = host.read("/proc/driver/nvidia/version")
    if version is None and not any(state["up"] for state in host.sources("nvml")):
        if _pci_gpus(host):
            return failed(
                "an NVIDIA GPU is plugged in, its driver is not loaded",
                ALL_GPU_FIGURES,
                "install the NVIDIA driver, then: modprobe nvidia; dmesg | grep -i nvrm tells "
                "why it does not load",
            )
        return failed(
            "no NVIDIA driver and no NVIDIA GPU in sight",
            ALL_GPU_FIGURES,
            "run gpuwhy on the GPU host; in a container: docker run --gpus all ...",
        )
    if version is not None and not host.path("/dev/nvidiactl").exists():
        return failed(
            "the driver is loaded, /dev/nvidiactl is missing",
            ALL_GPU_FIGURES,
            "on the host: nvidia-modprobe -u -c 0; in a container: docker run --gpus all ...",
        )
    return ok(_driver_version(host) or "")


def nvml(host: Host) -> Result:
    """The driver's library loads, fits the kernel module and answers."""
    states = host.sources("nvml")
    if any(state["up"] for state in states):
        down = [state for state in states if not state["up"] or _tells_of_another(state)]
        if not down:
            return ok()
        return degraded(_why(down[0]), "the figures of that GPU", down[0].get("remedy", ""))
    if host.read("/proc/driver/nvidia/version") is None:
        return not_applicable("no driver")
    if not states:
        why = "NVML did not answer within the trial"
        return failed(why, ALL_GPU_FIGURES, "dmesg | grep -i -e nvrm -e xid; gpuwhy doctor again")
    return failed(_why(states[0]), ALL_GPU_FIGURES, states[0].get("remedy", ""))


def gpus_visible(host: Host) -> Result:
    """As many GPUs as the driver drives."""
    seen = {o.get("parent_uuid", uuid) for uuid, o in host.gpus().items()}
    driven = host.glob("/proc/driver/nvidia/gpus", "*")
    if not seen and not driven:
        return not_applicable("no GPU driven on this host")
    if not seen:
        return failed(
            f"the driver has {len(driven)} GPUs, NVML shows none",
            ALL_GPU_FIGURES,
            "in a container: docker run --gpus all ...; on the host: ls -l /dev/nvidia*",
        )
    if len(seen) < len(driven):
        return degraded(
            f"{len(seen)} of {len(driven)} GPUs",
            "the accounts of the GPUs that are hidden",
            "give the exporter all of them: docker run --gpus all, NVIDIA_VISIBLE_DEVICES=all",
        )
    return ok(", ".join(dict.fromkeys(str(o.get("name", u)) for u, o in host.gpus().items())))


def activity_counters(host: Host) -> Result:
    """GPM, on Hopper and newer."""
    return _source(
        host,
        "gpm",
        "SM, tensor, DRAM, PCIe and NVLink activity: spinning in a collective and copies are "
        "harder to tell",
    )


def utilization_ring(host: Host) -> Result:
    """The driver's ring of utilisation samples, five a second."""
    return _source(host, "utilization_ring", "gaps shorter than a second, where GPM is missing")


def power_ring(host: Host) -> Result:
    """The driver's ring of power samples, fifty a second."""
    return _source(host, "power_ring", "the period of the GPU's activity, the sawtooth")


def mig(host: Host) -> Result:
    """GPUs that are split into instances."""
    if not host.gpus():
        return not_applicable("no GPU in sight")
    instances = [o["mig"] for o in host.gpus().values() if o.get("mig")]
    enabled = any(o.get("mig_enabled") for o in host.kind("gpu_limits"))
    if instances:
        return degraded(
            f"{len(instances)} MIG instances",
            "utilisation and its ring, which the driver does not give for an instance",
            "none needed: instances are accounted by GPM where the driver has it",
        )
    if enabled:
        return degraded(
            "MIG is enabled, no instance is in sight",
            "the accounts of jobs on instances",
            "nvidia-smi mig -lgi tells the instances; give them to the container by MIG UUID",
        )
    return ok("off")


def gpu_processes(host: Host) -> Result:
    """The processes that NVML lists are those of our PID namespace."""
    if not host.gpus():
        return not_applicable("no GPU in sight")
    listed = {p["pid"] for o in host.kind("gpu_processes") for p in o["processes"]}
    unknown = [pid for pid in listed if not host.path(f"/proc/{pid}").exists()]
    lost = "which process holds which GPU: runs, ranks, sharing"
    remedy = "run the exporter in the host's PID namespace: docker run --pid host"
    if unknown and len(unknown) == len(listed):
        return failed(f"PIDs of another namespace: {sorted(unknown)[:5]}", lost, remedy)
    if not listed and host.link("/proc/self/ns/pid") not in (None, INITIAL_PID_NAMESPACE):
        return degraded("none listed, and this is a PID namespace of its own", lost, remedy)
    return _source(host, "gpu_processes", lost, f"{len(listed)} listed")


def sm_share(host: Host) -> Result:
    """SM share by process."""
    return _source(host, "sm_share", "how two jobs share one GPU")


def _source(host: Host, name: str, lost: str, found: str = "") -> Result:
    """What a source said of itself in the trial."""
    if not host.gpus():
        return not_applicable("no GPU in sight")
    states = host.sources(name)
    if not states:
        return degraded("nothing was heard of it in the trial", lost, "gpuwhy doctor again")
    if states[0]["up"]:
        return ok(found)
    return degraded(_why(states[0]), lost, states[0].get("remedy", ""))


def _why(state: Observation) -> str:
    return str(state.get("why", "it is down"))


def _tells_of_another(state: Observation) -> bool:
    """The source as a whole is up, and speaks of a GPU that gives no UUID to be known by."""
    return "uuid" not in state and bool(state.get("why"))


def _driver_version(host: Host) -> str | None:
    match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", host.read("/proc/driver/nvidia/version") or "")
    return match[1] if match else None


def _pci_gpus(host: Host) -> int:
    return sum(
        (host.read(f"/sys/bus/pci/devices/{device.name}/vendor") or "").strip() == NVIDIA_PCI_VENDOR
        and (host.read(f"/sys/bus/pci/devices/{device.name}/class") or "")[:6] in DISPLAY_CLASSES
        for device in host.glob("/sys/bus/pci/devices", "*")
    )


CHECKS = (
    Check("nvidia-driver", driver),
    Check("nvml", nvml),
    Check("gpus-visible", gpus_visible),
    Check("gpm", activity_counters),
    Check("utilization-ring", utilization_ring),
    Check("power-ring", power_ring),
    Check("mig", mig),
    Check("gpu-processes", gpu_processes),
    Check("sm-share", sm_share),
)
