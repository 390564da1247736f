"""Copies that hold up the GPU: at lines that are known to copy, and behind plain lines.

A C call leaves no Python frame, so a copy may hide behind a line of the job's own that calls
nothing in Python. The link's traffic tells whether it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuwhy.ledger import thresholds as th
from gpuwhy.signals.phases import WAIT
from gpuwhy.signals.row import GpuSignals, RunSignals

COPY_PHASES = {"h2d_copy": "host-to-device", "d2h_copy": "device-to-host"}


def seen_copies(gpu: GpuSignals, phases: Mapping[str, float]) -> dict[str, float]:
    """Reason -> the most idle time that copies at known lines explain. The host also waits at such
    a line for the work before it: what was moved is the bound."""
    if gpu.copied_in is None or gpu.copied_out is None:
        bound = 1.0
    else:
        bound = (gpu.copied_in + gpu.copied_out) / th.COPY_SLOW
    return {reason: min(phases.get(p, 0.0), bound) for p, reason in COPY_PHASES.items()}


@dataclass(frozen=True, slots=True)
class Plain:
    """Host time at lines that may be any C call: its share, and what it is held to be, if that can
    be told: account, reason and the most idle time that it explains."""

    share: float
    account: str = "host"
    reason: str = ""
    most: float = 0.0


def plain_lines(
    gpu: GpuSignals, run: RunSignals, phases: Mapping[str, float], idle: float
) -> Plain:
    """What the job's own plain lines were: copies, if the traffic that no seen copy explains would
    fill enough of the ``idle`` time that they may explain (the rest they wait for the work queued
    before). Without the link's traffic a line of the training loop is not told from a copy."""
    waits = run.calls.get(WAIT, 0.0)
    traffic = _unexplained(gpu, phases)
    if traffic is None:
        own = max(0.0, run.loop_lines - waits)
        return Plain(own, "unknown", "no-gpm", own)
    share = max(0.0, run.opaque - run.calls.get("sleep", 0.0) - waits)
    fills = traffic / th.COPY_PAGEABLE >= th.COPY_EXPLAINS * min(share, idle)
    if not share or not fills or traffic < th.COPY_FAST * th.COPY_MISSED:
        return Plain(share)
    return Plain(share, "copy", _direction(gpu), min(share, traffic / th.COPY_SLOW))


def _unexplained(gpu: GpuSignals, phases: Mapping[str, float]) -> float | None:
    """Bytes/s in either direction that the lines which are seen to copy that way cannot have
    moved. None where the link's traffic was not seen."""
    if gpu.copied_in is None or gpu.copied_out is None:
        return None
    inward = gpu.copied_in - th.COPY_FAST * phases.get("h2d_copy", 0.0)
    outward = gpu.copied_out - th.COPY_FAST * phases.get("d2h_copy", 0.0)
    return max(0.0, inward) + max(0.0, outward)


def _direction(gpu: GpuSignals) -> str:
    inbound, outbound = gpu.pcie_rx or 0.0, gpu.pcie_tx or 0.0
    if min(inbound, outbound) >= 0.5 * max(inbound, outbound):
        return "both-ways"
    return "host-to-device" if inbound > outbound else "device-to-host"
