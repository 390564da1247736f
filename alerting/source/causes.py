"""The alerts of causes: one alert for each account that is a loss, in three severities by cost.

Each is about a run, not a GPU: 512 waiting ranks are one alert. Its value is the loss in GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from alerting.source import details
from alerting.source.model import Alert, Group
from alerting.source.thresholds import Thresholds
from alerting.source.words import (
    FUNCTION,
    PERCENT,
    PLACE,
    PRICE,
    RUN,
    SHORT_RUN,
    SINCE,
    WHY,
    found,
    share,
)


@dataclass(frozen=True)
class Cause:
    """What differs between causes. ``details`` are whole lines, each with its own condition."""

    alert: str
    account: str
    title: str  # at most 15 characters: the summary must stay under 60
    loses_to: str
    next_action: str
    details: Sequence[str] = ()
    function: bool = True
    reason: str = ""  # of throttle: a part of the account
    ratio: str = "cause_ratio"
    severities: Sequence[str] = ("critical", "warning", "info")
    labels: dict[str, str] = field(default_factory=dict)


CAUSES = (
    Cause(
        "GPUDataStarved",
        "data",
        "starved of data",
        "waiting for its input pipeline",
        "make that function cheaper or do its work ahead of time; more workers only where CPUs are "
        "free; where workers hardly use a CPU, bring the data nearer.",
        (details.LOADER, details.HOLDS_UP),
    ),
    Cause(
        "GPULaunchBound",
        "launch",
        "launch-bound",
        "launching kernels one by one",
        "torch.compile or CUDA Graphs, a fused optimizer, a larger batch.",
        (details.DISPATCH, details.HOLDS_UP),
    ),
    Cause(
        "GPUHostWork",
        "host",
        "host-bound",
        "host work and synchronisation between kernels",
        "take that function off the step's path (a thread, every N steps, the GPU); read scalars "
        "(.item(), prints) every N steps.",
        (details.HOLDS_UP,),
    ),
    Cause(
        "GPUWaitingInCollectives",
        "comm",
        "ranks wait",
        "waiting in collectives (busy, and no work)",
        "look for the rank that is late, a slow loader included; only then at the network.",
        (details.WAITED_FOR,),
        function=False,
    ),
    Cause(
        "GPUShared",
        "shared",
        "GPU is shared",
        "other processes on its GPUs",
        "give each job a GPU or a MIG slice of its own, or end the process that is not wanted.",
        (details.NEIGHBOURS,),
        function=False,
    ),
    Cause(
        "GPUCopyBound",
        "copy",
        "held by copies",
        "copies between host and GPU",
        "pin the memory (pin_memory=True), copy with non_blocking=True, keep on the GPU what need "
        "not leave it.",
        (details.TRAFFIC, details.HOLDS_UP),
    ),
    Cause(
        "GPUHeldByCPUQuota",
        "quota",
        "CPU quota",
        "a limit on CPUs",
        "raise the limit to a core for each rank and one for each worker (cpu limit, cpu.max, "
        "cpuset, --cpus-per-task), or drop it.",
        (details.QUOTA, details.HOLDS_UP),
        function=False,
    ),
    Cause(
        "TrainingStalled",
        "stalled",
        "no progress",
        "standing still",
        "see where it stands with `gpuwhy profile`, then restart from the last checkpoint.",
        (details.STUCK,),
        severities=("critical",),
    ),
    Cause(
        "GPUThrottledThermal",
        "throttle",
        "GPU too hot",
        "clocks lowered for heat",
        "check fans, airflow, dust and the neighbours' load.",
        (details.HOT,),
        function=False,
        reason="thermal",
        ratio="throttle_ratio",
    ),
    Cause(
        "GPUThrottledHardware",
        "throttle",
        "hardware brake",
        "clocks lowered by the hardware (power brake, slowdown)",
        "check power supply, cables and the system event log.",
        (details.CLOCK.replace("`REASON`", '"hardware"') + ".\n",),
        function=False,
        reason="hardware",
        ratio="throttle_ratio",
    ),
    Cause(
        "GPUPowerLimitLowered",
        "throttle",
        "limit lowered",
        "a power limit below the card's default",
        "ask who lowered it (`nvidia-smi -q -d POWER`), and whether that is still wanted.",
        (details.LIMITS,),
        function=False,
        reason="limit-below-default",
        ratio="throttle_ratio",
    ),
    Cause(
        "GPUAtDefaultPowerLimit",
        "throttle",
        "at power limit",
        "working at the card's default power limit",
        "nothing: a card that works hard at its factory limit is well used.",
        (details.LIMITS,),
        function=False,
        reason="at-default-limit",
        severities=("none",),
    ),
    Cause(
        "GPULossUnknown",
        "unknown",
        "cause unknown",
        "what cannot be told",
        "`gpuwhy doctor` on the host says which signal is missing and what mends it.",
        (details.BLIND,),
        function=False,
        ratio="unknown_ratio",
        severities=("warning", "info"),
        labels={"scope": "general"},
    ),
)


def group(limits: Thresholds) -> Group:
    """The alerts of all causes."""
    return Group(
        "gpuwhy-causes",
        [_alert(cause, severity, limits) for cause in CAUSES for severity in cause.severities],
    )


def _alert(cause: Cause, severity: str, limits: Thresholds) -> Alert:
    scope = cause.labels or {"cause": cause.account}
    return Alert(
        name=cause.alert,
        expr=_expr(cause, severity, limits),
        severity=severity,
        summary=f"{SHORT_RUN}: {cause.title}, {_percent(cause)} of GPU time",
        description=_description(cause, limits),
        dashboard=WHY + SINCE,
        pending=limits.pending,
        keep_firing_for=limits.keep_firing_for,
        labels=scope,
    )


def _loss(cause: Cause, operation: str) -> str:
    """The loss of a run: sum (in GPUs), max or avg of its ranks."""
    if cause.reason:
        return (
            f'{operation} by (run) (rank_reason:gpuwhy_throttle:ratio{{reason="{cause.reason}"}})'
        )
    return f'max by (run) (run_account:gpuwhy_share:{operation}{{account="{cause.account}"}})'


def _expr(cause: Cause, severity: str, limits: Thresholds) -> str:
    """Named at all, and of that cost; the value is the loss in GPUs."""
    costs = {"warning": limits.warning_gpus, "critical": limits.critical_gpus}
    several = len(cause.severities) > 1
    cost = f" >= {costs[severity]:g}" if severity in costs and several else ""
    ratio: float = getattr(limits, cause.ratio)
    return f"{_loss(cause, 'sum')}{cost}\nand on (run)\n{_loss(cause, 'max')} >= {ratio:g}"


def _of_run(cause: Cause) -> str:
    if cause.reason:
        return f'rank_reason:gpuwhy_throttle:ratio{{run=%q,reason="{cause.reason}"}}'
    return f'rank_account:gpuwhy_share:ratio{{run=%q,account="{cause.account}"}}'


def _percent(cause: Cause) -> str:
    return share(f"avg({_of_run(cause)})")


def _description(cause: Cause, limits: Thresholds) -> str:
    gpus = found("run:gpuwhy_gpus:count{run=%q}", " (of {{ .Value }})")
    lines = [
        f'{RUN} loses {{{{ printf "%.2f" $value }}}} GPUs{gpus} to {cause.loses_to}: '
        f"{_percent(cause)} of its GPU time in the last {limits.window}{PRICE}.\n",
        found(f"topk(1, {_of_run(cause)})", f"Most on {PLACE}: {PERCENT}.\n"),
        _function(cause, limits) if cause.function else "",
        *(detail.replace("ACCOUNT", cause.account) for detail in cause.details),
        f"Next: {cause.next_action}\n",
    ]
    return "".join(lines).replace("[5m]", f"[{limits.window}]")


def _function(cause: Cause, limits: Thresholds) -> str:
    """The hottest function on the rank that loses the most; rates smooth over restarts."""
    account = cause.account
    return found(
        f'topk(1, last_over_time(gpuwhy_verdict_function_info{{run=%q,cause="{account}"}}'
        f"[{limits.window}]) * on ({'instance, uuid, mig, run, rank'}) group_left () "
        f'rank_account:gpuwhy_share:ratio{{run=%q,account="{account}"}})',
        f"Function: {FUNCTION}\n",
    )
