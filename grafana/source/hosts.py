"""Panels of hosts: CPU, memory, disks, network."""

from __future__ import annotations

from grafana.source import palette, queries
from grafana.source.fields import by_gpu, by_name, by_pattern, colored, dashed
from grafana.source.panels import Panel, timeseries
from grafana.source.queries import on_rank, rate
from grafana.source.targets import lines, query

MODES = {
    "user": "#394dff",
    "nice": "#8fa0ff",
    "system": "#87371e",
    "irq": "#c47a5e",
    "softirq": "#e0b39f",
    "steal": "#8f10b9",
    "iowait": "#ffa930",
}
"""CPU modes that are not idle. iowait is idle too, with a disk to blame."""


def of_run(expr: str) -> str:
    """A series of hosts, for those on which the run is."""
    return f"({expr}) and {queries.HOSTS_OF_RUN}"


def _host(name: str, more: str = "") -> str:
    return f'{name}{{host=~"$host"{"," + more if more else ""}}}'


def cpu() -> Panel:
    """CPU by mode."""
    busy = of_run(rate(_host("gpuwhy_host_cpu_seconds_total", 'mode!="idle"')))
    cpus = of_run(_host("gpuwhy_host_cpus"))
    return timeseries(
        "Is the host short of CPU?",
        "CPU time of the run's hosts by mode, as a share of all their CPUs. iowait is idle time in "
        "which a task waits for a disk: it points at storage, not at a lack of CPU. Misreading: a "
        "mean far below 100 % is no proof of spare CPU for this job, which may be held to a few "
        "cores by quota or affinity; see the next panel.",
        [query(f"sum by (mode) ({busy}) / on () group_left () sum({cpus})", "{{mode}}")],
        unit="percentunit",
        high=1,
        stacked=True,
        overrides=[by_name(mode, color=color) for mode, color in MODES.items()],
    )


def cores() -> Panel:
    """Cores that the run uses, against what it may use."""
    return timeseries(
        "Does the run get the cores it needs?",
        "Cores used by the ranks shown and by all that they started (workers), with the smallest "
        "quota and the fewest CPUs allowed to a rank. A flat top at the quota is a limit at work. "
        "A rank at 1.0 that only launches kernels is held back by its own single thread.",
        [
            query(f"sum({on_rank('gpuwhy_run_cpu_cores')})", "ranks"),
            query(f"sum({on_rank('gpuwhy_run_children_cpu_cores')})", "workers and other children"),
            query(f"min({on_rank('gpuwhy_run_cpu_quota_cores')})", "quota, smallest"),
            query(f"min({on_rank('gpuwhy_run_cpu_allowed_cores')})", "allowed CPUs, fewest"),
        ],
        unit="none",
        overrides=[
            *colored({"ranks": palette.LINES[0], "workers": palette.ACCOUNTS["data"]}),
            dashed("quota", palette.BAD),
            dashed("allowed"),
        ],
    )


def throttling() -> Panel:
    """Share of quota periods throttled, and main threads kept waiting."""
    return timeseries(
        "Is the job kept off the CPU?",
        "Throttled: share of the periods of the job's own CPU quota in which it was stopped. "
        "Delay: share of time in which a main thread could have run and got no CPU. Either makes "
        "workers look slow and phases look healthy: look here before blaming the loader.",
        [
            query(f"max({on_rank('gpuwhy_run_cpu_throttled_ratio')})", "throttled periods, most"),
            query(
                f"max({on_rank('gpuwhy_run_main_thread_delay_ratio')})",
                "main thread delayed, most",
            ),
        ],
        unit="percentunit",
        high=1,
        missing="no quota in sight, or no process table (needs gpuwhy)",
        overrides=colored(
            {"throttled": palette.ACCOUNTS["quota"], "main thread": palette.ACCOUNTS["host"]}
        ),
    )


def memory() -> Panel:
    """Memory of the host."""
    total = of_run(_host("gpuwhy_host_memory_total_bytes"))
    available = of_run(_host("gpuwhy_host_memory_available_bytes"))
    return timeseries(
        "Is the host short of memory?",
        "Memory in use on the run's hosts that cannot be had without swapping, and the total. "
        "The page cache is not counted as used: a data set that fits in it is read from memory "
        "after the first epoch, and from disk again when it no longer fits.",
        [
            query(f"sum({total}) - sum({available})", "in use"),
            query(f"sum({total})", "total"),
        ],
        unit="bytes",
        overrides=[by_pattern("^in use", color=palette.LINES[0], fill=15), dashed("^total")],
    )


def pressure() -> Panel:
    """Pressure stall information."""
    waited = of_run(rate(_host("gpuwhy_host_pressure_seconds_total", 'tasks="some"')))
    return timeseries(
        "What do tasks of the host wait for?",
        "Share of time in which some task of the host waited for CPU, memory or I/O (the kernel's "
        "PSI), highest of the run's hosts. All tasks of the host count, not the run's alone.",
        [query(f"max by (resource) ({waited})", "{{resource}}")],
        unit="percentunit",
        high=1,
        overrides=[
            by_name("cpu", color=palette.LINES[0]),
            by_name("memory", color=palette.LINES[4]),
            by_name("io", color=palette.ACCOUNTS["data"]),
        ],
    )


def disks() -> Panel:
    """Disk traffic."""
    read = of_run(rate(_host("gpuwhy_host_disk_read_bytes_total")))
    written = of_run(rate(_host("gpuwhy_host_disk_written_bytes_total")))
    return timeseries(
        "What do the disks do?",
        "Bytes read and written by all local disks of the run's hosts. A network file system does "
        "not show here but in the network panel. Steady reads all epoch long mean that the data "
        "set does not fit in memory.",
        [query(f"sum({read})", "read"), query(f"sum({written})", "written")],
        unit="Bps",
        overrides=colored({"read": palette.LINES[0], "written": palette.LINES[1]}),
    )


def network() -> Panel:
    """Network interfaces and RDMA ports."""
    sides = {
        "received": "gpuwhy_host_network_receive_bytes_total",
        "sent": "gpuwhy_host_network_transmit_bytes_total",
        "RDMA received": "gpuwhy_network_receive_bytes_total",
        "RDMA sent": "gpuwhy_network_transmit_bytes_total",
    }
    return timeseries(
        "What does the network do?",
        "Bytes over the interfaces of the run's hosts, and over their InfiniBand or RDMA ports, "
        "which the kernel's interfaces do not show. Gradient exchange within a host goes over "
        "NVLink or PCIe and is in neither.",
        [query(f"sum({of_run(rate(_host(name)))})", side) for side, name in sides.items()],
        unit="Bps",
        overrides=[
            by_name("received", color=palette.LINES[0]),
            by_name("sent", color=palette.LINES[3]),
            by_name("RDMA received", color=palette.LINES[4]),
            by_name("RDMA sent", color=palette.LINES[1]),
        ],
    )


def main_threads() -> Panel:
    """CPU of each rank's main thread."""
    return timeseries(
        "Is a rank's single thread the limit?",
        "Cores used by each rank's process. Python launches kernels from one thread: near 1.0, "
        "with the GPU idling in slivers, the launching itself is the limit, and more cores or "
        "workers change nothing.",
        lines(on_rank("gpuwhy_run_cpu_cores"), "process", of_gpu=False),
        unit="none",
        overrides=by_gpu(),
    )
