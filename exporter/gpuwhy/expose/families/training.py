"""What a training loop does: steps, phases, progress, and where its rank stands among others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from gpuwhy.expose.limits import RECENT_S
from gpuwhy.expose.metric import RUN, Metric, Samples, on_run
from gpuwhy.expose.view import View
from gpuwhy.signals.row import RunSignals

MEAN_S = 10
"""Phases are means over this long: a scrape every few seconds then misses none of the samples."""

STEP_INFO = Metric(
    "gpuwhy_training_step_source_info",
    "info",
    (*RUN, "name"),
    1,
    "GPU and run",
    "Name of the variable that gpuwhy_training_step was read from; `loader index` is no variable.",
)
PHASE = Metric(
    "gpuwhy_training_phase_ratio",
    "gauge",
    (*RUN, "phase"),
    24,
    "GPU and run",
    "Share of the main thread's time in this phase of the host, over the 10 s that end with the "
    "last complete second. The host's phases are not the GPU's accounts.",
)
CONTEXT = Metric(
    "gpuwhy_training_context_ratio",
    "gauge",
    (*RUN, "context"),
    3,
    "GPU and run",
    "Share of the main thread's time inside startup, evaluation or checkpoint, over the same 10 s.",
)
PROGRESS_AGE = on_run(
    "gpuwhy_training_progress_age_seconds",
    "Time since the loop was last seen to move: its step counter advanced, or the main thread's "
    "stack changed, whichever is the later.",
)
SAMPLES = on_run("gpuwhy_training_stack_samples", "Stack samples behind the last second's phases.")


def _seconds(per_second: float | None) -> float | None:
    return 1 / per_second if per_second else None


def _behind(run: RunSignals) -> bool | None:
    """By collective counts where NCCL tells them, else as the ranks in sight compare."""
    if run.behind is not None or not run.peers:
        return run.behind
    return run.straggler


FROM_RUN: tuple[tuple[Metric, Callable[[RunSignals], float | None]], ...] = (
    (
        on_run(
            "gpuwhy_training_step",
            "Step in progress, read from the loop's own counter, or the batch in progress by the "
            "numbers that a DataLoader gives its workers (`loader index`). Absent without either.",
        ),
        lambda run: run.step,
    ),
    (
        on_run("gpuwhy_training_epoch", "Epoch in progress, read from the loop's own counter."),
        lambda run: run.epoch,
    ),
    (
        on_run("gpuwhy_training_max_steps", "Steps that the run means to make in all."),
        lambda run: run.total_steps,
    ),
    (
        on_run("gpuwhy_training_steps_per_second", "Steps made a second."),
        lambda run: run.steps_per_second,
    ),
    (
        on_run("gpuwhy_training_step_seconds", "Time that one step takes."),
        lambda run: _seconds(run.steps_per_second),
    ),
    (
        on_run("gpuwhy_training_age_seconds", "Time since the rank's process started."),
        lambda run: run.age_s,
    ),
    (
        on_run("gpuwhy_training_world_size", "Ranks of the whole run, as it says itself."),
        lambda run: run.world_size,
    ),
    (
        on_run("gpuwhy_training_peers", "Other ranks of the run that are in sight."),
        lambda run: run.peers,
    ),
    (
        on_run(
            "gpuwhy_training_waiting_ratio",
            "Share of the second in which the rank's kernels waited in a collective: busy, and no "
            "work.",
        ),
        lambda run: run.waiting,
    ),
    (
        on_run(
            "gpuwhy_training_rank_ahead",
            "1 if the rank has issued more collectives than the slowest one and waits for it, "
            "else 0.",
        ),
        lambda run: run.ahead,
    ),
    (
        on_run(
            "gpuwhy_training_rank_behind", "1 if this is the rank that the others wait for, else 0."
        ),
        _behind,
    ),
    (
        on_run(
            "gpuwhy_training_peer_missing",
            "1 if a rank of the communicator does not answer, else 0.",
        ),
        lambda run: run.peer_missing,
    ),
    (
        on_run(
            "gpuwhy_run_sm_ratio", "Share of the multiprocessors that this rank used on this GPU."
        ),
        lambda run: run.own_sm,
    ),
    (
        on_run(
            "gpuwhy_run_other_sm_ratio",
            "Share of the multiprocessors that every other process used on this GPU.",
        ),
        lambda run: run.other_sm,
    ),
    (on_run("gpuwhy_run_cpu_cores", "Cores used by the rank's process."), lambda run: run.cpu),
    (
        on_run("gpuwhy_run_main_thread_cpu_cores", "Cores used by the rank's main thread."),
        lambda run: run.main_cpu,
    ),
    (
        on_run(
            "gpuwhy_run_children_cpu_cores", "Cores used by everything that the rank has started."
        ),
        lambda run: run.children_cpu,
    ),
    (
        on_run(
            "gpuwhy_run_main_thread_delay_ratio",
            "Share of time in which the main thread could have run and was given no CPU.",
        ),
        lambda run: run.run_delay,
    ),
    (
        on_run(
            "gpuwhy_run_cpu_throttled_ratio",
            "Share of the periods of its CPU quota in which the job's cgroup was throttled.",
        ),
        lambda run: run.throttled,
    ),
    (
        on_run("gpuwhy_run_cpu_quota_cores", "CPU quota of the job's cgroup; absent without one."),
        lambda run: run.quota_cores,
    ),
    (
        on_run(
            "gpuwhy_run_cpu_allowed_cores",
            "Fewest CPUs that the rank or one of its workers may run on (affinity or cpuset).",
        ),
        lambda run: run.allowed_cores,
    ),
)
"""Metrics that are a field of the row of signals."""

METRICS = (*(metric for metric, _ in FROM_RUN), PROGRESS_AGE, STEP_INFO, PHASE, CONTEXT, SAMPLES)


def collect(view: View) -> Samples:
    """The ranks of the last second."""
    for on, run in view.ranks():
        labels = view.run(on)
        for metric, value_of in FROM_RUN:
            yield metric, labels, value_of(run)
        if run.step_name is not None and run.step is not None:
            yield STEP_INFO, (*labels, run.step_name), 1
        if run.phases is not None:
            yield SAMPLES, labels, run.samples
    for on, signals in view.ranks_over(RECENT_S).items():
        yield PROGRESS_AGE, view.run(on), progress_age(signals)
    for on, signals in view.ranks_over(MEAN_S).items():
        seen = [run for run in signals if run.phases is not None]
        for phase, share in means([run.phases or {} for run in seen]).items():
            yield PHASE, (*view.run(on), phase), share
        for context, share in means([run.contexts for run in seen]).items():
            yield CONTEXT, (*view.run(on), context), share


def progress_age(seconds: Sequence[RunSignals]) -> float | None:
    """Seconds since the last sign of progress in consecutive seconds of one rank.

    The stack alone does not tell: a starved loop sits in the same line at every sample.
    """
    steps = [run.step for run in reversed(seconds)]
    moved = (
        float(age)
        for age, (newer, older) in enumerate(pairwise(steps))
        if newer is not None and older is not None and newer != older
    )
    known = [next(moved, None), seconds[-1].stuck_s if seconds else None]
    return min((age for age in known if age is not None), default=None)


def means(shares: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean share of each name; one that a second does not hold had no share of it."""
    totals: Counter[str] = Counter()
    for of_second in shares:
        for name, share in of_second.items():
            totals[name] += share  # type: ignore[assignment]
    return {name: total / len(shares) for name, total in totals.items()}
