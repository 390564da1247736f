"""The alerts on the monitor itself: a rule on a signal that is missing never fires, so each signal
has its twin here, on ``gpuwhy_source_up``, which is always there."""

from __future__ import annotations

from dataclasses import replace

from alerting.source.model import Alert, Group
from alerting.source.thresholds import Thresholds
from alerting.source.words import GPU_PLACE, MONITOR, SINCE

HOST = '{{ printf "%.24s" (or $labels.host $labels.instance) }}'
ON_HOST = "{{ or $labels.host $labels.instance }}"
NEEDED = "host|processes"
"""Sources without which nothing is told, jobs or no jobs."""
OF_GPUS = "nvml|gpu_processes"
"""Sources that a host without a GPU does not have: missed where they were, jobs or no jobs."""
NEEDED_BY_JOBS = "stacks|cgroup"
"""Sources that serve only while there are jobs, and that decide between causes then."""
GIVEN_BY_SOME = "gpm|utilization_ring|power_ring|sm_share|nccl_ras|infiniband"
"""Sources that a card, a job or a host may rightly not have: missed only where they were."""


def group(limits: Thresholds) -> Group:
    """The alerts of this module."""
    return Group(
        "gpuwhy-monitor",
        [
            _alert(
                limits,
                "GpuwhyDown",
                "critical",
                'up{job="gpuwhy"} == 0',
                "gpuwhy does not answer",
                "does not answer Prometheus: no other alert on its jobs can fire",
                "see the exporter's log on that host (`docker compose logs exporter`).",
            ),
            _alert(
                limits,
                "DcgmExporterDown",
                "warning",
                'up{job="dcgm-exporter"} == 0',
                "dcgm-exporter is down",
                "has a dcgm-exporter that does not answer; what gpuwhy reads itself goes on",
                "see its log; it needs the NVIDIA runtime, and SYS_ADMIN for profiling fields.",
            ),
            _source_missing(limits),
            _gpu_source_missing(limits),
            _alert(
                limits,
                "GpuwhyStale",
                "warning",
                f"gpuwhy_lag_seconds > {limits.lag_seconds:g}",
                "values are stale",
                "shows values that are {{ humanizeDuration $value }} old: the observer hangs or "
                "the host is short of CPU",
                "`gpuwhy doctor` on the host; a driver call that hangs shows in the kernel's log.",
            ),
            _alert(
                limits,
                "GpuwhyFamilyFailing",
                "warning",
                f"sum by (host, instance, family) "
                f"(increase(gpuwhy_scrape_family_failures_total[{limits.window}])) > 0",
                "{{ $labels.family }} metrics fail",
                "leaves the metric family {{ $labels.family }} out of its scrapes because it fails",
                "see the exporter's log and report it; the other families are served.",
            ),
            _alert(
                limits,
                "GpuwhySeriesDropped",
                "warning",
                f"sum by (host, instance, family) "
                f"(increase(gpuwhy_series_dropped_total[{limits.window}])) > 0"
                '\nor\nlabel_replace(gpuwhy_left_out > 0, "family", "all", "", "")',
                "series left out",
                "has more of {{ $labels.family }} than it may expose: what is beyond is not judged",
                "see gpuwhy_series_limit; usually a job that restarts under ever new names.",
            ),
            _over_budget(limits),
            _alert(
                limits,
                "AlertmanagerDown",
                "critical",
                'up{job="alertmanager"} == 0',
                "Alertmanager is down",
                "has an Alertmanager that does not answer: while it is down nobody is told of any "
                "alert, unless another Alertmanager takes them",
                "see its log (`docker compose logs alertmanager`) and start it again; Prometheus' "
                "page /alerts shows meanwhile what fires.",
            ),
            _alert(
                limits,
                "NotificationsFailing",
                "warning",
                "sum by (host, instance, integration) "
                "(increase(alertmanager_notifications_failed_total[15m])) > 0",
                "{{ $labels.integration }} messages fail",
                "runs an Alertmanager that cannot deliver to {{ $labels.integration }}: a receiver "
                "that refuses or does not answer",
                "Alertmanager's log has the receiver's answer; other receivers still get theirs.",
            ),
        ],
    )


def _alert(
    limits: Thresholds, name: str, severity: str, expr: str, title: str, what: str, next_action: str
) -> Alert:
    return Alert(
        name=name,
        expr=expr,
        severity=severity,
        summary=f"{HOST}: {title}",
        description=f"{ON_HOST} {what}.\nNext: {next_action}\n",
        dashboard=MONITOR + SINCE,
        pending=limits.pending,
        keep_firing_for=limits.keep_firing_for,
    )


def _source_missing(limits: Thresholds) -> Alert:
    jobs = "and on (instance) gpuwhy_training_age_seconds"
    was_up = f"and on (instance, source) max_over_time(gpuwhy_source_up[{limits.recent}]) == 1"
    return _alert(
        limits,
        "GpuwhySourceMissing",
        "warning",
        f'gpuwhy_source_up{{source=~"{NEEDED}"}} == 0\n'
        f'or\ngpuwhy_source_up{{source=~"{OF_GPUS}"}} == 0 {was_up}\n'
        f'or\ngpuwhy_source_up{{source=~"{NEEDED_BY_JOBS}"}} == 0 {jobs}\n'
        f'or\ngpuwhy_source_up{{source=~"{GIVEN_BY_SOME}"}} == 0 {jobs} {was_up}',
        "{{ $labels.source }} is missing",
        "is not seen through {{ $labels.source }}: causes that turn on it are answered `unknown`",
        "`gpuwhy doctor` on the host says why and what mends it.",
    )


def _gpu_source_missing(limits: Thresholds) -> Alert:
    served = "max_over_time(gpuwhy_gpu_source_up[{}])"  # a single second may well lack one
    alert = _alert(
        limits,
        "GPUSourceMissing",
        "warning",
        f"{served.format(limits.window)} == 0\n"
        f"and on (instance, uuid, mig, source) {served.format(limits.recent)} == 1\n"
        "and on (instance, source) gpuwhy_source_up == 1",
        "GPU {{ $labels.gpu }} lacks {{ $labels.source }}",
        "",
        "",
    )
    description = (
        f"{GPU_PLACE} gives no {{{{ $labels.source }}}} any more, other GPUs do.\n"
        "Next: look for Xids of this GPU; `gpuwhy doctor` on the host.\n"
    )
    return replace(alert, description=description)


def _over_budget(limits: Thresholds) -> Alert:
    used = (
        "sum by (host, instance) "
        f'(rate(gpuwhy_source_cpu_seconds_total{{source="stacks"}}[{limits.window}]))'
    )
    budget = (
        "(max by (host, instance) (gpuwhy_overhead_limit_ratio)"
        " * count by (host, instance) (gpuwhy_training_age_seconds))"
    )
    return _alert(
        limits,
        "GpuwhyOverBudget",
        "warning",
        f"{used} / {budget} > {limits.overhead_factor:g}",
        "sampling costs too much",
        'uses {{ printf "%.1f" $value }} times the CPU that was set for sampling stacks',
        "lower --max-overhead or report it: the sampler should have slowed down by itself.",
    )
