"""The input pipeline: its workers, and an estimate of what waits in its queue."""

from __future__ import annotations

from gpuwhy.expose.metric import RUN, Metric, Samples, on_run
from gpuwhy.expose.view import View
from gpuwhy.signals.row import InputQueue

STATES = ("busy", "idle", "unknown")

WORKERS = Metric(
    "gpuwhy_dataloader_workers",
    "gauge",
    (*RUN, "state"),
    len(STATES),
    "GPU and run",
    "Workers of the input pipeline by state, mean over the second: busy (making a batch), idle "
    "(waiting for an index: the queue is full), unknown (not seen in that second).",
)
READY = on_run(
    "gpuwhy_dataloader_ready_batches",
    "Batches made and waiting to be taken: an estimate from outside, made of worker and loop "
    "states.",
)
CAPACITY = on_run("gpuwhy_dataloader_capacity_batches", "Batches that the queue can hold.")
INLINE = on_run(
    "gpuwhy_dataloader_inline", "1 if the rank loads its data by itself (no workers), else 0."
)
WORKER_CPU = on_run("gpuwhy_dataloader_worker_cpu_cores", "Cores used by one worker, mean.")
WORKERS_RUNNING = on_run(
    "gpuwhy_dataloader_workers_running_ratio",
    "Share of the workers that the kernel has running or waiting for a disk.",
)

METRICS = (WORKERS, READY, CAPACITY, INLINE, WORKER_CPU, WORKERS_RUNNING)


def collect(view: View) -> Samples:
    """The ranks of the last second."""
    for on, run in view.ranks():
        labels = view.run(on)
        yield WORKER_CPU, labels, run.worker_cpu
        yield WORKERS_RUNNING, labels, run.workers_running
        if run.queue is not None:
            yield from _queue(labels, run.queue)


def _queue(labels: tuple[str, ...], queue: InputQueue) -> Samples:
    unknown = max(0.0, queue.workers - queue.busy_workers - queue.idle_workers)
    counts = (queue.busy_workers, queue.idle_workers, unknown)
    for state, count in zip(STATES, counts, strict=True):
        yield WORKERS, (*labels, state), count
    yield READY, labels, queue.ready
    yield CAPACITY, labels, queue.capacity
    yield INLINE, labels, queue.inline
