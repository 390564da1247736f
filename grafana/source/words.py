"""The words of panels, all by value mapping: a label holds a name, never a sentence."""

from __future__ import annotations

from typing import Any

from grafana.source import palette

from gpuwhy.evidence.words import ACCOUNT_WORDS
from gpuwhy.expose.families.verdict import ANSWERS

CAUSES = {
    "none": "None: the GPUs are used",
    "data": "Input pipeline",
    "launch": "Kernel launches",
    "host": "Host work between kernels",
    "comm": "Waiting for other ranks",
    "shared": "Other processes on the GPU",
    "copy": "Copies",
    "throttle": "Lowered clock",
    "quota": "CPU quota or affinity",
    "stalled": "No progress",
    "unknown": "Cannot tell",
}
"""What the GPUs are waiting for."""

CASES = {
    "data/waiting": "batches come too late",
    "data/inline": "the rank loads its own batches",
    "data/sampler": "sampler in the main process",
    "data/worker-start": "workers started anew",
    "comm/waiting": "waits for a slower rank",
    "comm/transfer": "transfers data",
    ".+/straggler": "the others wait for this rank",
    "host/python": "plain Python",
    "host/synchronize": "after a synchronisation",
    "host/logging": "logging",
    "host/garbage-collection": "garbage collection",
    "throttle/at-default-limit": "factory limit: information",
    "throttle/limit-below-default": "power limit lowered",
    "throttle/thermal": "heat",
    "throttle/hardware": "hardware slowdown",
    "quota/cpu-quota": "CPU quota",
    "quota/affinity": "affinity or cpuset",
    "quota/host-cpu": "the host is short of CPU",
    "stalled/peer-missing": "a rank does not answer",
    "stalled/no-progress": "the step stands still",
    "copy/host-to-device": "host to device",
    "copy/device-to-host": "device to host",
    "copy/both-ways": "both ways",
    "unknown/no-evidence": "fits no cause",
    "unknown/thread-wait": "waits for another thread",
    "unknown/no-stacks": "no Python stacks",
    "unknown/no-gpm": "no activity counters",
    "unknown/no-sm-share": "no shares by process",
    "unknown/no-cgroup": "no control group",
    "unknown/no-processes": "no process table",
    "unknown/no-process-list": "no processes of the GPU",
    "unknown/no-utilization": "no utilisation",
    "unknown/no-limits": "no limits of clock and power",
    ".+/(other-process)?": "–",
}
"""What tells one case of a cause from another, by ``cause/reason``."""

NEXT = {
    "none/": "nothing to do",
    "data/inline": "give the DataLoader num_workers > 0",
    "data/sampler": "make the sampler cheaper, or sort ahead of time",
    "data/worker-start": "set persistent_workers=True",
    ".+/straggler": "mend the late rank first: the others wait for it",
    "data/": "make the function cheaper, or run it ahead of time",
    "launch/": "torch.compile or CUDA Graphs, fused optimizer, larger batch",
    "host/synchronize": "read scalars (.item(), print) every N steps",
    "host/logging": "log every N steps, or in a thread",
    "host/garbage-collection": "gc.freeze, and collect between steps of your choice",
    "host/": "take it off the step's path: thread, every N steps, GPU",
    "comm/": "look at the rank that is late (Lockstep), then at the network",
    "shared/": "give each job a GPU or MIG slice of its own",
    "copy/": "pin_memory=True, non_blocking=True, copy less",
    "throttle/at-default-limit": "nothing: it works at its factory power limit",
    "throttle/limit-below-default": "ask who lowered the power limit",
    "throttle/thermal": "check fans, airflow and dust",
    "throttle/": "see which limit holds the clock (One GPU)",
    "quota/affinity": "widen cpuset or affinity (taskset, --cpus-per-task)",
    "quota/host-cpu": "free CPUs of the host, or use fewer workers",
    "quota/": "raise the CPU quota: a core for the rank and each worker",
    "stalled/peer-missing": "a rank is gone: restart from the last checkpoint",
    "stalled/": "see where it stands (gpuwhy profile), then restart it",
    "unknown/(no-evidence|thread-wait)": "gpuwhy profile shows every thread: look there",
    "unknown/": "mend what cannot be seen, below (gpuwhy doctor)",
}
"""By the start of ``cause/reason``; the first that fits."""

PHASES = {
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
    "user": "other Python of the job",
    "framework": "Python of the framework",
    "logging": "logging",
    "gc": "garbage collection",
    "checkpoint": "checkpoint",
    "compile": "compilation",
    "import": "imports",
    "launcher": "launcher",
}

SOURCES = {
    "nvml": "driver (NVML)",
    "gpm": "activity counters (GPM)",
    "utilization_ring": "utilisation ring",
    "power_ring": "power ring (50 Hz)",
    "gpu_processes": "processes on the GPU",
    "sm_share": "SM share by process",
    "processes": "process table",
    "stacks": "Python stacks (py-spy)",
    "cgroup": "control groups",
    "host": "host counters",
    "nccl_ras": "NCCL RAS",
    "infiniband": "InfiniBand and RDMA ports",
}

LOST_WITHOUT = {
    "nvml": "everything of the GPU",
    "gpm": "waiting told from work; fewer certain causes",
    "utilization_ring": "swings within a scrape",
    "power_ring": "period and rhythm",
    "gpu_processes": "which job holds which GPU",
    "sm_share": "sharing told from own work",
    "processes": "jobs, ranks, workers",
    "stacks": "phases, functions, steps",
    "cgroup": "CPU quota and its throttling",
    "host": "CPU, disk and network of the host",
    "nccl_ras": "who waits for whom over hosts (only jobs with NCCL answer)",
    "infiniband": "traffic and errors of ports (only hosts that have them)",
}

Mapping = dict[str, Any]


def account(name: str) -> str:
    """An account in a legend: its name and what it means."""
    return f"{name}: {ACCOUNT_WORDS[name]}"


def _value(options: dict[str, dict[str, Any]]) -> list[Mapping]:
    return [{"type": "value", "options": options}]


def _texts(words: dict[str, str]) -> list[Mapping]:
    return _value({key: {"text": text, "index": i} for i, (key, text) in enumerate(words.items())})


def causes() -> list[Mapping]:
    """Mappings of a cause's name to words and colour."""
    return _value(
        {
            cause: {"text": words, "color": palette.CAUSES[cause], "index": i}
            for i, (cause, words) in enumerate(CAUSES.items())
        }
    )


def answers() -> list[Mapping]:
    """The same for ``cause/reason``: at the factory power limit nothing is wrong."""
    information = {"text": "None: at full power", "color": palette.GOOD}
    patterns = [("throttle/at-default-limit", information)]
    for cause, words in CAUSES.items():
        patterns.append((f"{cause}/.*", {"text": words, "color": palette.CAUSES[cause]}))
    return [
        {"type": "regex", "options": {"pattern": pattern, "result": {**result, "index": i}}}
        for i, (pattern, result) in enumerate(patterns)
    ]


def cause_codes() -> list[Mapping]:
    """The same for ``gpuwhy_verdict_cause_code``."""
    return _value(
        {
            str(code): {"text": CAUSES[cause], "color": palette.CAUSES[cause], "index": code}
            for code, cause in enumerate(ANSWERS)
        }
    )


def _patterns(words: dict[str, str], rest: str) -> list[Mapping]:
    """The first that fits holds."""
    return [
        {
            "type": "regex",
            "options": {"pattern": f"{start}{rest}", "result": {"text": text, "index": i}},
        }
        for i, (start, text) in enumerate(words.items())
    ]


def cases() -> list[Mapping]:
    """Mappings of ``cause/reason`` to what tells the case."""
    return _patterns(CASES, "")


def next_actions() -> list[Mapping]:
    """Mappings of ``cause/reason`` to what to do next."""
    return _patterns(NEXT, ".*")


def phases() -> list[Mapping]:
    """Mappings of a phase of the host to words."""
    return _texts(PHASES)


def sources() -> list[Mapping]:
    """Mappings of a source's name to words."""
    return _texts(SOURCES)


def lost_without() -> list[Mapping]:
    """Mappings of a source's name to what is lost without it."""
    return _texts(LOST_WITHOUT)


def up_down() -> list[Mapping]:
    """1 and 0 of a source or target."""
    return _value(
        {
            "0": {"text": "missing", "color": palette.WARN, "index": 0},
            "1": {"text": "serves", "color": palette.GOOD, "index": 1},
        }
    )


def yes_no(yes: str = "yes", no: str = "no") -> list[Mapping]:
    """1 and 0 of a condition that is bad when true."""
    return _value(
        {
            "0": {"text": no, "color": palette.GOOD, "index": 0},
            "1": {"text": yes, "color": palette.BAD, "index": 1},
        }
    )


def not_told() -> list[Mapping]:
    """A number that nobody knows."""
    return [{"type": "special", "options": {"match": "nan", "result": {"text": "–"}}}]


def late() -> list[Mapping]:
    """1 and 0 of a rank that the others wait for."""
    return _value(
        {
            "0": {"text": "in time", "color": palette.NEUTRAL, "index": 0},
            "1": {"text": "the others wait for it", "color": palette.ACCOUNTS["host"], "index": 1},
        }
    )


def recorded() -> list[Mapping]:
    """1 and 0 of what is played back."""
    return _value(
        {
            "0": {"text": "live", "color": palette.GOOD, "index": 0},
            "1": {"text": "recorded", "color": palette.WARN, "index": 1},
        }
    )
