"""What is wrong with a GPU: ECC, row remaps, link errors; time in each clock-event reason."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwhy.observe.nvml_device import Device, Field, put
from gpuwhy.observe.nvml_limits import nvlink_states
from gpuwhy.observe.observation import Observation

REASON_FIELDS = {  # NVML_FI_DEV_CLOCKS_EVENT_REASON_*, cumulative ns
    74: "sw_power_cap",
    76: "sync_boost",
    269: "sw_thermal_slowdown",
    270: "hw_thermal_slowdown",
    271: "hw_power_brake_slowdown",
}

ECC = {  # field: (nvmlMemoryErrorType_t, nvmlEccCounterType_t)
    "ecc_volatile_corrected": (0, 0),
    "ecc_volatile_uncorrected": (1, 0),
    "ecc_aggregate_corrected": (0, 1),
    "ecc_aggregate_uncorrected": (1, 1),
}

NVLINK_TOTALS = {  # NVML_FI_DEV_NVLINK_*_ERROR_COUNT_TOTAL, all links (Volta to Ampere)
    38: "crc_flit",
    45: "crc_data",
    52: "replay",
    59: "recovery",
    160: "ecc",
}
NVLINK_BY_LINK = {161: "replay", 162: "recovery", 163: "crc"}  # NVML_FI_DEV_NVLINK_ERROR_DL_*

FIELD_RECOVERY_ACTION = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
RECOVERY_ACTIONS = (
    "none",
    "gpu_reset",
    "node_reboot",
    "drain_p2p",
    "drain_and_reset",
    "recover_imex_domain",
    "bus_reset",
    "system_reboot",
)

MAX_COUNT = 10**15
"""Of errors: a million a second for thirty years. What is beyond is garbage."""


def reasons(device: Device, t: float) -> list[Observation]:
    """Seconds in each clock-event reason since the driver was loaded. Takes 1.1 ms."""
    found = device.fields(REASON_FIELDS)
    seconds = {REASON_FIELDS[int(str(f))]: ns * 1e-9 for f, ns in found.items() if ns >= 0}
    if not seconds:
        return []
    return [{"t": t, "kind": "gpu_reasons", "uuid": device.uuid, "seconds": seconds}]


def health(device: Device, t: float) -> Observation:
    """One ``gpu_health`` observation of a GPU or MIG instance, without the Xid counts."""
    out: Observation = {"t": t, "kind": "gpu_health", "uuid": device.uuid}
    for name, (error, counter) in ECC.items():
        value = device.get("nvmlDeviceGetTotalEccErrors", error, counter)
        put(out, name, value, low=0, high=MAX_COUNT)
    if device.parent is not None:
        return out
    remaps = device.get("nvmlDeviceGetRemappedRows")
    if remaps is not None:
        put(out, "row_remaps_corrected", remaps[0], low=0, high=MAX_COUNT)
        put(out, "row_remaps_uncorrected", remaps[1], low=0, high=MAX_COUNT)
        out["row_remap_pending"], out["row_remap_failed"] = bool(remaps[2]), bool(remaps[3])
    else:
        pending = device.get("nvmlDeviceGetRetiredPagesPendingStatus")
        if pending is not None:
            out["pages_retired_pending"] = bool(pending)
    put(out, "pcie_replays", device.get("nvmlDeviceGetPcieReplayCounter"), low=0, high=MAX_COUNT)
    errors = nvlink_errors(device)
    if errors:
        out["nvlink_errors"] = errors
    action = device.fields((FIELD_RECOVERY_ACTION,)).get(FIELD_RECOVERY_ACTION)
    if action is not None and 0 <= action < len(RECOVERY_ACTIONS):
        out["recovery_action"] = RECOVERY_ACTIONS[int(action)]
    return out


def nvlink_errors(device: Device) -> dict[str, int]:
    """Errors of all links by kind; empty where the GPU has no links."""
    links = nvlink_states(device)
    if not links:
        return {}
    totals = _counts(device, NVLINK_TOTALS)
    errors = {name: totals[field] for field, name in NVLINK_TOTALS.items() if field in totals}
    missing = {f: n for f, n in NVLINK_BY_LINK.items() if n not in errors}
    scoped: list[Field] = [(field, link) for field in missing for link in links]
    for key, value in _counts(device, scoped).items():
        if isinstance(key, tuple):
            name = missing[key[0]]
            errors[name] = errors.get(name, 0) + value
    return errors


def _counts(device: Device, fields: Iterable[Field]) -> dict[Field, int]:
    """Of those fields that are counters of errors and not garbage."""
    found = device.fields(fields)
    return {field: int(value) for field, value in found.items() if 0 <= value <= MAX_COUNT}
