"""One canonical set of GPU series, keyed by ``uuid`` and ``mig``, from both exporters.

Ours come first; dcgm-exporter's fill in where ours have no sample, in the same units. Three traps:

- Under MIG the ``UUID`` of dcgm-exporter is that of the physical GPU, with the instance in
  ``GPU_I_ID``; ours is that of the instance, with ``parent_uuid`` and ``mig`` = "GI/CI" in
  ``gpuwhy_gpu_info``. Rows of an instance that is known here take over its ``uuid`` and ``mig``;
  others keep the physical ``uuid`` and have the instance's number in ``mig``.
- Labels drift (``Hostname`` became ``hostname``), pods add theirs, and one exporter may be scraped
  twice: every operand is aggregated to its key first, so that no join is many-to-many.
- DCGM writes blank values as huge numbers, and memory temperature as 0 where there is no sensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from alerting.source.model import Group, Record

KEY = "host, instance, uuid, gpu, mig"
BLANK = "1.4e14"
"""DCGM_FP64_BLANK is 140737488355328, the integer blanks are larger still."""
MIB = "1048576"
INTERVAL = "5s"
"""That of the scrapes: curves of GPUs lie beside those of runs, and are to be as fine."""
MEMORY = (
    f"{MIB} * (DCGM_FI_DEV_FB_TOTAL or DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE + "
    "DCGM_FI_DEV_FB_RESERVED or DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)"
)

SERIES: Sequence[tuple[str, str, str]] = (
    ("gpu:busy:ratio", "gpuwhy_gpu_busy_ratio", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
    ("gpu:utilization:ratio", "gpuwhy_gpu_utilization_ratio", "DCGM_FI_DEV_GPU_UTIL / 100"),
    ("gpu:sm_active:ratio", "gpuwhy_gpu_sm_active_ratio", "DCGM_FI_PROF_SM_ACTIVE"),
    ("gpu:sm_occupancy:ratio", "gpuwhy_gpu_sm_occupancy_ratio", "DCGM_FI_PROF_SM_OCCUPANCY"),
    (
        "gpu:tensor_active:ratio",
        "gpuwhy_gpu_tensor_active_ratio",
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    ),
    ("gpu:dram_active:ratio", "gpuwhy_gpu_dram_active_ratio", "DCGM_FI_PROF_DRAM_ACTIVE"),
    (
        "gpu:memory_controller_utilization:ratio",
        "gpuwhy_gpu_memory_controller_utilization_ratio",
        "DCGM_FI_DEV_MEM_COPY_UTIL / 100",
    ),
    (
        "gpu:pcie_transmit:bytes_per_second",
        "gpuwhy_gpu_pcie_transmit_bytes_per_second",
        "DCGM_FI_PROF_PCIE_TX_BYTES",
    ),
    (
        "gpu:pcie_receive:bytes_per_second",
        "gpuwhy_gpu_pcie_receive_bytes_per_second",
        "DCGM_FI_PROF_PCIE_RX_BYTES",
    ),
    (
        "gpu:nvlink_transmit:bytes_per_second",
        "gpuwhy_gpu_nvlink_transmit_bytes_per_second",
        "DCGM_FI_PROF_NVLINK_TX_BYTES",
    ),
    (
        "gpu:nvlink_receive:bytes_per_second",
        "gpuwhy_gpu_nvlink_receive_bytes_per_second",
        "DCGM_FI_PROF_NVLINK_RX_BYTES",
    ),
    ("gpu:sm_clock:hertz", "gpuwhy_gpu_sm_clock_hertz", "DCGM_FI_DEV_SM_CLOCK * 1e6"),
    ("gpu:sm_clock_max:hertz", "gpuwhy_gpu_sm_clock_max_hertz", "DCGM_FI_DEV_MAX_SM_CLOCK * 1e6"),
    ("gpu:memory_clock:hertz", "gpuwhy_gpu_memory_clock_hertz", "DCGM_FI_DEV_MEM_CLOCK * 1e6"),
    (
        "gpu:memory_clock_max:hertz",
        "gpuwhy_gpu_memory_clock_max_hertz",
        "DCGM_FI_DEV_MAX_MEM_CLOCK * 1e6",
    ),
    ("gpu:power:watts", "gpuwhy_gpu_power_watts", "DCGM_FI_DEV_POWER_USAGE"),
    ("gpu:power_limit:watts", "gpuwhy_gpu_power_limit_watts", "DCGM_FI_DEV_POWER_MGMT_LIMIT"),
    (
        "gpu:power_default_limit:watts",
        "gpuwhy_gpu_power_default_limit_watts",
        "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF",
    ),
    ("gpu:temperature:celsius", "gpuwhy_gpu_temperature_celsius", "DCGM_FI_DEV_GPU_TEMP"),
    (
        "gpu:memory_temperature:celsius",
        "gpuwhy_gpu_memory_temperature_celsius",
        "DCGM_FI_DEV_MEMORY_TEMP > 0",
    ),
    (
        "gpu:slowdown_temperature:celsius",
        "gpuwhy_gpu_slowdown_temperature_celsius",
        "DCGM_FI_DEV_SLOWDOWN_TEMP",
    ),
    ("gpu:memory_used:bytes", "gpuwhy_gpu_memory_used_bytes", f"DCGM_FI_DEV_FB_USED * {MIB}"),
    ("gpu:memory_total:bytes", "gpuwhy_gpu_memory_total_bytes", MEMORY),
    (
        "gpu:energy_joules:total",
        "gpuwhy_gpu_energy_joules_total",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION / 1000",
    ),
)
"""(canonical name, ours, dcgm-exporter's in our unit)."""

MIG_KEY = Record(
    "gpu:mig_key:info",
    f"""label_replace(
  max by ({KEY}, parent_uuid) (gpuwhy_gpu_info{{mig!="",parent_uuid!=""}}),
  "gi", "$1", "mig", "([0-9]+).*"
)""",
)
"""What ties an instance's own uuid to the physical GPU and the instance's number."""


def _labelled(expr: str) -> str:
    """dcgm-exporter's rows with ``parent_uuid`` and ``gi`` beside a ``uuid`` and ``mig``."""
    text = f"({expr}) < {BLANK}"
    for target, source in (
        ("uuid", "UUID"),
        ("parent_uuid", "uuid"),
        ("gi", "GPU_I_ID"),
        ("mig", "gi"),
    ):
        text = f'label_replace({text}, "{target}", "$1", "{source}", "(.+)")'
    return text


def _merged(ours: str, theirs: str) -> str:
    rows = _labelled(theirs)
    return f"""max by ({KEY}) ({ours})
or on (uuid, mig)
max by ({KEY}) (
  gpu:mig_key:info
  * on (parent_uuid, gi) group_left ()
  max by (parent_uuid, gi) ({rows})
)
or on (uuid, mig)
max by ({KEY}) (
  {rows}
  unless on (parent_uuid, gi) gpu:mig_key:info
)"""


def group() -> Group:
    """The recording rules."""
    records = [Record(name, _merged(ours, theirs)) for name, ours, theirs in SERIES]
    return Group("gpuwhy-canonical", [MIG_KEY, *records], INTERVAL)
