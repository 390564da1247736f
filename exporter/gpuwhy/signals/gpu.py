"""One second of one GPU: activity, clocks, power, limits, from whatever sources served it."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwhy.observe.observation import Observation
from gpuwhy.signals.row import GpuSignals, Wave
from gpuwhy.signals.tracks import GpuTrack, mean, weighted_mean

REASONS = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
"""nvml.h, nvmlClocksEventReason*: bit -> name."""

GPM_FIELDS = ("sm", "occupancy", "tensor", "dram", "pcie_tx", "pcie_rx", "nvlink_tx", "nvlink_rx")


def activity(track: GpuTrack, start: float, end: float) -> dict[str, float | None]:
    """Mean of each GPM field over [start, end); ``graphics`` is the busy share."""
    intervals = track.gpm.between(start, end + 2.0)
    return {name: weighted_mean(intervals, name, start, end) for name in ("graphics", *GPM_FIELDS)}


def busy(track: GpuTrack, start: float, end: float) -> tuple[float | None, str | None]:
    """Share of [start, end) with a kernel resident, and the source that said it."""
    from_gpm = weighted_mean(track.gpm.between(start, end + 2.0), "graphics", start, end)
    if from_gpm is not None:
        return min(1.0, from_gpm), "gpm"
    ring = track.rings.get("utilization")
    if ring is not None:
        # A sample describes the stretch that ends at its time stamp.
        from_ring = mean(ring.values(start + ring.step, end + ring.step))
        if from_ring is not None:
            return min(1.0, from_ring), "utilization_ring"
    sampled = mean([s.get("utilization") for s in track.samples.between(start, end)])
    return (None, None) if sampled is None else (min(1.0, sampled), "nvml")


def active_reasons(samples: Iterable[Observation]) -> frozenset[str] | None:
    """Names of the clock-event reasons set in at least half of the samples."""
    masks = [int(s["reasons"]) for s in samples if "reasons" in s]
    if not masks:
        return None
    return frozenset(
        name for bit, name in REASONS.items() if 2 * sum(bool(m & bit) for m in masks) >= len(masks)
    )


def attainable_sm_mhz(limits: Observation, now: float | None) -> float | None:
    """The lowest of maximum, application and locked clock. An application clock that the GPU is
    seen to exceed does not bind (boost) and is left out."""
    bounds = [limits.get("max_sm_mhz")]
    for name in ("application_sm_mhz", "locked_sm_mhz"):
        value = limits.get(name)
        if value and (now is None or value >= now):
            bounds.append(value)
    known = [float(b) for b in bounds if b]
    return min(known) if known else None


COPY_S = 2.0
"""A step with a large copy may last a second: traffic is averaged this far to either side."""


def gpu_signals(track: GpuTrack, second: int, wave: Wave | None) -> GpuSignals:
    """Put together what is known of the GPU in [second, second + 1)."""
    start, end = float(second), second + 1.0
    samples = track.samples.between(start, end)
    seen = activity(track, start, end)
    near = activity(track, start - COPY_S, end + COPY_S)
    share, source = busy(track, start, end)
    # Idle clocks are not what work runs at: leave them out where there is a choice.
    clocks = [s.get("sm_mhz") for s in samples if not int(s.get("reasons", 0)) & 1]
    sm_mhz = mean(clocks) or mean([s.get("sm_mhz") for s in samples])
    power_ring = track.rings.get("power")
    power = mean(power_ring.values(start, end)) if power_ring else None
    for name in ("power_w", "power_mean_w"):
        power = power if power is not None else mean([s.get(name) for s in samples])
    limits, info = track.limits, track.info

    def sampled(name: str) -> float | None:
        return mean([s.get(name) for s in samples])

    return GpuSignals(
        uuid=track.uuid,
        gpu=info.get("gpu"),
        mig=info.get("mig"),
        name=info.get("name"),
        busy=share,
        busy_source=source,
        utilization=sampled("utilization"),
        memory_utilization=sampled("memory_utilization"),
        sm_active=seen["sm"],
        occupancy=seen["occupancy"],
        tensor=seen["tensor"],
        dram=seen["dram"],
        pcie_tx=seen["pcie_tx"],
        pcie_rx=seen["pcie_rx"],
        copied_in=near["pcie_rx"],
        copied_out=near["pcie_tx"],
        nvlink_tx=seen["nvlink_tx"],
        nvlink_rx=seen["nvlink_rx"],
        power_w=power,
        power_limit_w=limits.get("power_limit_w"),
        power_default_w=limits.get("power_default_w"),
        temperature_c=sampled("temperature_c"),
        memory_temperature_c=sampled("memory_temperature_c"),
        slowdown_c=limits.get("slowdown_c"),
        sm_mhz=sm_mhz,
        attainable_sm_mhz=attainable_sm_mhz(limits, sm_mhz),
        mem_mhz=sampled("mem_mhz"),
        max_mem_mhz=limits.get("max_mem_mhz"),
        memory_used=sampled("memory_used"),
        memory_total=info.get("memory_total"),
        reasons=active_reasons(samples),
        wave=wave,
        lost_s=sum(r.lost_in(start, end) for r in track.rings.values()),
    )
