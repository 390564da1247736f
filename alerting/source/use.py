"""The alerts on GPUs that are held without work. They are general: a cause says more."""

from __future__ import annotations

from alerting.source.model import Alert, Group
from alerting.source.thresholds import Thresholds
from alerting.source.words import GPU_PLACE, ONE_GPU, SINCE, every, percent

ON = "on (instance, uuid, mig)"
GENERAL = {"scope": "general"}
MEMORY_USED = percent("$value")
HOLDERS = every(
    "topk(3, gpuwhy_process_info{uuid=%q})",
    "Held by pid {{ .Labels.pid }}{{ with .Labels.user }} of {{ . }}{{ end }}"
    "{{ with .Labels.run }}, run {{ . }}{{ end }}{{ with .Labels.pod }}, pod {{ . }}{{ end }}"
    "{{ with .Labels.script }}, {{ . }}{{ end }}.\n",
    key="$labels.uuid",
)


def group(limits: Thresholds) -> Group:
    """The alerts of this module."""
    return Group("gpuwhy-use", [_idle(limits), _full(limits)])


def _with_run(expr: str) -> str:
    """The GPUs of ``expr``, for each run that holds one; those that no run holds as they are."""
    of_run = "max by (host, instance, uuid, gpu, mig, run) (rank:gpuwhy_held:info)"
    return (
        f"({expr}) * {ON} group_right () {of_run}\nor\n({expr}) unless {ON} rank:gpuwhy_held:info"
    )


def _idle(limits: Thresholds) -> Alert:
    window = limits.idle_window
    held = (
        "(sum by (instance, uuid, mig) (gpuwhy_gpu_runs)"
        " + sum by (instance, uuid, mig) (gpuwhy_gpu_foreign_processes)) > 0"
    )
    watched = f"gpu:busy:ratio offset {window}"  # for all that time: a new job has not idled yet
    idle = (
        f"max_over_time(gpu:busy:ratio[{window}]) < {limits.idle_ratio:g}"
        f" and {ON} {watched} and {ON} {held}"
    )
    return Alert(
        name="GPUAllocatedButIdle",
        expr=_with_run(idle),
        severity="info",
        summary='GPU {{ $labels.gpu }} {{ printf "%.20s" $labels.host }}: held, idle for '
        f"{window}",
        description=f"{GPU_PLACE} is held, and was not busy in the last {window}.\n"
        f"{HOLDERS}Next: ask its owner whether it is still wanted; end it or give the GPU back.\n",
        dashboard=ONE_GPU + SINCE,
        pending=limits.pending,
        keep_firing_for=limits.keep_firing_for,
        labels=GENERAL,
    )


def _full(limits: Thresholds) -> Alert:
    window = limits.window
    work = (
        f"(avg_over_time(gpu:sm_active:ratio[{window}]) or avg_over_time(gpu:busy:ratio[{window}]))"
    )
    full = (
        f"max by (host, instance, uuid, gpu, mig) (gpu:memory_used:bytes / gpu:memory_total:bytes)"
        f" >= {limits.memory_full_ratio:g} and {ON} {work} < {limits.no_work_ratio:g}"
    )
    return Alert(
        name="GPUMemoryFullWithoutWork",
        expr=_with_run(full),
        severity="info",
        summary='GPU {{ $labels.gpu }} {{ printf "%.20s" $labels.host }}: memory full, no work',
        description=f"{GPU_PLACE} has {percent('$value')} of its memory in use and "
        f"its multiprocessors did next to nothing in the last {window}.\n"
        f"{HOLDERS}Next: a job that has ended and left a process, or one that waits: see what the "
        "process does, then end it.\n",
        dashboard=ONE_GPU + SINCE,
        pending=limits.pending,
        keep_firing_for=limits.keep_firing_for,
        labels=GENERAL,
    )
