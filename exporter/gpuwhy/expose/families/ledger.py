"""Where GPU time went: the accounts of the ledger in both views, and their totals."""

from __future__ import annotations

from gpuwhy.expose.metric import GPU, RUN, Metric, Samples
from gpuwhy.expose.view import View
from gpuwhy.ledger.accounts import ACCOUNTS

GPU_TIME = Metric(
    "gpuwhy_gpu_time_seconds_total",
    "counter",
    (*GPU, "run", "account", "reason"),
    60,
    "GPU and run",
    "GPU time by account, device view: any tenant's work is compute, and idle time of a GPU held "
    "by several runs is split equally between them. Adds up to gpuwhy_gpu_observed_seconds_total; "
    "the only view to sum over a fleet. run is empty for account free and for the work of "
    "processes that belong to no run in sight.",
)
GPU_OBSERVED = Metric(
    "gpuwhy_gpu_observed_seconds_total",
    "counter",
    GPU,
    1,
    "GPU",
    "Time for which the GPU was observed. Time not observed is a gap, never idle.",
)
RUN_TIME = Metric(
    "gpuwhy_run_gpu_time_seconds_total",
    "counter",
    (*RUN, "account", "reason"),
    60,
    "GPU and run",
    "GPU time by account, run view: what one rank of a run got from the GPU that it held. Other "
    "tenants' time is account shared. Adds up to gpuwhy_run_gpu_held_seconds_total.",
)
RUN_HELD = Metric(
    "gpuwhy_run_gpu_held_seconds_total",
    "counter",
    RUN,
    1,
    "GPU and run",
    "Time for which the run was seen to hold the GPU.",
)

METRICS = (GPU_TIME, GPU_OBSERVED, RUN_TIME, RUN_HELD)

OF_A_RUN = tuple(account for account in ACCOUNTS if account != "free")


def collect(view: View) -> Samples:
    """Every account of everything present, from 0 on; a GPU without a run has ``free`` alone."""
    yield from _device(view)
    yield from _run(view)


def _device(view: View) -> Samples:
    present = {(uuid, run) for uuid, run, _ in view.seen if uuid is not None}
    for uuid in view.gpus:
        for account in ("free", "compute"):
            yield GPU_TIME, (*view.gpu(uuid), "", account, ""), 0.0
    for uuid, run in present:
        for account in OF_A_RUN:
            yield GPU_TIME, (*view.gpu(uuid), run, account, ""), 0.0
    for (uuid, holder, account, reason), value in view.accounts.device.items():
        if uuid in view.gpus and (holder is None or (uuid, holder) in present):
            yield GPU_TIME, (*view.gpu(uuid), holder or "", account, reason), value
    for uuid, value in view.accounts.observed.items():
        if uuid in view.gpus:
            yield GPU_OBSERVED, view.gpu(uuid), value


def _run(view: View) -> Samples:
    for on in view.seen:
        if on[0] is not None:
            for account in OF_A_RUN:
                yield RUN_TIME, (*view.run(on), account, ""), 0.0
    for (uuid, run, rank, account, reason), value in view.accounts.run.items():
        if (uuid, run, rank) in view.seen:
            yield RUN_TIME, (*view.run((uuid, run, rank)), account, reason), value
    for (uuid, run, rank), value in view.accounts.held.items():
        if (uuid, run, rank) in view.seen:
            yield RUN_HELD, view.run((uuid, run, rank)), value
