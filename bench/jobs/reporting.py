"""What a training loop reports after a step: the loss, metrics, logs, house-keeping."""

from __future__ import annotations

import gc
import json
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from clock import Clock
from costs import Cost
from options import Options
from pace import Pace

Report = Callable[[int, Any], None]


def build_report(options: Options, pace: Pace | None, clock: Clock, starts: float = 0.0) -> Report:
    """The function that the loop calls after each step, as the variant asks for it."""
    made: list[Report] = []
    for name, make in REPORTS.items():
        if pace and (lost := options.get(name)):
            seconds = pace.overlapped(lost) if name == "schedule_lost" else pace.serial(lost)
            made.append(make(clock, Cost(seconds, starts)))

    def report(step: int, loss: Any) -> None:
        for part in made:
            part(step, loss)

    return report


def _metrics(clock: Clock, cost: Cost) -> Report:
    def report_metrics(step: int, loss: Any) -> None:
        if not cost.now():
            return
        value = loss.item()
        clock.lap("sync")
        compute_metrics(value, cost.now())
        clock.lap("user")

    return report_metrics


def compute_metrics(value: float, budget_s: float) -> float:
    """Area under the curve by hand, over scores made from ``value``."""
    until, area = time.thread_time() + budget_s, 0.0
    while time.thread_time() < until:
        scores = sorted(((value * i) % 1.0, i % 3 == 0) for i in range(256))
        area = rank_sum(scores)
    return area


def rank_sum(scores: list[tuple[float, bool]]) -> float:
    """Sum of the ranks of the positives."""
    total = 0.0
    for rank, (_, positive) in enumerate(scores):
        if positive:
            total += rank
    return total


def _log(clock: Clock, cost: Cost) -> Report:
    file = tempfile.NamedTemporaryFile("w", suffix=".jsonl")  # noqa: SIM115

    def report_log(step: int, loss: Any) -> None:
        if not cost.now():
            return
        value = loss.item()
        clock.lap("sync")
        log_metrics(file, step, value, cost.now())
        clock.lap("logging")

    return report_log


def log_metrics(file: Any, step: int, loss: float, budget_s: float) -> None:
    """Write scalars and histograms of the step as JSON lines, to disk each time."""
    until = time.perf_counter() + budget_s
    weights = np.linspace(-3, 3, 20000) * loss
    while time.perf_counter() < until:
        counts, edges = np.histogram(weights, bins=64)
        record = {"step": step, "loss": loss, "n": counts.tolist(), "edges": edges.tolist()}
        file.seek(0)
        file.write(json.dumps(record) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _collect(clock: Clock, cost: Cost) -> Report:
    history: list[list[int]] = [[0, 0]]
    while True:
        began = time.perf_counter()
        gc.collect()
        took = time.perf_counter() - began
        if took >= cost.seconds or len(history) > 5_000_000:
            break
        wanted = int(len(history) * (cost.seconds / took - 1))
        history.extend([i, i + 1] for i in range(min(max(wanted, 10_000), 500_000)))

    def report_and_free(step: int, loss: Any) -> None:
        if not cost.now():
            return
        history[step % len(history)] = [step, int(loss.item())]
        clock.lap("sync")
        gc.collect()
        clock.lap("gc")

    return report_and_free


def _schedule(clock: Clock, cost: Cost) -> Report:
    ages: dict[int, float] = dict.fromkeys(range(4096), 0.0)

    def report_schedule(step: int, _loss: Any) -> None:
        if cost.now():
            update_priorities(ages, step, cost.now())
            clock.lap("user")

    return report_schedule


def update_priorities(ages: dict[int, float], step: int, budget_s: float) -> None:
    """Age every sample's priority, one by one; the GPU is not asked for anything."""
    until = time.thread_time() + budget_s
    while time.thread_time() < until:
        for index, age in ages.items():
            ages[index] = 0.99 * age + (index == step % 4096)


REPORTS: dict[str, Callable[[Clock, Cost], Report]] = {
    "metrics_lost": _metrics,
    "log_lost": _log,
    "gc_lost": _collect,
    "schedule_lost": _schedule,
}
