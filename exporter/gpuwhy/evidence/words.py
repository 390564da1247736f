"""The words for causes, reasons and accounts, for whoever speaks to a person."""

from __future__ import annotations

from collections.abc import Mapping

CAUSE_WORDS: Mapping[str, str] = {
    "data": "waiting for the input pipeline",
    "launch": "waiting for the host to launch many small kernels",
    "host": "waiting while the host does other work between kernels",
    "comm": "waiting in collectives for other ranks",
    "shared": "taken by other processes on the same GPU",
    "copy": "waiting for copies between host and device",
    "throttle": "running below the attainable clock",
    "quota": "waiting because a limit keeps the job off the CPU",
    "stalled": "held by a job that makes no progress",
    "none": "healthy: no cause costs a share worth naming",
    "unknown": "cannot tell",
}
"""What the GPU is doing instead of the job's work, to follow "GPU 0 is"."""

REASON_WORDS: Mapping[str, str] = {
    "inline": "the rank loads its own batches",
    "sampler": "the sampler, in the main process",
    "worker-start": "workers being started",
    "waiting": "",  # the cause says it
    "python": "the job's own Python",
    "synchronize": "after a synchronisation",
    "straggler": "the other ranks wait for this one",
    "at-default-limit": "information: at its factory power limit, so well used",
    "limit-below-default": "power limit set below the default",
    "thermal": "temperature",
    "hardware": "hardware slowdown",
    "other-process": "",
    "cpu-quota": "CPU quota",
    "affinity": "CPU affinity or cpuset",
    "host-cpu": "other processes use up the host's CPUs",
    "peer-missing": "a rank of the job does not answer",
    "no-progress": "the step does not advance",
}

ACCOUNT_WORDS: Mapping[str, str] = {
    "free": "no job holds the GPU",
    "stalled": "held, no progress",
    "comm": "in collectives, waiting",
    "shared": "other processes",
    "throttle": "lost to a lower clock",
    "compute": "the job's own work",
    "startup": "start-up, compilation",
    "checkpoint": "saving a checkpoint",
    "evaluation": "evaluation, host side",
    "quota": "kept off the CPU",
    "copy": "copies, SMs idle",
    "data": "input pipeline",
    "host": "host work, syncs",
    "launch": "kernel launches",
    "unknown": "cannot be told",
}

PHASE_WORDS: Mapping[str, str] = {
    "data_wait": "waits for the loader",
    "data_inline": "loads data itself",
    "data_sampler": "sampler",
    "data_worker_start": "starts workers",
    "h2d_copy": "copy to the device",
    "d2h_copy": "copy to the host",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "grad_sync": "gradient exchange",
    "sync": "synchronises",
    "framework": "Python of the framework",
    "user": "other Python of the job",
    "logging": "logging",
    "gc": "garbage collection",
    "checkpoint": "checkpoint",
    "compile": "compilation",
    "import": "imports",
    "launcher": "launcher",
}
"""Phases of the host: what the main thread of a rank does."""

INFORMATION = frozenset({"at-default-limit"})
"""Reasons that are no fault: named, never alarming."""


def cause_words(cause: str) -> str:
    """The cause in words; a name that a newer version may bring stands for itself."""
    return CAUSE_WORDS.get(cause, cause)


def reason_words(reason: str | None) -> str | None:
    """The reason in words, if there is one."""
    return REASON_WORDS.get(reason, reason.replace("-", " ")) or None if reason else None
