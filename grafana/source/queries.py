"""Queries that panels share. GPU series are the canonical ones of the recording rules: the same
from gpuwhy, from dcgm-exporter or from both; series of runs are gpuwhy's own."""

from __future__ import annotations

GPU = 'host=~"$host",uuid=~"$gpu"'
"""Selects the chosen GPUs (or MIG instances)."""

RANKS = f'{GPU},run="$run",rank=~"$rank"'
"""Selects the chosen ranks of a run, each on its GPU."""

RUNS = "gpuwhy_run_gpu_held_seconds_total|gpuwhy_training_age_seconds"
"""Series that every rank has: the second even where its GPU is not in sight."""

HOSTS_OF_RUN = f'on (instance) group by (instance) ({{__name__=~"{RUNS}",run="$run"}})'
"""The right side of ``and``: exporters that see the run."""

CAUSES = "data|launch|host|comm|shared|copy|throttle|quota|stalled"
"""Accounts that are a cause, as a regular expression."""

LOST = f'account=~"{CAUSES}",reason!="at-default-limit"'
"""Lost GPU time: a card at its factory power limit is well used."""


MOST_LINES = 32
"""A panel draws a line for each GPU up to this many; beyond, lowest, median and highest."""

NAMES = "GPU {{gpu}} {{mig}} rank {{rank}}"
"""The legend of a rank on its GPU."""

ATTAINABLE = (
    f"gpuwhy_gpu_sm_clock_attainable_hertz{{{GPU}}}"
    f" or on (uuid, mig) gpu:sm_clock_max:hertz{{{GPU}}}"
)
"""What the SM clock can reach; without gpuwhy its maximum, which a locked clock may keep out of
reach."""


def on_gpu(name: str, more: str = "") -> str:
    """A series of the chosen GPUs."""
    return f"{name}{{{GPU}{',' + more if more else ''}}}"


def on_rank(name: str, more: str = "") -> str:
    """A series of the chosen ranks."""
    return f"{name}{{{RANKS}{',' + more if more else ''}}}"


def rate(counter: str) -> str:
    """Per-second rate of a counter over Grafana's rate interval."""
    return f"rate({counter}[$__rate_interval])"


def increase(counter: str) -> str:
    """Growth of a counter over the whole time range."""
    return f"increase({counter}[$__range])"


def share_of(part: str, whole: str) -> str:
    """One GPU series over another one, with the labels of the first."""
    return f"{part} / on (uuid, mig) group_left () ({whole})"


def one(of_gpu: str) -> str:
    """A GPU's series whichever exporter gives it: where gpuwhy starts later or is restarted, what
    was dcgm-exporter's goes on under the same name."""
    return f"max without (instance) ({of_gpu})"


def named_rank(expr: str) -> str:
    """A rank's series; "–" for a job without a global rank."""
    return f'label_replace({expr}, "rank", "–", "rank", "")'


def with_rank(of_gpu: str) -> str:
    """A GPU's series with the ``rank`` that the run has on it ("–" where none is known).

    A GPU with several ranks of the run gets one of them: a series is never doubled.
    """
    held = f'max by (uuid, mig, rank) (rank:gpuwhy_held:info{{{GPU},run="$run"}})'
    present = f"max by (uuid, mig) (gpu:memory_used:bytes{{{GPU}}}) ^ 0"
    ranks = named_rank(f"topk by (uuid, mig) (1, {held} or on (uuid, mig) {present})")
    return f"{one(of_gpu)} * on (uuid, mig) group_left (rank) {ranks}"


def few(expr: str, count_of: str | None = None) -> str:
    """A line for each, where there are not too many."""
    return f"({expr}) and on () (count({count_of or expr}) <= {MOST_LINES})"


def crowd(expr: str) -> str:
    """Where there are too many: the lowest, the median and the highest, by label ``of``."""
    three = " or ".join(
        f'label_replace({function}{expr}), "of", "{name}", "", "")'
        for name, function in (
            ("lowest", "min("),
            ("median", "quantile(0.5, "),
            ("highest", "max("),
        )
    )
    return f"({three}) and on () (count({expr}) > {MOST_LINES})"


def ledger(accounts: str) -> str:
    """Shares of the chosen ranks' GPU time, by account."""
    part = rate(on_rank("gpuwhy_run_gpu_time_seconds_total", f'account=~"{accounts}"'))
    whole = rate(on_rank("gpuwhy_run_gpu_held_seconds_total"))
    return f"sum by (account) ({part}) / on () group_left () sum({whole})"


def device_ledger(accounts: str, select: str) -> str:
    """Shares of the observed GPU time in the device view, by account."""
    part = rate(f'gpuwhy_gpu_time_seconds_total{{{select},account=~"{accounts}"}}')
    whole = rate(f"gpuwhy_gpu_observed_seconds_total{{{select}}}")
    return f"sum by (account) ({part}) / on () group_left () sum({whole})"


def run_cause() -> str:
    """The cause of the run, one row with label ``cause``: where several hosts answer, that of the
    host with the rank that the others wait for, else of the one where a rank loses most. A rank
    loses in its own cause what the others lose waiting for it, and they wait between its steps
    only: the largest is its own, however many wait."""
    answers = '(gpuwhy_verdict_run_active{host=~"$host",run="$run"} == 1)'
    lost = 'max by (instance, cause) (gpuwhy_verdict_lost_ratio{run="$run"})'
    late = 'gpuwhy_verdict_lost_ratio{run="$run",reason="straggler"}'
    weighed = (
        f"({answers} * on (instance, cause) group_left () {lost} or on (instance) {answers} * 0)"
    )
    return (
        f"topk(1, max by (cause) ({weighed} and on (instance) {late}"
        f" or {weighed} unless on (run) {late}))"
    )


def unknown(select: str, by: str = "") -> str:
    """GPU time of the last minute that cannot be told, by reason; no verdict has its reasons."""
    series = f'gpuwhy_run_gpu_time_seconds_total{{{select},account="unknown"}}'
    seconds = f"sum by ({by}reason) (increase({series}[1m])) > 0"
    return f'label_replace({seconds}, "cause", "unknown", "", "")'


def with_reason(cause: str, select: str) -> str:
    """A row with label ``cause``, and in label ``answer`` the cause with its largest reason."""
    lost = f"max by (cause, reason) (gpuwhy_verdict_lost_ratio{{{select}}})"
    reasons = f"topk by (cause) (1, {lost} or {unknown(select)}) ^ 0"
    known = f"({cause}) * on (cause) group_left (reason) {reasons} or on (cause) ({cause})"
    return f'label_join({known}, "answer", "/", "cause", "reason")'


def in_order(expr: str) -> str:
    """Ranks in the order of their numbers.

    Prometheus gives the series of a range in the order of their labels, in which 10 comes before 2:
    the label ``_`` comes before the others, and has the number filled up with zeros.
    """
    filled = f'label_replace({expr}, "_", "000$1", "rank", "(.+)")'
    return f'label_replace({filled}, "_", "$1", "_", ".*(.{{4}})")'
