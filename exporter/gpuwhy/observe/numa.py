"""NUMA nodes: memory and devices that a CPU reaches without crossing to another one."""

from __future__ import annotations

from pathlib import Path

from gpuwhy.observe.procfs import parse_cpu_list, read_text

MOST_NODES = 1 << 10
"""What kernels are built for: CONFIG_NODES_SHIFT is 10 at most."""


def online(nodes: Path) -> list[int]:
    """The nodes in /sys/devices/system/node; none where the kernel does not tell."""
    found = parse_cpu_list(read_text(nodes / "online") or "")
    return sorted(found) if len(found) <= MOST_NODES else []


def node_of_cpus(sys: str = "/sys") -> dict[int, int]:
    """CPU -> node; empty on a host with one node, and where the kernel does not tell."""
    nodes = Path(sys) / "devices/system/node"
    numbers = online(nodes)
    if len(numbers) < 2:
        return {}
    return {
        cpu: node
        for node in numbers
        for cpu in parse_cpu_list(read_text(nodes / f"node{node}/cpulist") or "")
    }
