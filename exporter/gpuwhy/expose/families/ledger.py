"""Where GPU time went: the accounts of the ledger in both views, and their totals."""

from __future__ import annotations

from gpuwhy.expose.metric import GPU, RUN, Metric

GPU_TIME = Metric(
    "gpuwhy_gpu_time_seconds_total",
    "counter",
    (*GPU, "run", "account", "reason"),
    60,
    "GPU and run",
    "GPU time by account, device view: any tenant's work is compute, and idle time of a GPU held "
    "by several runs is split equally between them. Adds up to gpuwhy_gpu_observed_seconds_total; "
    "the only view to sum over a fleet. run is empty for account free.",
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
