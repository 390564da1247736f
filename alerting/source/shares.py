"""Shares of GPU time: the rate of an account over the rate of the time observed or held.

The level names what a series is about: ``rank`` (one rank of a run on one GPU), ``run``, ``gpu``.
The window is that of ``alerting/thresholds.yml``. Of the accounts of a GPU only ``throttle`` keeps
its reason: a card at its factory power limit is well used, any other lowered clock is a loss.
"""

from __future__ import annotations

from alerting.source.model import Group, Record
from alerting.source.thresholds import Thresholds

LOSSES = "data|launch|host|comm|shared|copy|quota|stalled|unknown"
"""Accounts that are a loss whatever the reason; of ``throttle`` only some reasons are."""

DEVICE = "host, instance, uuid, gpu, mig, run"
RANK = "host, instance, uuid, gpu, mig, run, rank"
ON_RANK = "instance, uuid, mig, run, rank"


def group(limits: Thresholds) -> Group:
    """The recording rules."""
    window = limits.window
    held = f"(sum by ({ON_RANK}) (rate(gpuwhy_run_gpu_held_seconds_total[{window}])) > 0)"
    observed = (
        f"(sum by (instance, uuid, mig) (rate(gpuwhy_gpu_observed_seconds_total[{window}])) > 0)"
    )

    def of_gpu(labels: str, selector: str) -> str:
        seconds = f"rate(gpuwhy_gpu_time_seconds_total{selector}[{window}])"
        return f"sum by ({DEVICE}, {labels}) ({seconds})"

    def of_rank(labels: str, selector: str) -> str:
        seconds = f"rate(gpuwhy_run_gpu_time_seconds_total{selector}[{window}])"
        return f"sum by ({RANK}, {labels}) ({seconds})\n/ on ({ON_RANK}) group_left ()\n{held}"

    share = "rank_account:gpuwhy_share:ratio"
    return Group(
        "gpuwhy-shares",
        [
            Record(share, of_rank("account", "")),
            Record("rank_reason:gpuwhy_throttle:ratio", of_rank("reason", '{account="throttle"}')),
            Record("run_account:gpuwhy_share:avg", f"avg by (run, account) ({share})"),
            Record("run_account:gpuwhy_share:max", f"max by (run, account) ({share})"),
            Record("run_account:gpuwhy_share:sum", f"sum by (run, account) ({share})"),
            Record("run:gpuwhy_gpus:count", f'count by (run) ({share}{{account="compute"}})'),
            Record(
                "run:gpuwhy_lost:avg",
                f'sum by (run) (run_account:gpuwhy_share:avg{{account=~"{LOSSES}"}})',
            ),
            Record(
                "gpu_run_account:gpuwhy_device_share:ratio",
                "(\n"
                + of_gpu("account", '{account!="throttle"}')
                + "\nor\n"
                + of_gpu("account, reason", '{account="throttle"}')
                + f"\n)\n/ on (instance, uuid, mig) group_left ()\n{observed}",
            ),
            Record(
                "rank:gpuwhy_held:info", f"max by ({RANK}) (gpuwhy_run_gpu_held_seconds_total) ^ 0"
            ),
        ],
    )
