"""Limits of a GPU: clocks, power, temperatures, PCIe, NVLink, MIG mode.

A locked clock (``nvidia-smi --lock-gpu-clocks``) can be set through NVML but not read: it stays
absent. PCIe generation and width are as reported now; at rest they sink, so judge them under load.
"""

from __future__ import annotations

from typing import Any

from gpuwhy.observe.cadence import Every
from gpuwhy.observe.nvml_device import SENTINELS, Device, put
from gpuwhy.observe.nvml_library import constant
from gpuwhy.observe.nvml_sample import CLOCK_MEM, CLOCK_SM, MAX_C, MAX_MHZ, MAX_W, temperature
from gpuwhy.observe.observation import Observation

CLOCK_GRAPHICS = constant("NVML_CLOCK_GRAPHICS")
APPLICATION_TARGET = constant("NVML_CLOCK_ID_APP_CLOCK_TARGET")
FIELD_LINK_COUNT = 91  # NVML_FI_DEV_NVLINK_LINK_COUNT
MAX_NVLINKS = 36  # NVML_NVLINK_MAX_LINKS

THRESHOLDS = {  # field: (nvmlTemperatureThresholds_t, NVML_FI_DEV_TEMPERATURE_*_TLIMIT)
    "shutdown_c": (0, 193),
    "slowdown_c": (1, 194),
    "max_operating_c": (3, 196),
}

SELDOM_S = 10.0
"""What somebody may set by hand, but seldom does: application clocks (1.1 ms of CPU on an H200) and
MIG mode (0.3 ms); and the links, which are asked one by one."""

FIXED_S = 60.0
"""What belongs to the card: its highest clocks (1.9 and 1.6 ms) and thresholds (0.3 ms each)."""

INTEGERS = {
    "pcie_generation": "nvmlDeviceGetCurrPcieLinkGeneration",
    "pcie_width": "nvmlDeviceGetCurrPcieLinkWidth",
    "pcie_max_generation": "nvmlDeviceGetMaxPcieLinkGeneration",
    "pcie_max_width": "nvmlDeviceGetMaxPcieLinkWidth",
}


class LimitReader:
    """Limits of one GPU, each read as often as it may change. Thresholds that have to be derived
    are derived once."""

    def __init__(self) -> None:
        self._derived: dict[str, Any] = {}
        self._fixed: dict[str, Any] = {}
        self._set: dict[str, Any] = {}
        self._fixed_due, self._seldom_due = Every(FIXED_S), Every(SELDOM_S)

    def read(self, device: Device, t: float) -> Observation:
        """One ``gpu_limits`` observation; what the GPU does not give is absent."""
        if self._fixed_due.due(t):
            self._fixed = self._read_fixed(device)
        if self._seldom_due.due(t):
            self._set = read_set(device)
        out: Observation = {"t": t, "kind": "gpu_limits", "uuid": device.uuid}
        out |= self._fixed | self._set
        put_power_limits(out, device)
        for name, call in INTEGERS.items():
            put(out, name, device.get(call), low=1, high=64)
        return out

    def _read_fixed(self, device: Device) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, clock in (("max_sm_mhz", CLOCK_SM), ("max_mem_mhz", CLOCK_MEM)):
            put(out, name, device.get("nvmlDeviceGetMaxClockInfo", clock), low=1.0, high=MAX_MHZ)
        self._put_thresholds(out, device)
        return out

    def _put_thresholds(self, out: Observation, device: Device) -> None:
        """Degrees C. From Ada on drivers may give them as a distance only (see ``derive``)."""
        for name, (threshold, field) in THRESHOLDS.items():
            value = device.get("nvmlDeviceGetTemperatureThreshold", threshold)
            if value is None and name not in self._derived:
                put(self._derived, name, derive_threshold(device, field), low=1.0, high=MAX_C)
            put(out, name, self._derived.get(name) if value is None else value, low=1.0, high=MAX_C)


def read_set(device: Device) -> dict[str, Any]:
    """Application clock, links and MIG mode."""
    out: dict[str, Any] = {}
    put(out, "application_sm_mhz", application_clock(device), low=1.0, high=MAX_MHZ)
    out |= nvlink_counts(device)
    if device.get("nvmlDeviceGetMigMode") is not None:
        out["mig_enabled"] = device.mig_enabled
    return out


def derive_threshold(device: Device, field: int) -> float | None:
    """now + margin - limit. NVML's T.Limit is the distance to the highest operating temperature,
    and gives slowdown and shutdown on that scale: on an H200 at 38 C with a margin of 49 C, the
    slowdown at -2 C means 38 + 49 + 2 = 89 C."""
    limit = device.fields((field,)).get(field)
    margin = device.get("nvmlDeviceGetMarginTemperature")
    now = temperature(device)
    if limit is None or margin is None or now is None:
        return None
    # The field is a signed number that some drivers hand out as unsigned.
    signed = limit - 2**32 if limit >= 2**31 else limit
    return float(now + margin - signed)


def application_clock(device: Device) -> Any:
    """MHz. Bindings of CUDA 13 deprecate the first call."""
    for args in ((CLOCK_SM,), (CLOCK_GRAPHICS,)):
        value = device.get("nvmlDeviceGetApplicationsClock", *args)
        if value is not None:
            return value
    return device.get("nvmlDeviceGetClock", CLOCK_SM, APPLICATION_TARGET)


def put_power_limits(out: Observation, device: Device) -> None:
    """W. The enforced limit is the lowest of all limiters, not only of the one that was set."""
    limit = device.get("nvmlDeviceGetEnforcedPowerLimit")
    if limit is None or limit in SENTINELS:
        limit = device.get("nvmlDeviceGetPowerManagementLimit")
    default = device.get("nvmlDeviceGetPowerManagementDefaultLimit")
    constraints = device.get("nvmlDeviceGetPowerManagementLimitConstraints")
    put(out, "power_limit_w", limit, low=1.0, high=MAX_W, scale=1e-3)
    put(out, "power_default_w", default, low=1.0, high=MAX_W, scale=1e-3)
    if constraints is not None:
        put(out, "power_max_w", constraints[1], low=1.0, high=MAX_W, scale=1e-3)


def nvlink_counts(device: Device) -> dict[str, Any]:
    states = nvlink_states(device)
    return {"nvlinks": len(states), "nvlinks_active": sum(states.values())} if states else {}


def nvlink_states(device: Device) -> dict[int, bool]:
    """Link number -> is it up. Empty where the GPU has none or is in MIG mode."""
    if device.mig_enabled:
        return {}
    count = device.fields((FIELD_LINK_COUNT,)).get(FIELD_LINK_COUNT)
    states = {}
    for link in range(min(int(count), MAX_NVLINKS) if count is not None else MAX_NVLINKS):
        state = device.get("nvmlDeviceGetNvLinkState", link)
        if state is None:
            break
        states[link] = bool(state)
    return states
