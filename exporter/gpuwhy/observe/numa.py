"""NUMA nodes: memory and devices that a CPU reaches without crossing to another one."""

from __future__ import annotations

from pathlib import Path

from gpuwhy.observe.procfs import parse_cpu_list, read_text


def node_of_cpus(sys: str = "/sys") -> dict[int, int]:
    """CPU -> node; empty on a host with one node, and where the kernel does not tell."""
    nodes = Path(sys) / "devices/system/node"
    online = parse_cpu_list(read_text(nodes / "online") or "")
    if len(online) < 2:
        return {}
    return {
        cpu: node
        for node in online
        for cpu in parse_cpu_list(read_text(nodes / f"node{node}/cpulist") or "")
    }
