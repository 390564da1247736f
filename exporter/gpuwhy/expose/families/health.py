"""What is wrong with a GPU: clock-event reasons, Xid, ECC, row remaps, links."""

from __future__ import annotations

from gpuwhy.expose.metric import GPU, Metric, on_gpu

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
    8,
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
PCIE_GENERATION = on_gpu(
    "gpuwhy_gpu_pcie_link_generation", "PCIe generation now; judge it under load, it sinks at rest."
)
PCIE_MAX_GENERATION = on_gpu(
    "gpuwhy_gpu_pcie_link_max_generation", "Highest PCIe generation of GPU and slot."
)
PCIE_WIDTH = on_gpu("gpuwhy_gpu_pcie_link_width", "PCIe lanes now.")
PCIE_MAX_WIDTH = on_gpu("gpuwhy_gpu_pcie_link_max_width", "Most PCIe lanes of GPU and slot.")
PCIE_REPLAYS = Metric(
    "gpuwhy_gpu_pcie_replays_total", "counter", GPU, 1, "GPU", "PCIe packets that were sent again."
)
NVLINKS = on_gpu("gpuwhy_gpu_nvlinks", "NVLinks of the GPU.")
NVLINKS_ACTIVE = on_gpu("gpuwhy_gpu_nvlinks_active", "NVLinks that are up.")
NVLINK_ERRORS = Metric(
    "gpuwhy_gpu_nvlink_errors_total",
    "counter",
    (*GPU, "error"),
    6,
    "GPU",
    "NVLink errors of all links by kind, as the driver names them.",
)
MIG_ENABLED = on_gpu("gpuwhy_gpu_mig_enabled", "1 if the GPU is in MIG mode, else 0.")

METRICS = (
    REASON_ACTIVE,
    REASON_SECONDS,
    XID_ERRORS,
    XID_LAST,
    ECC_ERRORS,
    ROW_REMAPS,
    ROW_REMAP_PENDING,
    ROW_REMAP_FAILED,
    PCIE_GENERATION,
    PCIE_MAX_GENERATION,
    PCIE_WIDTH,
    PCIE_MAX_WIDTH,
    PCIE_REPLAYS,
    NVLINKS,
    NVLINKS_ACTIVE,
    NVLINK_ERRORS,
    MIG_ENABLED,
)
