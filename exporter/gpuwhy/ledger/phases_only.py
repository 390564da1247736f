"""Causes where no GPU is in sight: what the host's phases alone say."""

from __future__ import annotations

from collections import Counter

from gpuwhy.ledger import thresholds as th
from gpuwhy.ledger.quota import STARVED_PHASES, denied
from gpuwhy.ledger.summary import Window
from gpuwhy.signals.phases import WAIT
from gpuwhy.signals.row import RunSignals


def losses_from_phases(window: Window) -> dict[str, float]:
    """Account -> share of the host's time; empty without stacks.

    The host may wait for longer than the GPU lacks work, so ``data`` is claimed only where the
    workers are behind. The job's own code may be its work, so ``host`` is claimed only of functions
    beside a loop that trains.
    """
    if window.phase() is None:
        return {}
    data = window.phase("data_wait", "data_inline", "data_sampler", "data_worker_start") or 0.0
    quota = sum(map(_kept_off, window.runs)) / len(window.runs)
    data, behind = max(0.0, data - quota), _behind(window)
    losses = {"quota": quota, "data": data if behind else 0.0}
    losses["comm"] = window.phase("grad_sync") or 0.0
    idle = window.call("sleep") + window.call(WAIT)  # no work, but for what is not told
    losses["unknown"] = min(idle, window.phase("user") or 0.0) - window.context("evaluation")
    own = (window.phase("user") or 0.0) - (window.run("loop_lines") or 0.0)
    own = max(0.0, own - window.call("sleep") - window.call(WAIT))
    own += window.phase("logging", "gc") or 0.0
    trains = (window.phase("backward", "optimizer") or 0.0) >= 0.1
    losses["host"] = own if trains else 0.0
    if window.last.holds_gpu:  # it may have had work meanwhile, or not
        losses["unknown"] += (0.0 if behind else data) + (0.0 if trains else own)
    return losses


def reason_from_phases(account: str, window: Window) -> str | None:
    """What tells this case of a cause from another, where no second was entered in an account."""
    limits = _limits(window) if account == "quota" else None
    return limits.most_common(1)[0][0] if limits else None


def _kept_off(run: RunSignals) -> float:
    """Share of a second that the job lost for want of a CPU. A full host delays every thread a
    little: a wait that is merely noticed explains as much as it lasted, not all that was late."""
    kept = denied(run)
    if kept is None:
        return 0.0
    late = sum((run.phases or {}).get(phase, 0.0) for phase in STARVED_PHASES)
    return min(kept.most, max(late, run.throttled or 0.0, run.run_delay or 0.0))


def _limits(window: Window) -> Counter[str]:
    """Limit that kept the job off the CPU -> seconds."""
    return Counter(kept.reason for run in window.runs if (kept := denied(run)) is not None)


def _behind(window: Window) -> bool:
    """Are the workers busy throughout (or is there none in sight)? One that waits for an index has
    delivered all that it may: batches are ready."""
    workers, busy = window.queue("workers"), window.queue("busy_workers")
    return not workers or busy is None or busy >= th.ALL_AT_WORK * workers
