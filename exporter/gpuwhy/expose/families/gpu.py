"""What a GPU does: activity, clocks, power, temperature, memory and traffic in the last second."""

from __future__ import annotations

from gpuwhy.expose.metric import GPU, Metric, on_gpu

INFO = Metric(
    "gpuwhy_gpu_info",
    "info",
    (*GPU, "parent_uuid", "name", "architecture", "bus", "numa"),
    1,
    "GPU",
    "Identity of a GPU or MIG instance; parent_uuid is the physical GPU of a MIG instance.",
)
BUSY = on_gpu(
    "gpuwhy_gpu_busy_ratio",
    "Share of wall time with a kernel resident. Not SM activity: a rank that waits in a "
    "collective is busy too.",
)
BUSY_SOURCE = Metric(
    "gpuwhy_gpu_busy_source_info",
    "info",
    (*GPU, "source"),
    1,
    "GPU",
    "Where gpuwhy_gpu_busy_ratio was read: gpm, utilization_ring or nvml.",
)
UTILIZATION = on_gpu(
    "gpuwhy_gpu_utilization_ratio",
    "GPU utilisation as nvidia-smi shows it. Absent under MIG, where the driver gives none.",
)
MEMORY_CONTROLLER = on_gpu(
    "gpuwhy_gpu_memory_controller_utilization_ratio",
    "Share of time in which device memory was read or written (nvidia-smi's memory utilisation). "
    "Neither the memory in use nor a meter of copies.",
)
SM_ACTIVE = on_gpu(
    "gpuwhy_gpu_sm_active_ratio",
    "Share of time with at least one warp on a multiprocessor, mean over all of them.",
)
OCCUPANCY = on_gpu(
    "gpuwhy_gpu_sm_occupancy_ratio", "Resident warps as a share of the most that fit."
)
TENSOR = on_gpu("gpuwhy_gpu_tensor_active_ratio", "Share of cycles with the tensor pipes active.")
DRAM = on_gpu(
    "gpuwhy_gpu_dram_active_ratio", "Share of cycles in which device memory sent or received."
)
PCIE_TRANSMIT = on_gpu(
    "gpuwhy_gpu_pcie_transmit_bytes_per_second", "PCIe traffic from the GPU to the host or a peer."
)
PCIE_RECEIVE = on_gpu(
    "gpuwhy_gpu_pcie_receive_bytes_per_second", "PCIe traffic from the host or a peer to the GPU."
)
NVLINK_TRANSMIT = on_gpu(
    "gpuwhy_gpu_nvlink_transmit_bytes_per_second", "NVLink traffic from the GPU, all links."
)
NVLINK_RECEIVE = on_gpu(
    "gpuwhy_gpu_nvlink_receive_bytes_per_second", "NVLink traffic to the GPU, all links."
)
SM_CLOCK = on_gpu("gpuwhy_gpu_sm_clock_hertz", "Multiprocessor clock now.")
SM_CLOCK_ATTAINABLE = on_gpu(
    "gpuwhy_gpu_sm_clock_attainable_hertz",
    "Highest multiprocessor clock to be had: the lowest of maximum, application and locked clock.",
)
SM_CLOCK_MAX = on_gpu("gpuwhy_gpu_sm_clock_max_hertz", "Maximum multiprocessor clock of the card.")
MEMORY_CLOCK = on_gpu("gpuwhy_gpu_memory_clock_hertz", "Memory clock now.")
MEMORY_CLOCK_MAX = on_gpu("gpuwhy_gpu_memory_clock_max_hertz", "Maximum memory clock of the card.")
POWER = on_gpu("gpuwhy_gpu_power_watts", "Power drawn, mean over the second.")
POWER_LIMIT = on_gpu("gpuwhy_gpu_power_limit_watts", "Power limit in force.")
POWER_DEFAULT_LIMIT = on_gpu(
    "gpuwhy_gpu_power_default_limit_watts", "Power limit that the card leaves the factory with."
)
POWER_MAX_LIMIT = on_gpu("gpuwhy_gpu_power_max_limit_watts", "Highest power limit that may be set.")
ENERGY = Metric(
    "gpuwhy_gpu_energy_joules_total",
    "counter",
    GPU,
    1,
    "GPU",
    "Energy drawn since the driver was loaded.",
)
TEMPERATURE = on_gpu("gpuwhy_gpu_temperature_celsius", "Temperature of the GPU.")
MEMORY_TEMPERATURE = on_gpu("gpuwhy_gpu_memory_temperature_celsius", "Temperature of its memory.")
SLOWDOWN = on_gpu(
    "gpuwhy_gpu_slowdown_temperature_celsius", "From this temperature the GPU lowers its clocks."
)
SHUTDOWN = on_gpu(
    "gpuwhy_gpu_shutdown_temperature_celsius", "At this temperature the GPU turns itself off."
)
MAX_OPERATING = on_gpu(
    "gpuwhy_gpu_max_operating_temperature_celsius",
    "Highest temperature at which the GPU is meant to run.",
)
MEMORY_USED = on_gpu(
    "gpuwhy_gpu_memory_used_bytes", "Device memory in use, without what the driver reserves."
)
MEMORY_TOTAL = on_gpu("gpuwhy_gpu_memory_total_bytes", "Device memory in all.")
RUNS = on_gpu("gpuwhy_gpu_runs", "Ranks of runs that hold the GPU.")
FOREIGN = on_gpu(
    "gpuwhy_gpu_foreign_processes", "Processes on the GPU that belong to no run in sight."
)
SOURCE_UP = Metric(
    "gpuwhy_gpu_source_up",
    "gauge",
    (*GPU, "source"),
    6,
    "GPU",
    "1 if this source served the last second of this GPU, else 0.",
)

METRICS = (
    INFO,
    BUSY,
    BUSY_SOURCE,
    UTILIZATION,
    MEMORY_CONTROLLER,
    SM_ACTIVE,
    OCCUPANCY,
    TENSOR,
    DRAM,
    PCIE_TRANSMIT,
    PCIE_RECEIVE,
    NVLINK_TRANSMIT,
    NVLINK_RECEIVE,
    SM_CLOCK,
    SM_CLOCK_ATTAINABLE,
    SM_CLOCK_MAX,
    MEMORY_CLOCK,
    MEMORY_CLOCK_MAX,
    POWER,
    POWER_LIMIT,
    POWER_DEFAULT_LIMIT,
    POWER_MAX_LIMIT,
    ENERGY,
    TEMPERATURE,
    MEMORY_TEMPERATURE,
    SLOWDOWN,
    SHUTDOWN,
    MAX_OPERATING,
    MEMORY_USED,
    MEMORY_TOTAL,
    RUNS,
    FOREIGN,
    SOURCE_UP,
)
