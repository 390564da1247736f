"""The verdict of one GPU of a trace: the per-GPU object of ``gpuwhy diagnose --json``."""

from __future__ import annotations

from typing import Any

from gpuwhy.evidence.traces.advice import next_action
from gpuwhy.evidence.traces.evidence import CAUSES, evidence_for
from gpuwhy.evidence.traces.facts import Facts
from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.trace import Blind
from gpuwhy.ledger import thresholds as th
from gpuwhy.ledger.accounts import ACCOUNTS
from gpuwhy.ledger.verdict import utc

Entry = dict[str, Any]

NO_LIMITS = Blind(
    "limits",
    "a trace holds no clocks, no other processes and no CPU quota: what they cost is within "
    "compute, launch and host",
    "gpuwhy diagnose while the job runs",
)
NO_STACKS = Blind(
    "python functions",
    "the trace was taken without stacks, so no line of Python can be named",
    "profile with with_stack=True, or gpuwhy profile on the running job",
)
PROFILER = Blind(
    "profiler",
    "recording slows the host, with stacks most: launch and host are larger here than without it, "
    "and data is smaller",
    "compare the steps with the job's own; gpuwhy diagnose on the running job sees their true size",
)
NO_STEPS = Blind(
    "steps",
    "no steps are marked, named or found: the whole file was taken",
    "call profiler.step() in the loop, or name it with record_function",
)
NO_CALLS = Blind(
    "CUDA calls",
    "the file has no CUDA calls of the host: who was waited for cannot be told",
    "record the host's side as well (ProfilerActivity.CPU; nsys --trace=cuda,nvtx,osrt)",
)
NO_HOST = Blind(
    "host",
    "the file has no operators or ranges of the host: between CUDA calls it could do anything",
    "record the host's side as well (ProfilerActivity.CPU; NVTX ranges)",
)
NO_UTC = Blind(
    "time of day",
    "the file does not say when it was taken: times are from its beginning",
    "a newer profiler writes it",
)
ONE_RANK = Blind(
    "other ranks",
    "one rank alone cannot tell waiting for a late rank from the transfer itself",
    "give the traces of all ranks together",
)


def entry(facts: Facts, run: str) -> Entry:
    """The object: accounts of the window, causes from the largest, what cannot be seen."""
    gpu = facts.gpu
    accounts = gpu.accounts
    named = sorted((c for c in CAUSES if accounts.get(c, 0.0) >= th.CAUSE_RATIO),
                   key=lambda c: -accounts[c])  # fmt: skip
    blind = cannot_see(facts)
    return {
        "gpu": gpu.device,
        "uuid": gpu.trace.uuids.get(gpu.device),
        "mig": None,
        "run": run,
        "rank": gpu.trace.rank,
        "cause": _answer(named, accounts),
        "causes": [_cause(account, accounts, facts) for account in named],
        "accounts": {a: round(accounts[a], 4) for a in ACCOUNTS if a in accounts},
        "cannot_see": [{"signal": b.signal, "why": b.why, "remedy": b.remedy} for b in blind],
        "file": gpu.trace.source,
        "name": gpu.trace.devices.get(gpu.device),
        "window": window_of(gpu),
    }


def window_of(gpu: Gpu) -> dict[str, Any]:
    """Start and end in UTC where known, and the length in seconds."""
    start, end = gpu.utc(gpu.window.start), gpu.utc(gpu.window.end)
    return {
        "start": None if start is None else utc(start),
        "end": None if end is None else utc(end),
        "seconds": round(gpu.window.length / 1e9, 6),
    }


def _answer(named: list[str], accounts: dict[str, float]) -> str:
    """The one word, by the rule of the ledger: ``unknown`` where that is the largest loss."""
    largest = accounts[named[0]] if named else 0.0
    if accounts.get("unknown", 0.0) >= max(th.UNKNOWN_RATIO, largest):
        return "unknown"
    return named[0] if named else "none"


def _cause(account: str, accounts: dict[str, float], facts: Facts) -> Entry:
    function = facts.function(account)
    name, file, line = function or ("", "", 0)
    return {
        "cause": account,
        "reason": facts.reason(account),
        "lost_ratio": round(accounts[account], 4),
        "confidence": _confidence(account, accounts),
        "evidence": evidence_for(account, facts),
        "function": {"name": name, "file": file, "line": line} if function else None,
        "next_action": next_action(account, facts, function),
    }


def _confidence(account: str, accounts: dict[str, float]) -> float:
    """As in the ledger: how far above the threshold, less what is not known. An order only."""
    size = min(1.0, accounts[account] / (2 * th.CAUSE_RATIO))
    known = 1.0 - accounts.get("unknown", 0.0)
    return round(max(0.05, min(0.99, (0.4 + 0.6 * size) * known)), 2)


def cannot_see(facts: Facts) -> list[Blind]:
    """What this file does not show, and what would."""
    gpu, trace = facts.gpu, facts.gpu.trace
    absent = (
        (not len(trace.calls.start), NO_CALLS),
        (bool(len(trace.calls.start)) and not len(trace.spans.start), NO_HOST),
        (gpu.steps is None, NO_STEPS),
        (not facts.culprits.can_see, NO_STACKS),
        (True, PROFILER),
        (bool(gpu.comm.total) and not facts.peers, ONE_RANK),
        (trace.origin_ns is None, NO_UTC),
        (True, NO_LIMITS),
    )
    return [*trace.blind, *gpu.blind, *(blind for missing, blind in absent if missing)]
