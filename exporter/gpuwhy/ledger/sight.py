"""What could not be seen, why, and what would mend it."""

from __future__ import annotations

from collections.abc import Mapping

from gpuwhy.ledger.summary import Window
from gpuwhy.signals.row import GpuRow

Blind = dict[str, str]
"""{"signal", "why", "remedy"}."""

SEEN_ENOUGH = 0.5
"""A source that served fewer of the window's seconds than this is reported as missing."""

DEFAULTS: Mapping[str, tuple[str, str]] = {
    "nvml": (
        "no GPU is in sight of the observer",
        "install the NVIDIA driver, or give the container the GPU (--gpus all); see gpuwhy doctor",
    ),
    "gpm": (
        "no GPM counters: activity inside busy time is not known",
        "GPM needs a Hopper or newer GPU without MIG; dcgm-exporter's PROF fields serve before it",
    ),
    "utilization_ring": (
        "the driver's utilisation ring was not read",
        "see gpuwhy doctor for what the driver supports",
    ),
    "power_ring": (
        "the driver's power ring was not read: no period of the GPU's activity",
        "see gpuwhy doctor for what the driver supports",
    ),
    "gpu_processes": (
        "the driver's process list was not seen: other tenants of the GPU may be hidden",
        "run the observer in the host's PID namespace (pid: host)",
    ),
    "sm_share": (
        "the driver does not say how its processes share the GPU",
        "needs a GPU and driver with per-process utilisation (not under MIG)",
    ),
    "stacks": (
        "no Python stacks of this job were seen",
        "give the observer SYS_PTRACE (or run it as the job's user); see gpuwhy doctor",
    ),
    "cgroup": (
        "the job's cgroup files were not seen: a CPU quota cannot be excluded",
        "mount /sys/fs/cgroup read-only and use the host's cgroup namespace (cgroup: host)",
    ),
}


def cannot_see(window: Window, sources: Mapping[str, Mapping[str, object]]) -> list[Blind]:
    """The signals missing for this run, each with the source's own words where it gave some."""
    expected = ["nvml", "gpm", "power_ring", "gpu_processes", "stacks", "cgroup"]
    if window.last_row.gpu is None:
        expected = ["nvml", "stacks", "cgroup"]
    if window.seen("gpm") < SEEN_ENOUGH and window.last_row.gpu is not None:
        expected.insert(2, "utilization_ring")
    if any(run.others for run in window.runs):
        expected.append("sm_share")
    refused = window.last.refused
    return [
        _blind(name, refused.get(name), sources.get(name))
        for name in expected
        if window.seen(name) < SEEN_ENOUGH
    ]


def _blind(name: str, refused: tuple[str, str] | None, said: Mapping[str, object] | None) -> Blind:
    """What the source said of this very process counts before what it said of itself."""
    why, remedy = DEFAULTS[name]
    if refused is not None:
        why, remedy = refused[0] or why, refused[1] or remedy
    elif said is not None and not said.get("up", True):
        why, remedy = str(said.get("why") or why), str(said.get("remedy") or remedy)
    return {"signal": name, "why": why, "remedy": remedy}


def cannot_see_holders(row: GpuRow, busy: float | None) -> list[Blind]:
    """What is missing of a GPU that no job in sight holds: its activity, or whose it is."""
    if busy is None:
        why = "the GPU's utilisation was not read"
        return [{"signal": "nvml", "why": why, "remedy": "see gpuwhy doctor"}]
    if not row.foreign:
        return []
    pids = ", ".join(str(pid) for pid in row.foreign[:3])
    why = f"a process that the observer does not see holds this GPU (PID {pids})"
    return [{"signal": "processes", "why": why, "remedy": DEFAULTS["gpu_processes"][1]}]


UNKNOWN_SIGNALS = {
    "no-stacks": "stacks",
    "no-gpm": "gpm",
    "no-sm-share": "sm_share",
    "no-cgroup": "cgroup",
    "no-processes": "processes",
    "no-utilization": "nvml",
    "no-limits": "nvml",
    "no-process-list": "gpu_processes",
}
"""Reason of ``unknown`` -> the signal whose absence left it so."""

UNDECIDED = {
    "no-limits": (
        "the card's power limit, its default or its highest clock was not read: what a lower clock "
        "costs, and whether anybody lowered it, is not known",
        "see gpuwhy doctor; nvidia-smi -q shows what the driver tells",
    ),
    "no-gpm": (
        "the GPU's activity counters are missing that would tell work from waiting or copying here",
        "GPM needs a Hopper or newer GPU without MIG; dcgm-exporter's PROF fields serve before it",
    ),
    "no-evidence": (
        "what was seen fits no cause: the GPU idles and the host neither waits nor dispatches",
        "watch longer, or take a profile: gpuwhy profile",
    ),
    "thread-wait": (
        "the main thread waits for another thread or process of the job; its stack does not say "
        "what that one does",
        "take a profile, which shows every thread: gpuwhy profile",
    ),
}
"""Reason of ``unknown`` that no missing source explains -> why, remedy."""
