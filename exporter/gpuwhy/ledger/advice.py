"""The next action that fits what tells one case of a cause from another."""

from __future__ import annotations

from collections.abc import Callable

from gpuwhy.ledger import thresholds as th
from gpuwhy.ledger.evidence import data_function, function_for
from gpuwhy.ledger.summary import Window, spoken

WORKING_CPU = 0.4
"""Cores below which a worker that is at work waits for something that is no CPU."""


def next_action(account: str, reason: str | None, window: Window) -> str:
    """One thing to do next, in a sentence or two; change one thing at a time."""
    return _BY_ACCOUNT[account](reason, window)


def _data(reason: str | None, window: Window) -> str:
    where = data_function(reason, window)
    name = spoken(*where) if where else "the dataset"
    inline = window.phase("data_inline", "data_sampler") or 0.0
    if reason == "sampler":
        return f"The sampler runs in the main process: make {name} cheaper or precompute its order."
    if reason == "worker-start":
        return "Workers are started anew for each epoch: set persistent_workers=True."
    if reason == "inline" or (reason != "waiting" and inline > (window.phase("data_wait") or 0.0)):
        return (
            f"The rank makes its own batches in {name}: move that out of the main process "
            "(DataLoader: num_workers > 0; else a pool of processes that works ahead)."
        )
    if window.queue("workers") is None:
        return f"Find what the loader waits for: gpuwhy profile; then make {name} cheaper."
    return _loaders(name, window)


def _loaders(name: str, window: Window) -> str:
    """What limits the workers: cores, a wait that is no work, or the work itself."""
    workers = window.queue("workers") or 0.0
    cpu, delay = window.run("worker_cpu"), window.run("worker_delay")
    cores, host = window.run("worker_cores"), window.run("host_cores")
    if cores is not None and host is not None and cores < min(host, workers):
        return (
            f"The workers may run on {cores:.0f} of {host:.0f} CPUs only: undo the CPU "
            "affinity (taskset, KMP_AFFINITY, OMP_PROC_BIND, the launcher's binding)."
        )
    if delay is not None and delay >= th.STARVED_DELAY:
        return (
            f"Workers want a CPU and do not get one {delay:.0%} of the time: the host's CPUs are "
            "used up. Give the job more cores, or start fewer workers and other processes."
        )
    if cpu is not None and cpu < WORKING_CPU:
        return (
            f"Workers are at work in {name} but hardly use a CPU ({cpu:.2f} cores each): they wait "
            "for storage or network. Bring the data nearer (local disk, cache, larger shards)."
        )
    more = f", or add workers ({workers:.0f} now)" if _room(workers, window) else ""
    return f"Make {name} cheaper: do it once ahead of time{more}."


def _room(workers: float, window: Window) -> bool:
    """Would more workers have cores to run on?"""
    allowed = [c for c in (window.run("allowed_cores"), window.run("worker_cores")) if c]
    room = min([*allowed, window.run("host_cores") or 0.0])
    idle = window.run("host_idle")
    return room >= 2 * workers and (idle is None or idle >= max(1.0, workers / 2))


def _launch(reason: str | None, window: Window) -> str:
    sm = window.gpu("sm_active")
    small = sm is not None and sm < 0.1
    first = "Kernels are tiny: " if small else "The host cannot launch fast enough: "
    return (
        first + "compile the step (torch.compile, jax.jit) or capture it (CUDA Graphs), take a "
        "fused optimizer (fused=True), a larger batch. gpuwhy nsys prints the command that shows "
        "which kernels."
    )


def _host(reason: str | None, window: Window) -> str:
    where = function_for("host", reason, window)
    name = spoken(*where) if where else "the host code between steps"
    if reason == "synchronize":
        return (
            f"The host waits for the device each step at {name} (.item(), .cpu(), a synchronise, "
            "a printed tensor): do it every N steps, so that the host can run ahead."
        )
    if reason == "logging":
        return f"Log every N steps or in a thread of its own: {name} holds up the step."
    if reason == "garbage-collection":
        return "Collect at step boundaries that you choose (gc.freeze, gc.disable), not every step."
    return f"Move {name} off the step's path: a thread, every N steps, or onto the GPU."


def _comm(reason: str | None, window: Window) -> str:
    if reason == "transfer":
        return (
            "The ranks exchange data over PCIe or host memory: check that NVLink or P2P is there "
            "and used (NCCL_P2P_DISABLE, container IPC, NCCL_DEBUG=INFO), then overlap or compress."
        )
    if window.last.peers:
        return (
            "This rank waits for a slower one: look at the verdict of the rank named in the run's "
            "summary, and mend that."
        )
    return (
        "Ranks on other hosts are waited for: compare their verdicts; then check links and NICs "
        "(NCCL_DEBUG=INFO shows the transport in use)."
    )


def _shared(reason: str | None, window: Window) -> str:
    others = ", ".join(window.last.other_runs) or ", ".join(str(p) for p in window.last.others[:3])
    return f"Another job works on this GPU ({others}): give each a GPU or MIG slice of its own."


def _copy(reason: str | None, window: Window) -> str:
    where = window.function("h2d_copy", "d2h_copy", "user")
    name = f" at {spoken(*where)}" if where else ""
    return (
        f"Copies hold up the step{name}: pin the memory (pin_memory=True), copy with "
        "non_blocking=True, keep on the GPU what need not leave it."
    )


def _throttle(reason: str | None, window: Window) -> str:
    if reason == "at-default-limit":
        return "Nothing to mend: the card works at its factory power limit."
    if reason == "limit-below-default":
        return (
            "The power limit is set below the card's default: ask who lowered it (nvidia-smi -q)."
        )
    if reason == "thermal":
        return "The card is too hot: check fans, airflow, dust and the neighbours' load."
    return "The hardware slows the card down: check power supply, cables and the system event log."


def _quota(reason: str | None, window: Window) -> str:
    quota, cores = window.run("quota_cores"), window.run("allowed_cores")
    if reason == "cpu-quota":
        now = f" ({quota:.3g} {'core' if quota == 1 else 'cores'} now)" if quota else ""
        return (
            f"The container's CPU quota{now} holds the job up: raise it to a core for the rank and "
            "one for each worker (cpu limit, cpu.max), or drop it."
        )
    if reason == "host-cpu":
        return (
            "Other processes use up the host's CPUs: move them, or give the job cores of its own "
            "(cpuset, Slurm --exclusive)."
        )
    few, workers = window.run("worker_cores"), window.run("workers") or 0.0
    if few is not None and workers > few and few < (cores or 0.0):
        return (
            f"The {workers:.0f} workers share {few:.0f} of the {cores:.0f} CPUs that the rank may "
            "use: undo their affinity (worker_init_fn, taskset, KMP_AFFINITY, OMP_PROC_BIND). More "
            "workers would not help."
        )
    known = [c for c in (cores, few) if c is not None]
    some = f"on {min(known):.0f} CPUs" if known else "on some CPUs"
    return (
        f"The job may run {some} only while others are free: widen its cpuset or "
        "affinity (taskset, Slurm --cpus-per-task, KMP_AFFINITY)."
    )


def _stalled(reason: str | None, window: Window) -> str:
    if reason == "peer-missing":
        return "A rank of this job is gone: restart the job from its last checkpoint."
    return "The job stands still: look where with gpuwhy profile, then restart it."


_BY_ACCOUNT: dict[str, Callable[[str | None, Window], str]] = {
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
