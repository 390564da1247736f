"""What a GPU does: activity, clocks, power, temperature, memory and traffic in the last second."""

from __future__ import annotations

from collections.abc import Callable

from gpuwhy.expose.metric import GPU, Metric, Samples, on_gpu
from gpuwhy.expose.view import View
from gpuwhy.signals.row import GpuSignals

INFO = Metric(
    "gpuwhy_gpu_info",
    "info",
    (*GPU, "parent_uuid", "name", "architecture", "bus", "numa"),
    1,
    "GPU",
    "Identity of a GPU or MIG instance; parent_uuid is the physical GPU of a MIG instance.",
)
BUSY_SOURCE = Metric(
    "gpuwhy_gpu_busy_source_info",
    "info",
    (*GPU, "source"),
    1,
    "GPU",
    "Where gpuwhy_gpu_busy_ratio was read: gpm, utilization_ring or nvml.",
)
SOURCE_UP = Metric(
    "gpuwhy_gpu_source_up",
    "gauge",
    (*GPU, "source"),
    6,
    "GPU",
    "1 if this source served the last second of this GPU, else 0.",
)
ENERGY = Metric(
    "gpuwhy_gpu_energy_joules_total",
    "counter",
    GPU,
    1,
    "GPU",
    "Energy drawn since the driver was loaded.",
)
RUNS = on_gpu("gpuwhy_gpu_runs", "Ranks of runs that hold the GPU.")
FOREIGN = on_gpu(
    "gpuwhy_gpu_foreign_processes", "Processes on the GPU that belong to no run in sight."
)

SOURCES = ("nvml", "gpm", "utilization_ring", "power_ring", "gpu_processes", "sm_share")


def _hertz(mhz: float | None) -> float | None:
    return None if mhz is None else mhz * 1e6


FROM_ROW: tuple[tuple[Metric, Callable[[GpuSignals], float | None]], ...] = (
    (
        on_gpu(
            "gpuwhy_gpu_busy_ratio",
            "Share of wall time with a kernel resident. Not SM activity: a rank that waits in a "
            "collective is busy too.",
        ),
        lambda gpu: gpu.busy,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_utilization_ratio",
            "GPU utilisation as nvidia-smi shows it. Absent under MIG, where the driver gives "
            "none.",
        ),
        lambda gpu: gpu.utilization,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_memory_controller_utilization_ratio",
            "Share of time in which device memory was read or written (nvidia-smi's memory "
            "utilisation). Neither the memory in use nor a meter of copies.",
        ),
        lambda gpu: gpu.memory_utilization,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_sm_active_ratio",
            "Share of time with at least one warp on a multiprocessor, mean over all of them.",
        ),
        lambda gpu: gpu.sm_active,
    ),
    (
        on_gpu("gpuwhy_gpu_sm_occupancy_ratio", "Resident warps as a share of the most that fit."),
        lambda gpu: gpu.occupancy,
    ),
    (
        on_gpu("gpuwhy_gpu_tensor_active_ratio", "Share of cycles with the tensor pipes active."),
        lambda gpu: gpu.tensor,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_dram_active_ratio",
            "Share of cycles in which device memory sent or received.",
        ),
        lambda gpu: gpu.dram,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_pcie_transmit_bytes_per_second",
            "PCIe traffic from the GPU to the host or a peer.",
        ),
        lambda gpu: gpu.pcie_tx,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_pcie_receive_bytes_per_second",
            "PCIe traffic from the host or a peer to the GPU.",
        ),
        lambda gpu: gpu.pcie_rx,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_nvlink_transmit_bytes_per_second", "NVLink traffic from the GPU, all links."
        ),
        lambda gpu: gpu.nvlink_tx,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_nvlink_receive_bytes_per_second", "NVLink traffic to the GPU, all links."
        ),
        lambda gpu: gpu.nvlink_rx,
    ),
    (
        on_gpu("gpuwhy_gpu_sm_clock_hertz", "Multiprocessor clock now."),
        lambda gpu: _hertz(gpu.sm_mhz),
    ),
    (
        on_gpu(
            "gpuwhy_gpu_sm_clock_attainable_hertz",
            "Highest multiprocessor clock to be had: the lowest of maximum, application and locked "
            "clock.",
        ),
        lambda gpu: _hertz(gpu.attainable_sm_mhz),
    ),
    (
        on_gpu("gpuwhy_gpu_memory_clock_hertz", "Memory clock now."),
        lambda gpu: _hertz(gpu.mem_mhz),
    ),
    (
        on_gpu("gpuwhy_gpu_memory_clock_max_hertz", "Maximum memory clock of the card."),
        lambda gpu: _hertz(gpu.max_mem_mhz),
    ),
    (
        on_gpu("gpuwhy_gpu_power_watts", "Power drawn, mean over the second."),
        lambda gpu: gpu.power_w,
    ),
    (
        on_gpu("gpuwhy_gpu_power_limit_watts", "Power limit in force."),
        lambda gpu: gpu.power_limit_w,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_power_default_limit_watts",
            "Power limit that the card leaves the factory with.",
        ),
        lambda gpu: gpu.power_default_w,
    ),
    (
        on_gpu("gpuwhy_gpu_temperature_celsius", "Temperature of the GPU."),
        lambda gpu: gpu.temperature_c,
    ),
    (
        on_gpu("gpuwhy_gpu_memory_temperature_celsius", "Temperature of its memory."),
        lambda gpu: gpu.memory_temperature_c,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_slowdown_temperature_celsius",
            "From this temperature the GPU lowers its clocks.",
        ),
        lambda gpu: gpu.slowdown_c,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_memory_used_bytes",
            "Device memory in use, without what the driver reserves.",
        ),
        lambda gpu: gpu.memory_used,
    ),
    (
        on_gpu("gpuwhy_gpu_memory_total_bytes", "Device memory in all."),
        lambda gpu: gpu.memory_total,
    ),
)
"""Metrics that are a field of the row of signals."""

FROM_LIMITS: tuple[tuple[Metric, str, float], ...] = (
    (
        on_gpu("gpuwhy_gpu_sm_clock_max_hertz", "Maximum multiprocessor clock of the card."),
        "max_sm_mhz",
        1e6,
    ),
    (
        on_gpu("gpuwhy_gpu_power_max_limit_watts", "Highest power limit that may be set."),
        "power_max_w",
        1,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_shutdown_temperature_celsius",
            "At this temperature the GPU turns itself off.",
        ),
        "shutdown_c",
        1,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_max_operating_temperature_celsius",
            "Highest temperature at which the GPU is meant to run.",
        ),
        "max_operating_c",
        1,
    ),
)
"""Metrics that are a field of ``gpu_limits``, with the factor to the base unit."""

METRICS = (
    INFO,
    *(metric for metric, _ in FROM_ROW),
    *(metric for metric, _, _ in FROM_LIMITS),
    BUSY_SOURCE,
    ENERGY,
    RUNS,
    FOREIGN,
    SOURCE_UP,
)


def collect(view: View) -> Samples:
    """The GPUs of the last second."""
    for labels, gpu, row in view.gpu_rows():
        for metric, value_of in FROM_ROW:
            yield metric, labels, value_of(gpu)
        if gpu.busy_source is not None:
            yield BUSY_SOURCE, (*labels, gpu.busy_source), 1
        yield RUNS, labels, len(row.runs)
        if "gpu_processes" in row.seen:
            yield FOREIGN, labels, len(row.foreign)
        for source in SOURCES:
            yield SOURCE_UP, (*labels, source), source in row.seen
        yield from _facts(view, labels)


def _facts(view: View, labels: tuple[str, str, str]) -> Samples:
    uuid = labels[0]
    info, limits = view.fact("gpu_info", uuid), view.fact("gpu_limits", uuid)
    if info:
        told = (str(info.get(field, "")) for field in INFO.labels[len(GPU) :])
        yield INFO, (*labels, *told), 1
    for metric, field, factor in FROM_LIMITS:
        value = limits.get(field)
        yield metric, labels, None if value is None else value * factor
    yield ENERGY, labels, view.fact("gpu", uuid).get("energy_j")
