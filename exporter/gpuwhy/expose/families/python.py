"""The hottest Python functions of ranks and workers, bounded, with the rest counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpuwhy.expose.limits import FUNCTIONS_PER_RANK, RECENT_S
from gpuwhy.expose.metric import RUN, Metric, Samples, on_run
from gpuwhy.expose.view import View
from gpuwhy.signals.row import Function, RunSignals

FUNCTION = Metric(
    "gpuwhy_python_function_ratio",
    "gauge",
    (*RUN, "role", "phase", "function", "file", "line"),
    FUNCTIONS_PER_RANK,
    "GPU and run",
    "Share of time in this function over the last 60 s. role rank: of the main thread's time, the "
    "hottest in each phase; role worker: of the workers' time, phase empty. The function is the "
    "deepest one outside the standard library and site-packages, where there is one.",
)
LEFT_OUT = on_run(
    "gpuwhy_python_functions_left_out",
    "Functions seen in the last 60 s beyond those that are exposed.",
)
LEFT_OUT_SHARE = on_run(
    "gpuwhy_python_functions_left_out_ratio",
    "Share of time in the functions that are not exposed.",
)

METRICS = (FUNCTION, LEFT_OUT, LEFT_OUT_SHARE)

Place = tuple[str, str, Function]
"""(role, phase, function)."""


def collect(view: View) -> Samples:
    """The ranks of the last second, with what they did in the last minute."""
    for on, seconds in view.ranks_over(RECENT_S).items():
        seen = [run for run in seconds if run.phases is not None or run.worker_function]
        if not seen:
            continue
        labels = view.run(on)
        hottest = shares(seen)
        for (role, phase, (name, file, line)), share in hottest[:FUNCTIONS_PER_RANK]:
            yield FUNCTION, (*labels, role, phase, name, file, str(line)), share
        yield LEFT_OUT, labels, len(hottest[FUNCTIONS_PER_RANK:])
        yield LEFT_OUT_SHARE, labels, sum(share for _, share in hottest[FUNCTIONS_PER_RANK:])


def shares(seconds: Sequence[RunSignals]) -> list[tuple[Place, float]]:
    """Each function's mean share over the seconds, the largest first."""
    totals: Counter[Place] = Counter()
    for run in seconds:
        for phase, (function, share) in run.functions.items():
            totals[("rank", phase, function)] += share  # type: ignore[assignment]
        if run.worker_function is not None:
            function, share = run.worker_function
            totals[("worker", "", function)] += share  # type: ignore[assignment]
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    return [(place, total / len(seconds)) for place, total in ordered]
