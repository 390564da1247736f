"""The host as ``dstat`` shows it: CPU, load, memory, swap, disks, network, pressure, NUMA."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuwhy.observe import numa
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.procfs import (
    PAGE,
    TICK,
    number,
    parse_cpu_list,
    parse_pressure,
    read_text,
)
from gpuwhy.observe.source_state import SourceState

MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
SECTOR = 512
"""Bytes of a sector in /proc/diskstats, whatever the disk's own (kernel: iostats.rst)."""

_DISK = re.compile(r"(?:(?:sd|vd|xvd|hd|dasd)[a-z]+|nvme\d+n\d+|mmcblk\d+|pmem\d+|rbd\d+|nbd\d+)$")
"""Whole disks. Partitions, and devices that lie on others (dm-, md, loop), count bytes twice."""
_VIRTUAL = re.compile(
    r"(?:lo$|veth|docker|podman|br-|br\d|virbr|vmbr|lxdbr|ovs-|geneve|genev_|vlan|cni|cali|flannel|cilium|lxc|vxlan|kube|nodelocaldns|tun|tap"
    r"|wg|dummy|ifb|bond|team|sit|gre|ip6|vnet|macvtap|tailscale)|.*[.@]"
)
"""Interfaces whose bytes pass through another one too."""


class HostSource:
    """Emits one ``host`` observation a second. ``proc`` and ``sys`` are where those are mounted."""

    name = "host"
    period_s = 1.0
    deadline_s = 5.0

    def __init__(self, *, proc: str = "/proc", sys: str = "/sys") -> None:
        self._proc = proc
        self._nodes = f"{sys}/devices/system/node"
        self._state = SourceState(self.name)

    def poll(self, now: float) -> list[Observation]:
        """The host at ``now`` (Unix seconds); what cannot be read is absent."""
        fields: dict[str, Any] = {}
        for names, parse in PARTS:
            texts = (read_text(f"{self._proc}/{name}") for name in names)
            text = next((text for text in texts if text is not None), None)
            if text is not None:
                with contextlib.suppress(ValueError, IndexError):  # a kernel that writes otherwise
                    fields.update(parse(text))
        for name, value in (("psi", self._pressure()), ("numa", self._numa())):
            if value:
                fields[name] = value
        if "cpu_seconds" in fields:
            said = self._state.report(now, True)
        else:
            why = f"{self._proc}/stat cannot be read"
            said = self._state.report(now, False, why, f"mount {self._proc} for gpuwhy")
        return [{"t": now, "kind": "host", **fields}, *said]

    def close(self) -> None:
        """Nothing is held open."""

    def _pressure(self) -> dict[str, float]:
        psi: dict[str, float] = {}
        for resource in ("cpu", "memory", "io"):
            text = read_text(f"{self._proc}/pressure/{resource}") or ""
            psi.update(parse_pressure(resource, text))
        return psi

    def _numa(self) -> list[dict[str, Any]]:
        online = numa.online(Path(self._nodes))
        return [self._node(number) for number in online] if len(online) > 1 else []

    def _node(self, number: int) -> dict[str, Any]:
        folder = Path(self._nodes) / f"node{number}"
        node: dict[str, Any] = {"node": number}
        cpus = parse_cpu_list(read_text(folder / "cpulist") or "")
        if cpus:
            node["cpus"] = len(cpus)
        sizes = _kilobytes(re.sub(r"(?m)^Node \d+ ", "", read_text(folder / "meminfo") or ""))
        for ours, theirs in (("memory_total", "MemTotal"), ("memory_free", "MemFree")):
            if theirs in sizes:
                node[ours] = sizes[theirs]
        return node


def parse_stat(text: str) -> dict[str, Any]:
    """``/proc/stat``. Time of guests is part of user and nice already."""
    cpus = len(re.findall(r"^cpu\d+ ", text, re.MULTILINE))
    fields: dict[str, Any] = {"cpus": cpus} if cpus else {}
    for line in text.splitlines():
        name, *values = line.split()
        if name == "cpu":
            seconds = [round(_count(value) * TICK, 2) for value in values]
            fields["cpu_seconds"] = dict(zip(MODES, seconds, strict=False))
        elif name in _COUNTS:
            fields[_COUNTS[name]] = _count(values[0])
    return fields


_COUNTS = {
    "ctxt": "context_switches",
    "intr": "interrupts",
    "procs_running": "running",
    "procs_blocked": "blocked",
}


def parse_loadavg(text: str) -> dict[str, Any]:
    """``/proc/loadavg``."""
    loads = [float(word) for word in text.split()[:3]]
    return dict(zip(("load1", "load5", "load15"), loads, strict=False))


def parse_meminfo(text: str) -> dict[str, Any]:
    """``/proc/meminfo``, in bytes."""
    names = {
        "memory_total": "MemTotal",
        "memory_available": "MemAvailable",
        "swap_total": "SwapTotal",
        "swap_free": "SwapFree",
    }
    sizes = _kilobytes(text)
    return {ours: sizes[theirs] for ours, theirs in names.items() if theirs in sizes}


def parse_vmstat(text: str) -> dict[str, Any]:
    """``/proc/vmstat``: bytes moved from and to swap so far."""
    found = dict(re.findall(r"^(pswpin|pswpout) (\d+)$", text, re.MULTILINE))
    names = {"swap_in": "pswpin", "swap_out": "pswpout"}
    return {ours: _count(found[theirs]) * PAGE for ours, theirs in names.items() if theirs in found}


def parse_diskstats(text: str) -> dict[str, Any]:
    """``/proc/diskstats``: bytes read and written by all whole disks so far."""
    rows = [line.split() for line in text.splitlines()]
    disks = [row for row in rows if len(row) >= 10 and _DISK.match(row[2])]
    if not disks:
        return {}
    return {
        "disk_read_bytes": SECTOR * sum(_count(row[5]) for row in disks),
        "disk_write_bytes": SECTOR * sum(_count(row[9]) for row in disks),
    }


def parse_net_dev(text: str) -> dict[str, Any]:
    """``/proc/net/dev``: bytes through all interfaces that are no mere link to another one."""
    rows = [line.partition(":") for line in text.splitlines() if ":" in line]
    links = [values.split() for name, _, values in rows if not _VIRTUAL.match(name.strip())]
    if not links:
        return {}
    return {
        "network_receive_bytes": sum(_count(values[0]) for values in links),
        "network_transmit_bytes": sum(_count(values[8]) for values in links),
    }


def _count(word: str) -> int:
    found = number(word)
    if found is None:
        raise ValueError(f"{word[:40]!r} is no count")
    return found


def _kilobytes(text: str) -> dict[str, int]:
    rows = re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)
    return {name: 1024 * _count(size) for name, size in rows}


PARTS: tuple[tuple[tuple[str, ...], Callable[[str], dict[str, Any]]], ...] = (
    (("stat",), parse_stat),
    (("loadavg",), parse_loadavg),
    (("meminfo",), parse_meminfo),
    (("vmstat",), parse_vmstat),
    (("diskstats",), parse_diskstats),
    # In a container /proc/net is its own network; PID 1's is the host's, where that is in sight.
    (("1/net/dev", "net/dev"), parse_net_dev),
)
