"""The host: CPU, memory, disks, network interfaces, pressure, and RDMA ports."""

from __future__ import annotations

from gpuwhy.expose.metric import Metric, Scope, on_host


def _counter(name: str, text: str, *labels: str, bound: int = 1, scope: Scope = "host") -> Metric:
    return Metric(name, "counter", labels, bound, scope, text)


PORT = ("device", "port")

CPU = _counter(
    "gpuwhy_host_cpu_seconds_total",
    "CPU time of the host by mode, all CPUs added up.",
    "mode",
    bound=8,
)
CPUS = on_host("gpuwhy_host_cpus", "CPUs of the host.")
LOAD = on_host("gpuwhy_host_load1", "Tasks running or waiting for a disk, mean over a minute.")
CONTEXT_SWITCHES = _counter("gpuwhy_host_context_switches_total", "Context switches.")
MEMORY_TOTAL = on_host("gpuwhy_host_memory_total_bytes", "Memory of the host.")
MEMORY_AVAILABLE = on_host(
    "gpuwhy_host_memory_available_bytes", "Memory that can be had without swapping."
)
SWAP_IN = _counter("gpuwhy_host_swap_in_bytes_total", "Memory read back from swap.")
SWAP_OUT = _counter("gpuwhy_host_swap_out_bytes_total", "Memory written to swap.")
DISK_READ = _counter("gpuwhy_host_disk_read_bytes_total", "Bytes read from all disks.")
DISK_WRITTEN = _counter("gpuwhy_host_disk_written_bytes_total", "Bytes written to all disks.")
NETWORK_RECEIVE = _counter(
    "gpuwhy_host_network_receive_bytes_total", "Bytes received on all interfaces but loopback."
)
NETWORK_TRANSMIT = _counter(
    "gpuwhy_host_network_transmit_bytes_total", "Bytes sent on all interfaces but loopback."
)
PRESSURE = _counter(
    "gpuwhy_host_pressure_seconds_total",
    "Time in which tasks of the host waited (PSI). resource: cpu, memory, io; tasks: some, full.",
    "resource",
    "tasks",
    bound=6,
)
PORT_INFO = Metric(
    "gpuwhy_network_info",
    "info",
    (*PORT, "link_layer", "numa"),
    1,
    "port",
    "Identity of an InfiniBand or RDMA port.",
)
PORT_UP = Metric(
    "gpuwhy_network_up", "gauge", PORT, 1, "port", "1 if the port's link is active, else 0."
)
PORT_SPEED = Metric(
    "gpuwhy_network_speed_bytes_per_second", "gauge", PORT, 1, "port", "Rate of the port's link."
)
PORT_RECEIVE = _counter(
    "gpuwhy_network_receive_bytes_total", "Bytes received by the port.", *PORT, scope="port"
)
PORT_TRANSMIT = _counter(
    "gpuwhy_network_transmit_bytes_total", "Bytes sent by the port.", *PORT, scope="port"
)
PORT_ERRORS = _counter(
    "gpuwhy_network_errors_total",
    "Errors of the port by the kernel's name of the counter.",
    *PORT,
    "error",
    bound=16,
    scope="port",
)

METRICS = (
    CPU,
    CPUS,
    LOAD,
    CONTEXT_SWITCHES,
    MEMORY_TOTAL,
    MEMORY_AVAILABLE,
    SWAP_IN,
    SWAP_OUT,
    DISK_READ,
    DISK_WRITTEN,
    NETWORK_RECEIVE,
    NETWORK_TRANSMIT,
    PRESSURE,
    PORT_INFO,
    PORT_UP,
    PORT_SPEED,
    PORT_RECEIVE,
    PORT_TRANSMIT,
    PORT_ERRORS,
)
