"""The cheap sample: utilisation, clocks, power, temperature, clock-event reasons, memory.

Each of these calls takes 1 to 2 us on an H200. ``nvmlDeviceGetPcieThroughput`` is left out: it
blocks for 20 ms (GPM has PCIe traffic).
"""

from __future__ import annotations

from typing import Any

from gpuwhy.observe.nvml_device import Device, put
from gpuwhy.observe.nvml_library import constant
from gpuwhy.observe.observation import Observation

CLOCK_SM = constant("NVML_CLOCK_SM")
CLOCK_MEM = constant("NVML_CLOCK_MEM")
TEMPERATURE_GPU = constant("NVML_TEMPERATURE_GPU")
MEMORY_V2 = constant("nvmlMemory_v2")
FIELD_MEMORY_TEMP = 82  # NVML_FI_DEV_MEMORY_TEMP, degrees C
FIELD_POWER_INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT, mW

MOST_BYTES = 2**50
MAX_MHZ = 20_000.0
MAX_W = 10_000.0
MIN_C, MAX_C = -50.0, 200.0
"""What lies beyond is a sentinel or garbage, not a value."""

SHARED_WITH_INSTANCES = (
    "sm_mhz",
    "mem_mhz",
    "temperature_c",
    "memory_temperature_c",
    "reasons",
)
"""What is true of a MIG instance because it is true of its GPU. Power is not: it is the board's."""


def sample(device: Device, t: float) -> Observation:
    """One ``gpu`` observation of a physical GPU; what it does not give is absent."""
    out: Observation = {"t": t, "kind": "gpu", "uuid": device.uuid}
    rates = device.get("nvmlDeviceGetUtilizationRates")
    if rates is not None:
        put(out, "utilization", rates.gpu, low=0.0, high=1.0, scale=0.01)
        put(out, "memory_utilization", rates.memory, low=0.0, high=1.0, scale=0.01)
    for name, clock in (("sm_mhz", CLOCK_SM), ("mem_mhz", CLOCK_MEM)):
        put(out, name, device.get("nvmlDeviceGetClockInfo", clock), low=0.0, high=MAX_MHZ)
    fields = device.fields((FIELD_POWER_INSTANT, FIELD_MEMORY_TEMP))
    mean_mw = device.get("nvmlDeviceGetPowerUsage")
    put(out, "power_w", fields.get(FIELD_POWER_INSTANT), low=0.0, high=MAX_W, scale=1e-3)
    put(out, "power_mean_w", mean_mw, low=0.0, high=MAX_W, scale=1e-3)
    put(out, "temperature_c", temperature(device), low=MIN_C, high=MAX_C)
    # A card without the sensor may answer 0 here.
    put(out, "memory_temperature_c", fields.get(FIELD_MEMORY_TEMP), low=1.0, high=MAX_C)
    put(out, "reasons", event_reasons(device), low=0, high=2**62)
    put_memory(out, device)
    return out


def instance_sample(instance: Device, of_gpu: Observation) -> Observation:
    """The same for a MIG instance, whose clocks and temperatures are its GPU's."""
    out: Observation = {"t": of_gpu["t"], "kind": "gpu", "uuid": instance.uuid}
    out.update({name: of_gpu[name] for name in SHARED_WITH_INSTANCES if name in of_gpu})
    put_memory(out, instance)
    return out


def temperature(device: Device) -> Any:
    """Degrees C. CUDA 13 deprecates the first call for the second."""
    value = device.get("nvmlDeviceGetTemperature", TEMPERATURE_GPU)
    return device.get("nvmlDeviceGetTemperatureV", TEMPERATURE_GPU) if value is None else value


def event_reasons(device: Device) -> Any:
    """The bit mask nvmlClocksEventReason*; drivers before R535 know it by its old name."""
    mask = device.get("nvmlDeviceGetCurrentClocksEventReasons")
    return device.get("nvmlDeviceGetCurrentClocksThrottleReasons") if mask is None else mask


def memory_info(device: Device) -> Any:
    """Version 2 tells the driver's own reserve from what is used; None with unified memory."""
    info = device.get("nvmlDeviceGetMemoryInfo", MEMORY_V2)
    return device.get("nvmlDeviceGetMemoryInfo") if info is None else info


def put_memory(out: Observation, device: Device) -> None:
    info = memory_info(device)
    if info is not None and 0 < info.total < MOST_BYTES:
        put(out, "memory_used", int(info.used), low=0, high=int(info.total))
