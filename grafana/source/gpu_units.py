"""Curves of one GPU: over one another as shares, then each in its own unit."""

from __future__ import annotations

from grafana.source import palette, queries
from grafana.source.fields import Override, by_name, by_pattern, colored, dashed
from grafana.source.panels import NOT_TOLD, Panel, timeseries
from grafana.source.queries import GPU, on_gpu, share_of
from grafana.source.strips import account_names
from grafana.source.targets import Target, query

ON = "GPU {{gpu}} {{mig}}"


def _one(expr: str, name: str) -> Target:
    return query(queries.one(expr), f"{name} {ON}")


def overlay() -> Panel:
    """Everything over one another."""
    shares = {
        "busy": on_gpu("gpu:busy:ratio"),
        "SM active": on_gpu("gpu:sm_active:ratio"),
        "SM clock": share_of(on_gpu("gpu:sm_clock:hertz"), queries.ATTAINABLE),
        "memory clock": share_of(
            on_gpu("gpu:memory_clock:hertz"), on_gpu("gpu:memory_clock_max:hertz")
        ),
        "power": share_of(on_gpu("gpu:power:watts"), on_gpu("gpu:power_limit:watts")),
        "temperature": f"{on_gpu('gpu:temperature:celsius')} / 100",
        "memory controller": on_gpu("gpu:memory_controller_utilization:ratio"),
    }
    both_ways = (
        f"{on_gpu('gpu:pcie_receive:bytes_per_second')} + on (host, instance, uuid, gpu, mig) "
        f"{on_gpu('gpu:pcie_transmit:bytes_per_second')}"
    )
    return timeseries(
        "What happens together?",
        "Each as a share of its own bound: busy and SM active of the time; clocks of the "
        "attainable; power of its limit; memory controller of the time; temperature of 100 °C."
        " PCIe traffic both ways on the right axis. Four looks: low and cool with long "
        "gaps is waiting for the host; low with SM activity near zero and steady is tiny kernels; "
        "all GPUs of a run in step is one late rank (Lockstep); hot or at the power limit with the "
        "SM clock sagging is throttling. There is no copy-engine meter: MEM_COPY_UTIL is the "
        "memory controller.",
        [*(_one(expr, name) for name, expr in shares.items()), _one(both_ways, "PCIe")],
        unit="percentunit",
        high=1.05,
        missing=NOT_TOLD,
        ranked=False,
        overrides=[
            *colored(palette.SIGNALS),
            by_pattern(
                "^PCIe",
                color=palette.SIGNALS["traffic"],
                unit="Bps",
                axis="right",
                max=None,
                line_style={"fill": "dash", "dash": [2, 4]},
            ),
        ],
    )


def ledger() -> Panel:
    """The device view."""
    groups = (
        "compute",
        "throttle|shared",
        "copy|data|host|launch|quota|comm|stalled",
        "startup|checkpoint|evaluation",
        "unknown",
        "free",
    )
    return timeseries(
        "Where does its time go?",
        "All time of the GPU, whoever used it, each second in exactly one account (device view: "
        "any tenant's work is compute; idle time of a GPU held by several runs is split equally "
        "between them). free: no run holds it. A gap was not observed.",
        [query(queries.device_ledger(accounts, GPU), "{{account}}") for accounts in groups],
        unit="percentunit",
        high=1,
        stacked=True,
        overrides=account_names(),
    )


def activity() -> Panel:
    """Activity counters."""
    series = {
        "SM active": ("gpu:sm_active:ratio", palette.SIGNALS["SM active"]),
        "SM occupancy": ("gpu:sm_occupancy:ratio", palette.LINES[5]),
        "tensor pipes": ("gpu:tensor_active:ratio", palette.LINES[4]),
        "device memory (DRAM)": ("gpu:dram_active:ratio", palette.LINES[6]),
    }
    return timeseries(
        "Which parts of it work?",
        "Activity counters: multiprocessors with work; resident warps of the most that fit; "
        "tensor pipes; device memory. Tensor near 0 in a mixed-precision job means that the matrix "
        "work does not reach the tensor cores. High DRAM with low tensor is memory-bound. "
        "Not told by cards without profiling counters.",
        [_one(on_gpu(name), what) for what, (name, _) in series.items()],
        unit="percentunit",
        high=1,
        missing=NOT_TOLD,
        overrides=[by_pattern(f"^{what[:10]}", color=c) for what, (_, c) in series.items()],
    )


def clocks() -> Panel:
    """Clocks in hertz."""
    return timeseries(
        "What are the clocks?",
        "Clocks now, with the attainable SM clock (lowest of maximum, application and locked) and "
        "the maximum of the memory clock. Clocks sink at rest: judge them under load.",
        [
            _one(on_gpu("gpu:sm_clock:hertz"), "SM clock"),
            _one(on_gpu("gpu:memory_clock:hertz"), "memory clock"),
            _one(queries.ATTAINABLE, "attainable SM clock"),
            _one(on_gpu("gpu:memory_clock_max:hertz"), "maximum memory clock"),
        ],
        unit="hertz",
        missing=NOT_TOLD,
        overrides=[
            *colored(palette.SIGNALS),
            dashed("^attainable", palette.SIGNALS["SM clock"]),
            dashed("^maximum", palette.SIGNALS["memory clock"]),
        ],
    )


REASONS = {
    "sw_power_cap": ("power limit", palette.LINES[4]),
    "sw_thermal_slowdown": ("heat (driver)", palette.BAD),
    "hw_thermal_slowdown": ("heat (hardware)", "#7a0f06"),
    "hw_power_brake_slowdown": ("power brake (external)", palette.ACCOUNTS["comm"]),
    "hw_slowdown": ("hardware slowdown", palette.ACCOUNTS["stalled"]),
    "sync_boost": ("sync boost group", palette.LINES[5]),
    "applications_clocks_setting": ("application clocks", palette.LINES[3]),
    "display_clock_setting": ("display clock", palette.ACCOUNTS["checkpoint"]),
    "gpu_idle": ("idle", palette.ACCOUNTS["free"]),
}


def reasons() -> Panel:
    """Clock-event reasons."""
    active = on_gpu("gpuwhy_gpu_event_reason_active")
    names: list[Override] = [
        by_name(reason, color=color, display=words) for reason, (words, color) in REASONS.items()
    ]
    return timeseries(
        "What governs the clock?",
        "Share of time in which the driver named a reason for the clock. It does not say what "
        "that cost: “power limit” is on 98 % of the time on a healthy H200 at 1850 of 1980 MHz. "
        "What it costs is in the ledger, as throttle. Alarming are heat, power brake and hardware "
        "slowdown.",
        [query(f"max by (reason) (avg_over_time({active}[$__rate_interval]))", "{{reason}}")],
        unit="percentunit",
        high=1,
        overrides=names,
    )


def power() -> Panel:
    """Power in watts."""
    return timeseries(
        "How much power, and what is the limit?",
        "Power drawn, the limit in force, and the limit that the card left the factory with. A "
        "limit below the factory's was set by somebody. Single samples may pass the limit.",
        [
            _one(on_gpu("gpu:power:watts"), "power"),
            _one(on_gpu("gpu:power_limit:watts"), "limit in force"),
            _one(on_gpu("gpu:power_default_limit:watts"), "factory limit"),
        ],
        unit="watt",
        missing=NOT_TOLD,
        overrides=[*colored(palette.SIGNALS), dashed("^limit", palette.BAD), dashed("^factory")],
    )


def temperature() -> Panel:
    """Temperatures and thresholds."""
    return timeseries(
        "How hot, and from where does it slow down?",
        "Temperatures of GPU and memory, with the thresholds of slowing down and of turning off. "
        "Some cards do not tell the memory's. Hot alone is no fault: look whether the clock sags.",
        [
            _one(on_gpu("gpu:temperature:celsius"), "temperature"),
            _one(on_gpu("gpu:memory_temperature:celsius"), "memory temperature"),
            _one(on_gpu("gpu:slowdown_temperature:celsius"), "slowdown"),
            _one(on_gpu("gpuwhy_gpu_shutdown_temperature_celsius"), "shutdown"),
        ],
        unit="celsius",
        missing=NOT_TOLD,
        overrides=[
            *colored(palette.SIGNALS),
            by_pattern("^memory temperature", color=palette.LINES[3]),
            dashed("^slowdown"),
            dashed("^shutdown", palette.BAD),
        ],
    )


def memory() -> Panel:
    """Device memory."""
    return timeseries(
        "How much of its memory is in use?",
        "Device memory in use and in all. Frameworks keep what they once allocated: a flat line "
        "near the top is normal and no sign of work.",
        [
            _one(on_gpu("gpu:memory_used:bytes"), "in use"),
            _one(on_gpu("gpu:memory_total:bytes"), "total"),
        ],
        unit="bytes",
        missing=NOT_TOLD,
        overrides=[by_pattern("^in use", color=palette.LINES[0], fill=15), dashed("^total")],
    )


def traffic() -> Panel:
    """PCIe and NVLink."""
    sides = {
        "PCIe in": ("gpu:pcie_receive:bytes_per_second", palette.LINES[4]),
        "PCIe out": ("gpu:pcie_transmit:bytes_per_second", palette.LINES[1]),
        "NVLink in": ("gpu:nvlink_receive:bytes_per_second", palette.LINES[0]),
        "NVLink out": ("gpu:nvlink_transmit:bytes_per_second", palette.LINES[3]),
    }
    return timeseries(
        "What travels over PCIe and NVLink?",
        "Traffic into and out of the GPU, on a logarithmic axis. This is where copies show: there "
        "is no copy-engine meter. A copy of pageable memory fills only a few per cent of the link "
        "and still holds up the step.",
        [_one(on_gpu(series), name) for name, (series, _) in sides.items()],
        unit="Bps",
        low=None,
        missing=NOT_TOLD,
        overrides=[
            *colored({name: color for name, (_, color) in sides.items()}),
            by_pattern(".", scale={"type": "log", "log": 10}),
        ],
    )


def sharing() -> Panel:
    """Multiprocessors by tenant."""
    own = f"sum by (run, rank) (gpuwhy_run_sm_ratio{{{GPU}}})"
    return timeseries(
        "Whose work is it?",
        "Share of the multiprocessors used by each run's rank on this GPU, as the driver counts "
        "it by process. Two curves are two tenants: each one's work makes the other wait, and the "
        "utilisation of the whole looks fine.",
        [query(queries.named_rank(own), "{{run}} rank {{rank}}")],
        unit="percentunit",
        high=1,
        stacked=True,
        missing="no run on it, or not told by process (needs gpuwhy)",
    )


def period() -> Panel:
    """Period of the activity."""
    return timeseries(
        "Does its activity come in waves?",
        "Period of the GPU's activity, from its power at 50 Hz: what a scrape of 5 s cannot see. "
        "It is often the step, but may be bursts of loader workers, or the 0.1 s of a CPU quota. "
        "No curve: no period, which is how a job without gaps looks.",
        [_one(on_gpu("gpuwhy_gpu_wave_period_seconds"), "period")],
        unit="s",
        missing="no period, or no power ring (needs gpuwhy)",
        narrow=True,
        overrides=[by_pattern(".", color=palette.LINES[0])],
    )


def swing() -> Panel:
    """Strength and depth of the wave."""
    depth = share_of(on_gpu("gpuwhy_gpu_wave_depth_watts"), on_gpu("gpu:power_limit:watts"))
    return timeseries(
        "How regular and how deep are the waves?",
        "Regularity from 0 (none) to 1 (every period alike), and depth from trough to peak as a "
        "share of the power limit. Regular and deep, with time lost in the ledger, is a sawtooth: "
        "kernels come in bursts. A regular wave alone is the step of a healthy job.",
        [
            _one(on_gpu("gpuwhy_gpu_wave_strength_ratio"), "regularity"),
            _one(depth, "depth"),
        ],
        unit="percentunit",
        high=1,
        missing="no power ring in sight (needs gpuwhy)",
        narrow=True,
        overrides=colored({"regularity": palette.LINES[0], "depth": palette.LINES[4]}),
    )
