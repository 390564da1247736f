"""The numbers behind a cause, each with its unit and source, for a person to check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuwhy.ledger import thresholds as th
from gpuwhy.ledger.summary import Window
from gpuwhy.signals.row import Function

Item = dict[str, Any]
"""{"text", "value", "unit", "source"}."""


NOTICEABLE = 0.01
"""A smaller share of the host's time is no evidence."""


class _Evidence:
    """Collects items whose value is known."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def add(self, text: str, value: float | None, unit: str, source: str) -> None:
        if value is not None:
            self.items.append(
                {"text": text, "value": round(float(value), 4), "unit": unit, "source": source}
            )


def evidence_for(account: str, reason: str | None, window: Window) -> list[Item]:
    """Evidence for one cause; the GPU's own state comes last in each."""
    found = _Evidence()
    _BY_ACCOUNT[account](window, found)
    found.add("GPU busy", window.gpu("busy"), "ratio", _busy_source(window))
    return found.items


def _busy_source(window: Window) -> str:
    gpu = window.last_row.gpu
    return (gpu.busy_source if gpu is not None else None) or "nvml"


def _data(window: Window, found: _Evidence) -> None:
    found.add("host time waiting for the next batch", window.phase("data_wait"), "ratio", "stacks")
    inline = window.phase("data_inline", "data_sampler")
    if (inline or 0.0) >= NOTICEABLE:
        found.add("host time making the batch itself", inline, "ratio", "stacks")
    starting = window.phase("data_worker_start")
    if (starting or 0.0) >= NOTICEABLE:
        found.add("host time starting workers", starting, "ratio", "stacks")
    found.add("workers at work", window.queue("busy_workers"), "workers", "stacks")
    found.add("workers in all", window.queue("workers"), "workers", "processes")
    found.add("batches ready (estimate)", window.queue("ready"), "batches", "stacks")
    found.add("CPU used by a worker", window.run("worker_cpu"), "cores", "processes")
    delay = window.run("worker_delay")
    if (delay or 0.0) >= th.NOTICED_DELAY:
        found.add("workers waited for a CPU", delay, "ratio", "processes")
    where = window.worker_function()
    share = window.worker_share(where[0]) if where is not None else None
    if where is not None and (share or 0.0) >= 0.1:
        found.add(f"workers' time in {where[0]}", share, "ratio", "stacks")


def _launch(window: Window, found: _Evidence) -> None:
    found.add(
        "host time dispatching (forward, backward, optimizer)",
        window.phase("forward", "backward", "optimizer"),
        "ratio",
        "stacks",
    )
    found.add("CPU used by the rank", window.run("cpu"), "cores", "processes")
    found.add("SM active", window.gpu("sm_active"), "ratio", "gpm")
    found.add("power", window.gpu("power_w"), "W", "nvml")


def _host(window: Window, found: _Evidence) -> None:
    found.add("host time in the job's own Python", window.phase("user"), "ratio", "stacks")
    device = window.phase("sync", "framework")
    if (device or 0.0) >= NOTICEABLE:
        found.add("host time waiting for the device", device, "ratio", "stacks")
    for phase, text in (("logging", "logging"), ("gc", "collecting garbage")):
        share = window.phase(phase)
        if (share or 0.0) >= NOTICEABLE:
            found.add(f"host time {text}", share, "ratio", "stacks")
    found.add("batches ready (estimate)", window.queue("ready"), "batches", "stacks")
    if any(run.straggler for run in window.runs):
        found.add("other ranks in sight that wait for this one", window.last.peers, "ranks", "gpm")


def _comm(window: Window, found: _Evidence) -> None:
    found.add("resident but waiting in a collective", window.run("waiting"), "ratio", "gpm")
    found.add("SM active", window.gpu("sm_active"), "ratio", "gpm")
    found.add("tensor active", window.gpu("tensor"), "ratio", "gpm")
    found.add("PCIe to the device", window.gpu("pcie_rx"), "bytes/s", "gpm")
    found.add("NVLink received", window.gpu("nvlink_rx"), "bytes/s", "gpm")
    found.add("power", window.gpu("power_w"), "W", "nvml")
    found.add("host time in a collective", window.phase("grad_sync"), "ratio", "stacks")


def _shared(window: Window, found: _Evidence) -> None:
    found.add("SM share of this job", window.run("own_sm"), "ratio", "sm_share")
    found.add("SM share of other processes", window.run("other_sm"), "ratio", "sm_share")
    for pid in window.last.others[:3]:
        found.add("other process on this GPU", pid, "pid", "gpu_processes")


def _copy(window: Window, found: _Evidence) -> None:
    found.add("PCIe to the device", window.gpu("pcie_rx"), "bytes/s", "gpm")
    found.add("PCIe from the device", window.gpu("pcie_tx"), "bytes/s", "gpm")
    found.add(
        "host time at the copying line",
        window.phase("h2d_copy", "d2h_copy", "user"),
        "ratio",
        "stacks",
    )


def _throttle(window: Window, found: _Evidence) -> None:
    found.add("SM clock", window.gpu("sm_mhz"), "MHz", "nvml")
    found.add("attainable SM clock", window.gpu("attainable_sm_mhz"), "MHz", "nvml")
    found.add("power", window.gpu("power_w"), "W", "nvml")
    found.add("power limit", window.gpu("power_limit_w"), "W", "nvml")
    found.add("default power limit", window.gpu("power_default_w"), "W", "nvml")
    found.add("temperature", window.gpu("temperature_c"), "celsius", "nvml")


def _quota(window: Window, found: _Evidence) -> None:
    found.add("CPU periods throttled", window.run("throttled"), "ratio", "cgroup")
    found.add("CPU quota", window.run("quota_cores"), "cores", "cgroup")
    found.add("CPUs allowed", window.run("allowed_cores"), "cores", "processes")
    found.add("CPUs allowed to a worker", window.run("worker_cores"), "cores", "processes")
    found.add("DataLoader workers", window.run("workers"), "workers", "processes")
    found.add("CPU used by a worker", window.run("worker_cpu"), "cores", "processes")
    found.add("CPUs of the host", window.run("host_cores"), "cores", "host")
    found.add("main thread waited for a CPU", window.run("run_delay"), "ratio", "processes")
    found.add("workers waited for a CPU", window.run("worker_delay"), "ratio", "processes")
    found.add("CPUs of the host that are free", window.run("host_idle"), "cores", "host")


def _stalled(window: Window, found: _Evidence) -> None:
    found.add("main thread in the same stack", window.run("stuck_s"), "s", "stacks")
    found.add("power", window.gpu("power_w"), "W", "nvml")
    found.add("DRAM active", window.gpu("dram"), "ratio", "gpm")
    found.add("CPU used by the job's children", window.run("children_cpu"), "cores", "processes")


_BY_ACCOUNT: dict[str, Callable[[Window, _Evidence], None]] = {
    "data": _data,
    "launch": _launch,
    "host": _host,
    "comm": _comm,
    "shared": _shared,
    "copy": _copy,
    "throttle": _throttle,
    "quota": _quota,
    "stalled": _stalled,
}

_PHASES = {
    "launch": ("forward", "backward", "optimizer"),
    "host": ("user", "logging", "gc", "sync", "framework"),
    "comm": ("grad_sync", "backward"),
    "copy": ("h2d_copy", "d2h_copy", "user"),
}


_HOST_PHASES = {
    "python": ("user",),
    "logging": ("logging",),
    "garbage-collection": ("gc",),
    "straggler": ("user", "logging", "gc"),
}
"""Where a host's own work holds up the step, a line that waits for the device is not to blame,
though it may take longer."""


def function_for(account: str, reason: str | None, window: Window) -> Function | None:
    """The hottest user function behind a cause; None where no function is to blame."""
    if account == "data":
        return data_function(reason, window)
    if account == "stalled":
        return window.function(*dict.fromkeys(p for r in window.runs for p in r.functions))
    if account == "host" and (working := window.function(*_HOST_PHASES.get(reason or "", ()))):
        return working
    phases = _PHASES.get(account)
    return window.function(*phases) if phases else None


def data_function(reason: str | None, window: Window) -> Function | None:
    """Where the batches are made: in the rank itself, or in its workers."""
    if reason == "worker-start":
        return window.function("data_worker_start")
    own = {"inline": "data_inline", "sampler": "data_sampler"}.get(reason or "")
    if own is None:  # a straggler, or no GPU in sight: where the time is
        inline = window.phase("data_inline", "data_sampler") or 0.0
        own = "data_inline" if inline > (window.phase("data_wait") or 0.0) else None
    found = window.function(own, "data_inline", "data_sampler") if own else None
    inline_too = window.function("data_inline", "data_sampler")
    return found or window.worker_function() or inline_too or window.function("data_wait")
