"""InfiniBand and RoCE ports: link state, traffic and errors from /sys/class/infiniband.

Counters as in the kernel's Documentation/ABI/stable/sysfs-class-infiniband; RoCE cards keep what
matters of congestion and retransmission under ``hw_counters``.
"""

from __future__ import annotations

import re
from pathlib import Path

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.source_state import SourceState

SYSFS = Path("/sys/class/infiniband")

DATA_UNIT = 4
"""port_rcv_data and port_xmit_data count 32-bit words (InfiniBand specification, PortCounters)."""

ERRORS = (
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_xmit_discards",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
)
CONGESTION = ("port_xmit_wait",)
"""Ticks in which data waited for credits."""

HARDWARE_ERRORS = (
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
)
HARDWARE_CONGESTION = ("np_cnp_sent", "rp_cnp_handled")
"""Congestion notifications (RoCE)."""

GIGABIT = 1e9 / 8


class InfinibandSource:
    """Source of ``network_port`` observations, one for each port."""

    name = "infiniband"
    period_s = 1.0
    deadline_s = 5.0  # a card in trouble may be slow to answer its firmware's counters

    def __init__(self, *, sysfs: Path = SYSFS) -> None:
        self._sysfs = sysfs
        self._state = SourceState(self.name)
        self._reads = 0

    def poll(self, now: float) -> list[Observation]:
        """Every port's state and counters; none, without complaint, on a host that has no card."""
        ports = sorted(self._sysfs.glob("*/ports/*"), key=lambda path: path.parts[-3:])
        out = [seen for seen in (read_port(path, now) for path in ports) if seen is not None]
        self._reads += bool(out)
        if out:
            said: tuple[bool, str, str] = (True, "", "")
        elif ports:
            said = (False, f"{len(ports)} ports cannot be read", "check how /sys is mounted here")
        else:
            said = (False, "no InfiniBand or RoCE card in sight", "")
        return out + self._state.report(now, *said, period_s=self.period_s, reads=self._reads)

    def close(self) -> None:
        """Nothing is held between polls."""


def read_port(path: Path, t: float) -> Observation | None:
    """One port below ``/sys/class/infiniband/DEVICE/ports``; None if its state cannot be read."""
    state = (_text(path / "state") or "").partition(": ")[2]
    if not state or not path.name.isdigit():
        return None
    card = path.parents[1]
    out: Observation = {
        "t": t,
        "kind": "network_port",
        "device": card.name,
        "port": int(path.name),
        "state": state,
        "up": state == "ACTIVE",
    }
    layer, rate = _text(path / "link_layer"), link_rate(_text(path / "rate") or "")
    if layer:
        out["link_layer"] = layer
    if rate is not None:
        out["rate"] = rate
    _put_place(out, card / "device")
    _put_counters(out, path)
    return out


def link_rate(text: str) -> float | None:
    """Bytes/s of "400 Gb/sec (4X NDR)"."""
    match = re.match(r"(\d{1,9}(?:\.\d{1,9})?) Gb/sec", text, re.ASCII)
    return float(match[1]) * GIGABIT if match else None


def _put_place(out: Observation, device: Path) -> None:
    node = _number(device / "numa_node")
    if node is not None and node >= 0:  # -1: the machine has no NUMA
        out["numa"] = node
    interfaces = sorted(path.name for path in (device / "net").glob("*"))
    if interfaces:
        out["interfaces"] = interfaces


def _put_counters(out: Observation, path: Path) -> None:
    for name, counter in (("receive_bytes", "port_rcv_data"), ("transmit_bytes", "port_xmit_data")):
        words = _number(path / "counters" / counter)
        if words is not None:
            out[name] = words * DATA_UNIT
    for field, names, hardware in (
        ("errors", ERRORS, HARDWARE_ERRORS),
        ("congestion", CONGESTION, HARDWARE_CONGESTION),
    ):
        files = [path / "counters" / n for n in names] + [
            path / "hw_counters" / n for n in hardware
        ]
        values = {file.name: _number(file) for file in files}
        known = {name: value for name, value in values.items() if value is not None}
        if known:
            out[field] = known


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def _number(path: Path) -> int | None:
    """None also for "N/A (no PMA)", which some drivers write."""
    text = _text(path)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
