"""The alerts on the shape of activity: what a mean hides. They are general: a cause says more."""

from __future__ import annotations

from alerting.source.model import Alert, Group, Record
from alerting.source.thresholds import Thresholds
from alerting.source.words import LOCKSTEP, RUN, SHORT_RUN, SINCE, WHY, found, percent, share

PERCENT_OF_VALUE = percent("$value")
GENERAL = {"scope": "general"}
LOCKSTEP_RATIO = "run:gpuwhy_lockstep:ratio"
ON_GPU = "on (instance, uuid, mig)"


def group(limits: Thresholds) -> Group:
    """The alerts of this module."""
    return Group("gpuwhy-shapes", [_sawtooth(limits), _lockstep(limits), _slower(limits)])


def records(limits: Thresholds) -> Group:
    """How far the GPUs of a run are in step: the length of their mean phase vector, 1 for all at
    once, near 0 for any order. Only phases of one period, fitted over the same ten seconds."""
    cosine, sine, period, centre = (
        _of_ranks(f"gpuwhy_gpu_wave_{what}")
        for what in ("phase_cosine", "phase_sine", "period_seconds", "centre_timestamp_seconds")
    )
    expr = (
        f"sqrt(avg by (run) ({cosine}) ^ 2 + avg by (run) ({sine}) ^ 2)\n"
        f"and on (run) count by (run) ({cosine}) >= 2\n"
        f"and on (run) max by (run) ({centre}) == min by (run) ({centre})\n"
        f"and on (run) max by (run) ({period}) / min by (run) ({period})"
        f" <= {limits.lockstep_period_ratio:g}"
    )
    return Group("gpuwhy-lockstep", [Record(LOCKSTEP_RATIO, expr)])


def _of_ranks(expr: str) -> str:
    """A series of GPUs, for each rank that holds the GPU: with its run."""
    return f"rank:gpuwhy_held:info * {ON_GPU} group_left () max by (instance, uuid, mig) ({expr})"


def _waves(limits: Thresholds) -> str:
    """GPUs whose power swings regularly and deeply: kernels come in bursts. Power, since a rank
    that waits in a collective looks busy to every utilisation."""
    window = limits.window
    return (
        f"avg_over_time(gpuwhy_gpu_wave_strength_ratio[{window}]) >= {limits.wave_strength_ratio:g}"
        f"\n    and {ON_GPU} avg_over_time(gpuwhy_gpu_wave_depth_watts[{window}])"
        f" / {ON_GPU} gpuwhy_gpu_power_limit_watts >= {limits.wave_depth_ratio:g}"
    )


def _lost(limits: Thresholds) -> str:
    """A step shows as a wave on a healthy GPU too: only with time lost is it a sawtooth."""
    return f"run:gpuwhy_lost:avg >= {limits.cause_ratio:g}"


PERIOD = found(
    "avg(rank:gpuwhy_held:info{run=%q} * on (instance, uuid, mig) group_left () "
    "max by (instance, uuid, mig) (gpuwhy_gpu_wave_period_seconds))",
    'The period is {{ printf "%.2f" .Value }} s; a scrape of 5 s does not see it.\n',
)


def _sawtooth(limits: Thresholds) -> Alert:
    return Alert(
        name="GPUSawtooth",
        expr=f"{_lost(limits)}\nand on (run)\n  {_of_ranks(_waves(limits))}",
        severity="warning",
        summary=f"{SHORT_RUN}: sawtooth, {share('run:gpuwhy_lost:avg{run=%q}')} of GPU time lost",
        description=f"The GPUs of {RUN} work in bursts and idle between them: "
        f"{PERCENT_OF_VALUE} of their time is lost.\n"
        f"{PERIOD}Next: see which phase of the host fills the gaps; `gpuwhy diagnose` on the host "
        "names it.\n",
        dashboard=WHY + SINCE,
        pending=limits.pending,
        keep_firing_for=limits.keep_firing_for,
        labels=GENERAL,
    )


def _lockstep(limits: Thresholds) -> Alert:
    return Alert(
        name="GPUSawtoothInLockstep",
        expr=f"avg_over_time({LOCKSTEP_RATIO}[{limits.window}]) >= {limits.lockstep_ratio:g}\n"
        f"and on (run) count by (run) ({_of_ranks(_waves(limits))}) >= 2\n"
        f"and on (run) {_lost(limits)}",
        severity="warning",
        summary=f"{SHORT_RUN}: idle in step, {share('run:gpuwhy_lost:avg{run=%q}')} of time lost",
        description=f"The GPUs of {RUN} idle at the same moments: all wait for one thing, a late "
        "rank or what they share.\n"
        f"{PERIOD}Next: look for the rank that is late, a slow loader included; then for a barrier "
        "or a rank 0 that works alone.\n",
        dashboard=LOCKSTEP + SINCE,
        pending=limits.pending,
        keep_firing_for=limits.keep_firing_for,
        labels=GENERAL,
    )


def _slower(limits: Thresholds) -> Alert:
    speed, window = "gpuwhy_training_steps_per_second", limits.window
    past = f"avg by (run) (quantile_over_time(0.5, {speed}[{limits.past}] offset {window}))"
    return Alert(
        name="TrainingSlowerThanItsPast",
        expr=f"avg by (run) (avg_over_time({speed}[{window}]))\n/ on (run)\n{past}\n"
        f"< {limits.slower_ratio:g}",
        severity="warning",
        summary=f"{SHORT_RUN}: at {PERCENT_OF_VALUE} of its own past speed",
        description=f"{RUN} makes steps at {PERCENT_OF_VALUE} of the median speed "
        f"of its last {limits.past}.\n"
        "Next: see what changed at that time: data that is no longer cached, a neighbour, clocks, "
        "a longer sequence.\n",
        dashboard=WHY + SINCE,
        pending=limits.pending,
        keep_firing_for=limits.keep_firing_for,
        labels=GENERAL,
    )
