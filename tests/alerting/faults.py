"""Faults that no recorded job has: what is observed, or scraped, of a recorded job changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.alerting import replay

from gpuwhy.observe.observation import Observation

BEGIN, END, AFTER = 40, 110, 30
"""Seconds in which the fault is there, and how many more are played; the last state then stays."""
RESOLVED = 200


@dataclass(frozen=True)
class Fault:
    """A fault: the alert that it must bring, and what is observed while it is there.

    ``scraped`` is for what no observation makes: the value of a series at a scrape in the fault.
    """

    alert: str
    says: Sequence[str]
    change: Callable[[Observation], Iterable[Observation]]
    recordings: Sequence[str] = ("power_cap",)
    state: Mapping[str, Any] = field(default_factory=dict)
    scraped: Callable[[replay.Series, int], float | None] | None = None
    begin: int = BEGIN
    end: int = END
    after: int = AFTER
    resolved: int = RESOLVED


def of_kind(kind: str, **fields: Any) -> Callable[[Observation], Iterable[Observation]]:
    """Every observation of the kind with other fields."""
    return lambda o: [{**o, **fields} if o["kind"] == kind else o]


def beside(**made: Any) -> Callable[[Observation], Iterable[Observation]]:
    """An observation more, of the same GPU, with each look at its clocks."""
    return lambda o: [o, {"t": o["t"], "uuid": o["uuid"], **made}] if o["kind"] == "gpu" else [o]


def counting(kind: str, each_second: float, made: Callable[[int], dict[str, Any]]) -> Any:
    """Counts that grow with time."""
    first: list[float] = []

    def change(o: Observation) -> Iterable[Observation]:
        if o["kind"] != "gpu":
            return [o]
        first[:] = first or [float(o["t"])]
        count = int(each_second * (float(o["t"]) - first[0]))
        return [o, {"t": o["t"], "kind": kind, "uuid": o["uuid"], **made(count)}]

    return change


def idle(o: Observation) -> Iterable[Observation]:
    """Kernels no more, memory as full as can be."""
    if o["kind"] == "gpm":
        return [{**o, "graphics": 0.0, "sm": 0.0, "occupancy": 0.0, "tensor": 0.0, "dram": 0.0}]
    if o["kind"] == "gpu":
        return [{**o, "utilization": 0.0, "memory_used": int(0.97 * 150754820096), "reasons": 0}]
    if o["kind"] == "ring":
        return [{**o, "values": [0.0 for _ in o["values"]]}] if o["ring"] != "power" else []
    return [] if o["kind"] in ("stack", "locals") else [o]


def source(name: str, **more: Any) -> Callable[[Observation], Iterable[Observation]]:
    """The source says that it is down."""
    down = {"kind": "source", "source": name, "up": False, "why": "test", **more}

    def change(o: Observation) -> Iterable[Observation]:
        if o["kind"] == "source" and o["source"] == name:
            return []
        return [o, {"t": o["t"], **down}] if o["kind"] == "gpu" else [o]

    return change


def without(*kinds: str) -> Callable[[Observation], Iterable[Observation]]:
    """Nothing of these kinds."""
    return lambda o: [] if o["kind"] in kinds else [o]


def unchanged(o: Observation) -> Iterable[Observation]:
    """What is observed is sound."""
    return [o]


def stands(o: Observation) -> Iterable[Observation]:
    """Everything stands still: the same line at every sample, no process at work."""
    if o["kind"] == "stack":
        frames = [["wait", "/usr/lib/python3.12/threading.py", 1], ["train", "/job/train.py", 64]]
        return [{**o, "frames": frames, "active": False}] if o.get("main") else []
    if o["kind"] == "processes":
        still = {"cpu": 0.0, "main_cpu": 0.0, "state": "S"}
        return [{**o, "processes": [{**p, **still} for p in o["processes"]]}]
    return idle(o)


def slower(o: Observation) -> Iterable[Observation]:
    """The loop's own counter runs at half its speed."""
    if o["kind"] != "locals":
        return [o]
    halved = [[*where, value // 2] for *where, value in o["values"]]
    return [{**o, "values": halved}]


def crowded(o: Observation) -> Iterable[Observation]:
    """More processes on the GPU than are exposed."""
    if o["kind"] != "processes":
        return [o]
    uuid = next(p["gpus"][0] for p in o["processes"] if p.get("gpus"))
    made = {"ppid": 1, "role": "tenant", "gpus": [uuid], "start": 1.0}
    more = [{"pid": 9000 + n, **made} for n in range(30)]
    return [{**o, "processes": [*o["processes"], *more]}]


def times(name: str, factor: float, job: str = "gpuwhy") -> Any:
    """A series at another value."""

    def scraped(one: replay.Series, i: int) -> float | None:
        value = one.values[i]
        if one.name != name or one.labels["job"] != job or value is None:
            return value
        return value * factor

    return scraped


ALERTMANAGER = {"host": "recorded", "instance": "alertmanager:9093", "job": "alertmanager"}
FAILED = replay.Series(
    "alertmanager_notifications_failed_total",
    {**ALERTMANAGER, "integration": "slack"},
)
DCGM = {**replay.TARGET, "instance": "dcgm-exporter:9400", "job": "dcgm-exporter"}
THERMAL, HARDWARE, SW_POWER_CAP = 0x20, 0x80, 0x4
"""Bits of NVML's clocksEventReasons."""
SLOW = {"sm_mhz": 1200.0}
"""A clock that costs something, of 1980 MHz."""

FAULTS = (
    Fault(
        "GPUThrottledThermal",
        ["power_cap", "Hottest GPU", "fans"],
        of_kind("gpu", reasons=THERMAL, **SLOW),
    ),
    Fault(
        "GPUThrottledHardware",
        ["61% of what is attainable", "power supply"],
        of_kind("gpu", reasons=HARDWARE, **SLOW),
    ),
    Fault(
        "GPUPowerLimitLowered",
        ["Power limit: 500 W of 700 W"],
        lambda o: (
            [{**o, "power_limit_w": 500.0}]
            if o["kind"] == "gpu_limits"
            else of_kind("gpu", reasons=SW_POWER_CAP, **SLOW)(o)
        ),
    ),
    Fault("GPUXidCritical", ["Xid 79", "drain"], beside(kind="xid", xid=79), resolved=900),
    Fault("GPUXidError", ["Xid 31", "job's log"], beside(kind="xid", xid=31), resolved=900),
    Fault(
        "GPUECCUncorrected",
        ["uncorrected memory error"],
        counting("gpu_health", 0.5, lambda n: {"ecc_volatile_uncorrected": n}),
        resolved=500,
    ),
    Fault(
        "GPURowRemapFailed",
        ["replaced"],
        beside(kind="gpu_health", row_remap_failed=True),
        after=70,
    ),
    Fault(
        "GPURowRemapPending", ["reset"], beside(kind="gpu_health", row_remap_pending=True), after=70
    ),
    Fault(
        "GPUNVLinkErrors",
        ["NVLink errors"],
        counting("gpu_health", 20, lambda n: {"nvlink_errors": {"replay": n}}),
        resolved=300,
    ),
    Fault(
        "GPUPCIeReplays",
        ["PCIe packets again"],
        counting("gpu_health", 20, lambda n: {"pcie_replays": n}),
        resolved=300,
    ),
    Fault(
        "GPULinkDegraded",
        ["generation 1 of 5", "width 8 of 16"],
        of_kind(
            "gpu_limits",
            pcie_generation=1,
            pcie_max_generation=5,
            pcie_width=8,
            pcie_max_width=16,
        ),
    ),
    Fault("GPUNVLinkDown", ["2 NVLink"], of_kind("gpu_limits", nvlinks=18, nvlinks_active=16)),
    Fault("GPUMemoryFullWithoutWork", ["97% of its memory", "Held by pid"], idle, ("healthy",)),
    Fault(
        "GPUAllocatedButIdle",
        ["was not busy", "run healthy"],
        idle,
        ("healthy",),
        end=220,
        resolved=400,
    ),
    Fault("GPULossUnknown", ["Not seen: stacks"], without("stack", "locals"), ("item_sync",)),
    Fault("GpuwhySourceMissing", ["stacks"], source("stacks"), ("healthy",)),
    Fault("GpuwhySourceMissing", ["nvml"], source("nvml"), ("healthy",)),
    Fault("GpuwhySourceMissing", ["gpm"], source("gpm"), ("healthy",)),
    Fault("GpuwhyStale", ["are", "old"], lambda o: [], ("power_cap",)),
    Fault(
        "GPULost",
        ["recorded-power_cap-0"],
        lambda o: [] if "power_cap" in str(o.get("uuid", "")) else [o],
        ("healthy", "power_cap"),
        resolved=600,
    ),
    Fault(
        "NetworkPortDown",
        ["mlx5_0"],
        lambda o: [{**o, "up": False}] if o["kind"] == "network_port" else [o],
    ),
    Fault(
        "GpuwhyOverBudget",
        ["times the CPU"],
        counting("source", 1.0, lambda n: {"source": "stacks", "up": True, "cpu_s": float(n)}),
        ("healthy",),
        {"overhead_limit": 0.02},
    ),
    Fault(
        "TrainingSlowerThanItsPast",
        ["at 50% of its own past speed"],
        slower,
        ("healthy",),
        begin=140,
        end=210,
        resolved=300,
    ),
    Fault(
        "TrainingStalled",
        ["no progress", "has not moved for"],
        stands,
        ("healthy",),
        end=160,
        resolved=260,
    ),
    Fault("GpuwhyDown", ["does not answer"], unchanged, scraped=times("up", 0, "gpuwhy")),
    Fault(
        "AlertmanagerDown",
        ["nobody is told", "start it again"],
        unchanged,
        scraped=times("up", 0, "alertmanager"),
    ),
    Fault("DcgmExporterDown", ["dcgm"], unchanged, scraped=times("up", 0, "dcgm-exporter")),
    Fault(
        "GPUSourceMissing",
        ["GPU 1 lacks gpm", "other GPUs do"],
        lambda o: [] if o["kind"] == "gpm" and "healthy" in o["uuid"] else [o],
        ("data_slow", "healthy"),
    ),
    Fault("GpuwhySeriesDropped", ["more of process"], crowded, ("healthy",), resolved=300),
    Fault(
        "NotificationsFailing",
        ["slack"],
        unchanged,
        scraped=lambda one, i: float(i) if one.name == FAILED.name else one.values[i],
        resolved=300,
    ),
    Fault(
        "GpuwhyFamilyFailing",
        ["the metric family wave"],
        unchanged,
        scraped=lambda one, i: (
            float(i)
            if one.name == "gpuwhy_scrape_family_failures_total"
            and one.labels.get("family") == "wave"
            else one.values[i]
        ),
        resolved=300,
    ),
)
