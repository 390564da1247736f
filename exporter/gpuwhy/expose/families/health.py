"""What is wrong with a GPU: clock-event reasons, Xid, ECC, row remaps, links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from gpuwhy.expose.limits import XIDS_PER_GPU
from gpuwhy.expose.metric import GPU, Metric, Samples, on_gpu
from gpuwhy.expose.view import View
from gpuwhy.signals.gpu import REASONS

REASON_ACTIVE = Metric(
    "gpuwhy_gpu_event_reason_active",
    "gauge",
    (*GPU, "reason"),
    10,
    "GPU",
    "1 if this clock-event reason was active in the last second, else 0.",
)
REASON_SECONDS = Metric(
    "gpuwhy_gpu_event_reason_seconds_total",
    "counter",
    (*GPU, "reason"),
    10,
    "GPU",
    "Time in which this reason governed the clock, as the driver counts it. It does not say what "
    "that cost: the clock does.",
)
XID_ERRORS = Metric(
    "gpuwhy_gpu_xid_errors_total",
    "counter",
    GPU,
    1,
    "GPU",
    "Xid events seen since the exporter started; 0 where events can be received and none came.",
)
XID_LAST = Metric(
    "gpuwhy_gpu_xid_last_timestamp_seconds",
    "gauge",
    (*GPU, "xid"),
    XIDS_PER_GPU,
    "GPU",
    "When an Xid event of this number was last seen, Unix time.",
)
ECC_ERRORS = Metric(
    "gpuwhy_gpu_ecc_errors_total",
    "counter",
    (*GPU, "error", "lifetime"),
    4,
    "GPU",
    "ECC errors of device memory. error: corrected, uncorrected; lifetime: volatile (since the "
    "driver was loaded), aggregate (of the card).",
)
ROW_REMAPS = Metric(
    "gpuwhy_gpu_row_remaps_total",
    "counter",
    (*GPU, "error"),
    2,
    "GPU",
    "Rows of device memory remapped for errors. error: corrected, uncorrected.",
)
ROW_REMAP_PENDING = on_gpu(
    "gpuwhy_gpu_row_remap_pending", "1 if a remap waits for the GPU to be reset, else 0."
)
ROW_REMAP_FAILED = on_gpu(
    "gpuwhy_gpu_row_remap_failed", "1 if a remap has failed: the card is to be replaced."
)
PAGES_RETIRED_PENDING = on_gpu(
    "gpuwhy_gpu_pages_retired_pending",
    "1 if a page of memory is to be retired with the next reset, else 0 (GPUs before Ampere).",
)
RECOVERY_ACTION = Metric(
    "gpuwhy_gpu_recovery_action",
    "gauge",
    (*GPU, "action"),
    1,
    "GPU",
    "1 for what the driver asks for to make the GPU well: none, gpu_reset, node_reboot, "
    "drain_p2p, drain_and_reset, ...",
)
PCIE_REPLAYS = Metric(
    "gpuwhy_gpu_pcie_replays_total", "counter", GPU, 1, "GPU", "PCIe packets that were sent again."
)
NVLINK_ERRORS = Metric(
    "gpuwhy_gpu_nvlink_errors_total",
    "counter",
    (*GPU, "error"),
    8,
    "GPU",
    "NVLink errors of all links by kind: replay, recovery, crc, ...",
)

FROM_LIMITS = (
    (
        on_gpu(
            "gpuwhy_gpu_pcie_link_generation",
            "PCIe generation now; judge it under load, it sinks at rest.",
        ),
        "pcie_generation",
    ),
    (
        on_gpu("gpuwhy_gpu_pcie_link_max_generation", "Highest PCIe generation of GPU and slot."),
        "pcie_max_generation",
    ),
    (on_gpu("gpuwhy_gpu_pcie_link_width", "PCIe lanes now."), "pcie_width"),
    (
        on_gpu("gpuwhy_gpu_pcie_link_max_width", "Most PCIe lanes of GPU and slot."),
        "pcie_max_width",
    ),
    (on_gpu("gpuwhy_gpu_nvlinks", "NVLinks of the GPU."), "nvlinks"),
    (on_gpu("gpuwhy_gpu_nvlinks_active", "NVLinks that are up."), "nvlinks_active"),
    (on_gpu("gpuwhy_gpu_mig_enabled", "1 if the GPU is in MIG mode, else 0."), "mig_enabled"),
)
"""Metrics that are a field of ``gpu_limits``."""

FROM_HEALTH = (
    (XID_ERRORS, "xid_errors"),
    (ROW_REMAP_PENDING, "row_remap_pending"),
    (ROW_REMAP_FAILED, "row_remap_failed"),
    (PAGES_RETIRED_PENDING, "pages_retired_pending"),
    (PCIE_REPLAYS, "pcie_replays"),
)
"""Metrics that are a field of ``gpu_health``."""

METRICS = (
    REASON_ACTIVE,
    REASON_SECONDS,
    XID_ERRORS,
    XID_LAST,
    ECC_ERRORS,
    ROW_REMAPS,
    ROW_REMAP_PENDING,
    ROW_REMAP_FAILED,
    PAGES_RETIRED_PENDING,
    RECOVERY_ACTION,
    PCIE_REPLAYS,
    NVLINK_ERRORS,
    *(metric for metric, _ in FROM_LIMITS),
)


def collect(view: View) -> Samples:
    """The GPUs of the last second, and the Xids of all."""
    yield from _xids(view)
    for labels, gpu, _ in view.gpu_rows():
        if gpu.reasons is not None:
            for name in REASONS.values():
                yield REASON_ACTIVE, (*labels, name), name in gpu.reasons
        limits, health = view.fact("gpu_limits", gpu.uuid), view.fact("gpu_health", gpu.uuid)
        for metric, field in FROM_LIMITS:
            yield metric, labels, limits.get(field)
        for metric, field in FROM_HEALTH:
            yield metric, labels, health.get(field)
        yield from _counted(view, labels, health)


def _counted(view: View, labels: tuple[str, str, str], health: Mapping[str, Any]) -> Samples:
    """Counters with a label of their own."""
    for reason, seconds in view.fact("gpu_reasons", labels[0]).get("seconds", {}).items():
        yield REASON_SECONDS, (*labels, reason), seconds
    for error in ("corrected", "uncorrected"):
        for lifetime in ("volatile", "aggregate"):
            count = health.get(f"ecc_{lifetime}_{error}")
            yield ECC_ERRORS, (*labels, error, lifetime), count
        yield ROW_REMAPS, (*labels, error), health.get(f"row_remaps_{error}")
    if "recovery_action" in health:
        yield RECOVERY_ACTION, (*labels, health["recovery_action"]), 1
    for error, count in health.get("nvlink_errors", {}).items():
        yield NVLINK_ERRORS, (*labels, error), count


def _xids(view: View) -> Samples:
    """Also of a GPU that is gone: the Xid says why it is."""
    counts: Counter[str] = Counter()
    for xid in sorted(view.facts.get("xid", {}).values(), key=lambda xid: -float(xid["t"])):
        counts[xid["uuid"]] += 1
        if counts[xid["uuid"]] <= XIDS_PER_GPU:
            yield XID_LAST, (*view.gpu(xid["uuid"]), str(xid["xid"])), xid["t"]
