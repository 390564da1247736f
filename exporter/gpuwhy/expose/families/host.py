"""The host: CPU, memory, disks, network interfaces, pressure, and RDMA ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuwhy.expose.metric import Metric, Samples, Scope, on_host
from gpuwhy.expose.view import View


def _counter(name: str, text: str, *labels: str, bound: int = 1, scope: Scope = "host") -> Metric:
    return Metric(name, "counter", labels, bound, scope, text)


PORT = ("device", "port")
MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")

CPU = _counter(
    "gpuwhy_host_cpu_seconds_total",
    "CPU time of the host by mode, all CPUs added up.",
    "mode",
    bound=len(MODES),
)
FROM_HOST = (
    (on_host("gpuwhy_host_cpus", "CPUs of the host."), "cpus"),
    (
        on_host("gpuwhy_host_load1", "Tasks running or waiting for a disk, mean over a minute."),
        "load1",
    ),
    (on_host("gpuwhy_host_tasks_running", "Tasks that run or wait for a CPU."), "running"),
    (on_host("gpuwhy_host_tasks_blocked", "Tasks that wait for a disk."), "blocked"),
    (_counter("gpuwhy_host_context_switches_total", "Context switches."), "context_switches"),
    (_counter("gpuwhy_host_interrupts_total", "Interrupts."), "interrupts"),
    (on_host("gpuwhy_host_memory_total_bytes", "Memory of the host."), "memory_total"),
    (
        on_host("gpuwhy_host_memory_available_bytes", "Memory that can be had without swapping."),
        "memory_available",
    ),
    (on_host("gpuwhy_host_swap_total_bytes", "Swap space."), "swap_total"),
    (on_host("gpuwhy_host_swap_free_bytes", "Swap space that is not used."), "swap_free"),
    (_counter("gpuwhy_host_swap_in_bytes_total", "Memory read back from swap."), "swap_in"),
    (_counter("gpuwhy_host_swap_out_bytes_total", "Memory written to swap."), "swap_out"),
    (
        _counter("gpuwhy_host_disk_read_bytes_total", "Bytes read from all disks."),
        "disk_read_bytes",
    ),
    (
        _counter("gpuwhy_host_disk_written_bytes_total", "Bytes written to all disks."),
        "disk_write_bytes",
    ),
    (
        _counter(
            "gpuwhy_host_network_receive_bytes_total",
            "Bytes received on the physical interfaces, or on all but loopback where these cannot "
            "be told.",
        ),
        "network_receive_bytes",
    ),
    (
        _counter(
            "gpuwhy_host_network_transmit_bytes_total",
            "Bytes sent on the physical interfaces, or on all but loopback where these cannot be "
            "told.",
        ),
        "network_transmit_bytes",
    ),
)
"""Metrics that are a field of ``host``."""

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
PORT_CONGESTION = _counter(
    "gpuwhy_network_congestion_total",
    "Waits for credits and congestion notifications of the port by the kernel's name of the "
    "counter.",
    *PORT,
    "kind",
    bound=4,
    scope="port",
)

METRICS = (
    CPU,
    *(metric for metric, _ in FROM_HOST),
    PRESSURE,
    PORT_INFO,
    PORT_UP,
    PORT_SPEED,
    PORT_RECEIVE,
    PORT_TRANSMIT,
    PORT_ERRORS,
    PORT_CONGESTION,
)


def collect(view: View) -> Samples:
    """The last look at the host and at each port."""
    host = view.fact("host")
    for mode in MODES:
        yield CPU, (mode,), host.get("cpu_seconds", {}).get(mode)
    for metric, field in FROM_HOST:
        yield metric, (), host.get(field)
    for resource in ("cpu", "memory", "io"):
        for tasks in ("some", "full"):
            seconds = host.get("psi", {}).get(f"{resource}_{tasks}")
            yield PRESSURE, (resource, tasks), seconds
    for port in view.facts.get("network_port", {}).values():
        yield from _port((str(port["device"]), str(port["port"])), port)


def _port(labels: tuple[str, str], port: Mapping[str, Any]) -> Samples:
    told = (str(port.get(field, "")) for field in ("link_layer", "numa"))
    yield PORT_INFO, (*labels, *told), 1
    yield PORT_UP, labels, port.get("up")
    yield PORT_SPEED, labels, port.get("rate")
    yield PORT_RECEIVE, labels, port.get("receive_bytes")
    yield PORT_TRANSMIT, labels, port.get("transmit_bytes")
    for error, count in port.get("errors", {}).items():
        yield PORT_ERRORS, (*labels, error), count
    for kind, count in port.get("congestion", {}).items():
        yield PORT_CONGESTION, (*labels, kind), count
