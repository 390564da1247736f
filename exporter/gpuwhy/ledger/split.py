"""Take one second of one run on one GPU apart into accounts: the run view.

Pure: a row in, shares out, in the fixed order of ``accounts``. Idle time is split by cause, not in
proportion to what the host did: CUDA is asynchronous, and while the host waits the GPU works off
what was queued. So each cause may take idle time up to the time the host spent on it, the surest
first; ``launch`` and ``compute`` need evidence of their own, and the rest is ``unknown``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuwhy.ledger import thresholds as th
from gpuwhy.ledger.copies import plain_lines, seen_copies
from gpuwhy.ledger.quota import denied, untold, without_starved
from gpuwhy.ledger.stalled import stall_reason
from gpuwhy.signals.phases import WAIT
from gpuwhy.signals.row import GpuRow, GpuSignals, RunSignals

Shares = dict[tuple[str, str], float]
"""(account, reason) -> share of the second. Reason is "" where there is none."""


@dataclass(frozen=True, slots=True)
class Split:
    """Run view of one second: busy and idle part, which add up to 1 together."""

    busy: Shares = field(default_factory=dict)
    idle: Shares = field(default_factory=dict)

    @property
    def shares(self) -> Shares:
        """Both parts as one."""
        keys = {**self.busy, **self.idle}
        return {key: self.busy.get(key, 0.0) + self.idle.get(key, 0.0) for key in keys}


DATA_PHASES = {
    "data_wait": "waiting",
    "data_inline": "inline",
    "data_sampler": "sampler",
    "data_worker_start": "worker-start",
}
HOST_PHASES = {"user": "python", "logging": "logging", "gc": "garbage-collection"}
SYNC_PHASES = ("sync", "framework", "h2d_copy", "d2h_copy")
DISPATCH_PHASES = ("forward", "backward", "optimizer")


class _Rest:
    """What is left to hand out of a part of the second."""

    def __init__(self, amount: float, shares: Shares) -> None:
        self.left = max(0.0, amount)
        self.shares = shares

    def take(self, account: str, reason: str, most: float) -> float:
        amount = min(self.left, max(0.0, most))
        if amount > 0:
            key = (account, reason)
            self.shares[key] = self.shares.get(key, 0.0) + amount
            self.left -= amount
        return amount

    def take_all(self, account: str, reason: str) -> None:
        self.take(account, reason, self.left)


def split(row: GpuRow, run: RunSignals) -> Split:
    """Accounts of one (GPU, run, rank) for one second; empty where no GPU is in sight."""
    gpu = row.gpu
    if gpu is None:
        return Split()
    if gpu.busy is None:
        return Split(idle={("unknown", "no-utilization"): 1.0})
    stalled = stall_reason(row, run)
    if stalled is not None:
        key = ("stalled", stalled)
        return Split({key: gpu.busy}, {key: 1.0 - gpu.busy})
    result = Split()
    _busy(row, gpu, run, _Rest(gpu.busy, result.busy))
    _idle(gpu, run, _Rest(1.0 - gpu.busy, result.idle))
    return result


# -- busy time -----------------------------------------------------------------------------------


def _busy(row: GpuRow, gpu: GpuSignals, run: RunSignals, rest: _Rest) -> None:
    total = rest.left
    if _spins_unexplained(run):
        rest.take_all("unknown", "no-stacks")
    rest.take("comm", "transfer" if run.waiting_how == "link" else "waiting", run.waiting or 0.0)
    others = _others_share(row, run)
    if others is None:
        rest.take_all("unknown", "no-sm-share")
    else:
        rest.take("shared", "other-process", rest.left * others)
    lost, limit = throttle(gpu)
    rest.take("throttle" if limit else "unknown", limit or "no-limits", rest.left * lost)
    if _may_wait_unseen(row, run, total):
        rest.take_all("unknown", "no-gpm")
    rest.take_all("compute", "")


def _others_share(row: GpuRow, run: RunSignals) -> float | None:
    """Share of the busy time that other processes took; None where somebody else is on the GPU
    and the driver does not say how much."""
    others = bool(run.others or run.other_runs or row.foreign)
    if run.own_sm is not None and run.other_sm is not None:
        total = run.own_sm + run.other_sm
        if total > 0:
            own = run.own_sm / total
            switching = min(run.own_sm, run.other_sm) >= th.SWITCHING_SHARE
            return 1.0 - own * (1.0 - th.SWITCHING_COST if switching else 1.0)
    return None if others and run.other_sm is None else 0.0


def throttle(gpu: GpuSignals) -> tuple[float, str | None]:
    """Share of working time lost to a lowered clock, and which limit is behind it: None where the
    card's limits, which tell whether and by whom it is held back, were not read."""
    active = gpu.reasons or frozenset()
    reason = throttle_reason(gpu)
    if gpu.sm_mhz is None or not (reason or "sw_power_cap" in active):
        return 0.0, reason
    if not gpu.attainable_sm_mhz:  # at the default limit it is no fault, however much it is
        working = (gpu.busy or 0.0) >= th.WORKS_THROUGHOUT
        return (0.0, reason) if reason == "at-default-limit" or not working else (1.0, None)
    lost = 1.0 - gpu.sm_mhz / gpu.attainable_sm_mhz
    return (lost, reason) if lost > th.THROTTLE_FLOOR else (0.0, reason)


def throttle_reason(gpu: GpuSignals) -> str | None:
    """The limit behind a lowered clock, the gravest first; None where none is active, or where it
    is a power limit that was not read."""
    active = gpu.reasons or frozenset()
    if active & {"hw_thermal_slowdown", "sw_thermal_slowdown"}:
        return "thermal"
    if active & {"hw_power_brake_slowdown", "hw_slowdown"}:
        return "hardware"
    limit, default = gpu.power_limit_w, gpu.power_default_w
    if "sw_power_cap" not in active or limit is None or default is None:
        return None
    return "limit-below-default" if limit < default - 1.0 else "at-default-limit"


def _spins_unexplained(run: RunSignals) -> bool:
    """All of the time in a collective, with no other rank in sight: a long wait, or a job that
    stands still. Only stacks (or NCCL itself) would tell which."""
    alone = run.waiting_how == "signature" and (run.waiting or 0.0) >= th.ALL_SPIN
    return alone and run.stuck_s is None and run.peer_missing is None


def _may_wait_unseen(row: GpuRow, run: RunSignals, busy: float) -> bool:
    """A rank of several looks busy while it waits. Where neither counters nor peers can tell, its
    busy time may be anything, unless it draws the power of work."""
    # Ranks that are alike may all wait for a slow link: comparing them by power rules out nothing.
    judged = run.waiting is not None and (run.waiting > 0 or run.waiting_how != "lockstep")
    if max(run.world_size or 1, run.peers + 1) < 2 or judged or busy < 0.1:
        return False
    gpu = row.gpu
    if gpu is None or (run.waiting is None and gpu.sm_active is not None):
        return False
    drawn = gpu.power_w is not None and gpu.power_limit_w
    full = th.WORK_POWER * busy * (gpu.power_limit_w or 0.0)
    return not (drawn and (gpu.power_w or 0.0) >= full)


# -- idle time -----------------------------------------------------------------------------------


def _idle(gpu: GpuSignals, run: RunSignals, rest: _Rest) -> None:
    phases = run.phases
    _pauses(run, rest)
    kept_off = denied(run)
    if kept_off is not None:
        taken = rest.take("quota", kept_off.reason, kept_off.most)
        # A wait for workers that had no CPU explains idle time once.
        phases = without_starved(phases, taken) if kept_off.workers_only and phases else phases
    if phases is None:
        rest.take_all("unknown", "no-stacks")
        return
    for reason, most in seen_copies(gpu, phases).items():
        rest.take("copy", reason, most)
    if untold(run):
        rest.take("unknown", "no-processes", phases.get("data_wait", 0.0))
    for phase, reason in DATA_PHASES.items():
        rest.take("data", _late(run, reason), phases.get(phase, 0.0))
    rest.take("comm", "waiting", phases.get("grad_sync", 0.0))
    _own_work(gpu, run, phases, rest)
    _dispatch(run, phases, rest)
    rest.take_all("unknown", _why_not_launch(run, phases))


def _own_work(gpu: GpuSignals, run: RunSignals, phases: Mapping[str, float], rest: _Rest) -> None:
    """The job's own Python, what is seen to be Python first. A wait for another thread or process
    of the job is not it: what that one does is not in this stack, so it stays unknown."""
    plain = plain_lines(gpu, run, phases, rest.left)
    own = {**phases, "user": phases.get("user", 0.0) - waits_unseen(run) - plain.share}
    for phase, reason in HOST_PHASES.items():
        rest.take("host", _late(run, reason), own.get(phase, 0.0))
    rest.take(plain.account, plain.reason, plain.most)
    rest.take("host", _late(run, "python"), plain.share - plain.most)


def _late(run: RunSignals, reason: str) -> str:
    return "straggler" if run.straggler else reason


def _pauses(run: RunSignals, rest: _Rest) -> None:
    phases: Mapping[str, float] = run.phases or {}
    rest.take("checkpoint", "", phases.get("checkpoint", 0.0))
    rest.take("evaluation", "", run.contexts.get("evaluation", 0.0))
    rest.take("startup", "compile", phases.get("compile", 0.0))
    if run.starting:
        rest.take_all("startup", "")
    else:
        rest.take("startup", "import", phases.get("import", 0.0))


def _dispatch(run: RunSignals, phases: Mapping[str, float], rest: _Rest) -> None:
    """A host that waits for the device each step could run ahead if it did not: that much is the
    synchronisation's. What remains while it dispatches at full speed is launch overhead."""
    sync = sum(phases.get(phase, 0.0) for phase in SYNC_PHASES)
    if sync >= th.SYNC_WAIT:
        rest.take("host", _late(run, "synchronize"), sync)
    if dispatches_flat_out(run):
        rest.take("launch", "", sum(phases.get(p, 0.0) for p in DISPATCH_PHASES))


def dispatches_flat_out(run: RunSignals) -> bool:
    """Outside its waits the rank's process uses a whole core: nothing withholds it."""
    phases: Mapping[str, float] = run.phases or {}
    waits = phases.get("data_wait", 0.0) + run.calls.get("sleep", 0.0) + waits_unseen(run)
    return (run.cpu or 0.0) >= th.DISPATCH_CPU * max(0.2, 1.0 - waits)


def waits_unseen(run: RunSignals) -> float:
    """Share of the second that the main thread waited for another thread or process of the job."""
    return run.calls.get(WAIT, 0.0)


def _why_not_launch(run: RunSignals, phases: Mapping[str, float]) -> str:
    dispatch = sum(phases.get(p, 0.0) for p in DISPATCH_PHASES)
    if waits_unseen(run) >= max(0.1, dispatch):
        return "thread-wait"
    if dispatch < 0.1:
        return "no-evidence"
    if run.cpu is None:
        return "no-processes"
    return "no-evidence" if run.throttled is not None else "no-cgroup"
