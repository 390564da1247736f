"""The next action that fits what a trace shows of a cause."""

from __future__ import annotations

import re
from collections.abc import Callable

from gpuwhy.evidence.traces.facts import Facts
from gpuwhy.signals.row import Function

MUCH = 0.3
"""A part of the step with this share of the waits is worth mending by itself."""
NOT_FUSED = re.compile(r"attention|conv|mm\b|matmul|linear|embedding|rnn|nccl|c10d|copy_$")
"""Operators whose kernels come from libraries, which a compiler leaves as they are."""


def next_action(account: str, facts: Facts, function: Function | None) -> str:
    """One thing to do next, in a sentence or two; change one thing at a time."""
    return _BY_ACCOUNT[account](facts, function)


def named(function: Function) -> str:
    """The function's name; a module's own lines by file and line."""
    name, file, line = function
    return f"{file}:{line}" if name.startswith("<") else name


def _data(facts: Facts, function: Function | None) -> str:
    where = f" ({named(function)})" if function else ""
    if facts.inline:
        return (
            f"The main process loads its own batches{where}: give the DataLoader num_workers > 0, "
            "pin_memory=True and persistent_workers=True."
        )
    return (
        f"The loader does not keep up{where}: more workers where CPUs are free, cheaper work on "
        "each item, or data nearer by. gpuwhy diagnose names the function in the workers."
    )


def _launch(facts: Facts, function: Function | None) -> str:
    optimizer = facts.regions.get("optimizer", 0.0)
    parts = []
    if optimizer >= MUCH:
        name = facts.optimizer_name or "the optimizer"
        parts.append(
            f"{optimizer:.0%} of the waits for launches are in {name}: fused=True (or foreach) "
            "in its constructor makes a few launches of its many."
        )
    small = [
        row
        for row in facts.operators
        if row["tiny_ratio"] >= 0.5 and not NOT_FUSED.search(row["operator"])
    ][:3]
    if small:
        names = ", ".join(row["operator"] for row in small)
        parts.append(f"Small kernels come from {names}: torch.compile fuses them.")
    if facts.same_kernels_each_step:
        parts.append(
            "Each step launches the same kernels: CUDA Graphs (torch.compile with "
            'mode="reduce-overhead") replay it in one launch.'
        )
    if not small and not facts.same_kernels_each_step:
        parts.append("torch.compile, or a larger batch: more work for each launch.")
    return " ".join(parts)


def _host(facts: Facts, function: Function | None) -> str:
    name = named(function) if function else "the code between steps"
    late = "The other ranks wait for this one. " if facts.straggler else ""
    found = {r: v for (a, r), v in facts.gpu.shares.items() if a == "host"}
    reason = max(found, key=lambda r: found[r]) if found else "python"
    if reason == "synchronize":
        return late + (
            f"The host waits for the device in {name} (.item(), .cpu(), a synchronise, an "
            "allocation): do it every N steps, so that the host can run ahead."
        )
    if reason == "logging":
        return late + f"Log every N steps or in a thread of its own: {name} holds up the step."
    if reason == "garbage-collection":
        return late + "Collect garbage at step boundaries that you choose (gc.freeze, gc.disable)."
    return late + f"Move {name} off the step's path: a thread, every N steps, or onto the GPU."


def _comm(facts: Facts, function: Function | None) -> str:
    if facts.met is not None and facts.met.straggler not in (None, facts.place):
        return "This rank waits for a later one: mend what the late rank's verdict says."
    if not facts.peers:
        return (
            "Give the traces of all ranks together to tell waiting for a late rank from the "
            "transfer itself; gpuwhy diagnose does so on the running job."
        )
    seen = "This rank is the last to come" if facts.straggler else "No rank stands out"
    return (
        f"{seen}, so the transfer itself is not hidden: larger buckets "
        "(bucket_cap_mb), gradient_as_bucket_view=True, less to send (bf16 gradients), and "
        "NCCL_DEBUG=INFO for the links in use."
    )


def _copy(facts: Facts, function: Function | None) -> str:
    pageable = any(row.get("memory") == "pageable" for row in facts.copies[:2])
    at = f" at {function[1]}:{function[2]}" if function else ""
    pin = (
        "pin the memory (pin_memory=True) and copy with non_blocking=True"
        if pageable
        else ("copy on a stream of its own, one batch ahead")
    )
    return f"Copies{at} hold up the step: {pin}; keep on the GPU what need not leave it."


_BY_ACCOUNT: dict[str, Callable[[Facts, Function | None], str]] = {
    "data": _data,
    "launch": _launch,
    "host": _host,
    "comm": _comm,
    "copy": _copy,
}
