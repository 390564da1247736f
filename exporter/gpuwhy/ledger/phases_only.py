"""Causes where no GPU is in sight: what the host's phases alone say."""

from __future__ import annotations

from collections import Counter

from gpuwhy.ledger import thresholds as th
from gpuwhy.ledger.quota import denied
from gpuwhy.ledger.summary import Window
from gpuwhy.signals.phases import WAIT


def losses_from_phases(window: Window) -> dict[str, float]:
    """Account -> share of the host's time; empty without stacks.

    The host may wait for longer than the GPU lacks work, so ``data`` is claimed only where the
    workers are behind. The job's own code may be its work, so ``host`` is claimed only of functions
    beside a loop that trains.
    """
    if window.phase() is None:
        return {}
    data = window.phase("data_wait", "data_inline", "data_sampler", "data_worker_start") or 0.0
    kept_off = _limits(window).total()
    if 2 * kept_off >= len(window.runs):
        return {"quota": max(data, window.run("throttled") or 0.0, window.run("run_delay") or 0.0)}
    losses = {"data": data if _behind(window) else 0.0}
    losses["comm"] = window.phase("grad_sync") or 0.0
    idle = window.call("sleep") + window.call(WAIT)  # no work, but for what is not told
    losses["unknown"] = min(idle, window.phase("user") or 0.0) - window.context("evaluation")
    if (window.phase("backward", "optimizer") or 0.0) >= 0.1:
        own = (window.phase("user") or 0.0) - (window.run("loop_lines") or 0.0)
        own = max(0.0, own - window.call("sleep") - window.call(WAIT))
        losses["host"] = own + (window.phase("logging", "gc") or 0.0)
    return losses


def reason_from_phases(account: str, window: Window) -> str | None:
    """What tells this case of a cause from another, where no second was entered in an account."""
    limits = _limits(window) if account == "quota" else None
    return limits.most_common(1)[0][0] if limits else None


def _limits(window: Window) -> Counter[str]:
    """Limit that kept the job off the CPU -> seconds."""
    return Counter(kept.reason for run in window.runs if (kept := denied(run)) is not None)


def _behind(window: Window) -> bool:
    """Are the workers busy throughout (or is there none in sight)? One that waits for an index has
    delivered all that it may: batches are ready."""
    workers, busy = window.queue("workers"), window.queue("busy_workers")
    return not workers or busy is None or busy >= th.ALL_AT_WORK * workers
