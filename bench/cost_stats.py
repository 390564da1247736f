"""What windows with and without the exporter say about its cost to the job: pure functions.

A window is ``{"state": "off" | "on" | "control" | a peer's name, "steps_us": [...]}`` with the
microseconds of each step that lies wholly inside it. Every watched window is held against the
``off`` windows on both sides, so that a slow drift (a card that warms up) cancels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Window = Mapping[str, Any]

SPOILT = "spoilt"
"""The state of a window whose watcher ended within it."""
FEWEST_STEPS, FEWEST_TRIALS = 5, 3
DRAWS, SEED, LEVEL, TAIL = 10_000, 20251201, 0.95, 99.9


@dataclass(frozen=True)
class Trial:
    """Step times in seconds of a watched (or control) window and of the empty ones around it."""

    state: str
    tried: Values
    empty: Sequence[Values]
    burst: int = 1


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, None where there are too few trials for one."""

    value: float
    low: float | None = None
    high: float | None = None


def trials(windows: Sequence[Window], burst: int = 1) -> list[Trial]:
    """Each watched window with an ``off`` window before and after it, in one run. Of steps that
    come in bursts only whole bursts are held against each other."""
    found = []
    for before, one, after in zip(windows, windows[1:], windows[2:], strict=False):
        if one["state"] in ("off", SPOILT) or {before["state"], after["state"]} != {"off"}:
            continue
        trial = Trial(one["state"], seconds(one), [seconds(before), seconds(after)], burst)
        if min(map(len, [trial.tried, *trial.empty])) >= max(FEWEST_STEPS, burst):
            found.append(trial)
    return found


def seconds(window: Window) -> Values:
    """Step times of a window."""
    return np.asarray(window["steps_us"], dtype=np.float64) / 1e6


def slowdown(of: Sequence[Trial], measure: str) -> Estimate | None:
    """How much longer a step takes, as a ratio (0.01: 1 %), by ``mean`` or ``median``.

    Neighbouring trials may share what disturbed them: their pairs are drawn as well, and the larger
    of both errors is told.
    """
    if not of:
        return None
    logs = np.array([_difference(trial, measure) for trial in of])
    value = float(logs.mean())
    errors = [_error(logs), _error(_paired(logs))]
    if errors[0] is None:
        return Estimate(float(np.expm1(value)))
    reach = student(len(logs) - 1) * max(error for error in errors if error is not None)
    return Estimate(*(float(np.expm1(v)) for v in (value, value - reach, value + reach)))


def _difference(trial: Trial, measure: str) -> float:
    """Logarithm of the ratio of step times, watched to not."""
    if measure == "median":
        tried, *empty = (np.median(steps) for steps in (trial.tried, *trial.empty))
    else:
        tried, *empty = (_mean(steps, trial.burst) for steps in (trial.tried, *trial.empty))
    return float(np.log(tried) - np.mean(np.log(empty)))


def _mean(steps: Values, burst: int) -> float:
    return float(steps[: len(steps) // burst * burst].mean())


def tail(of: Sequence[Trial]) -> Estimate | None:
    """The 99.9th percentile of step-time differences from the median around, as a ratio.

    Pooled over trials; the interval comes from drawing trials again.
    """
    if not of:
        return None
    parts = [trial.tried / np.median(np.concatenate(trial.empty)) - 1 for trial in of]
    value = float(np.percentile(np.concatenate(parts), TAIL))
    rows = _resampled(len(parts))
    if rows is None:
        return Estimate(value)
    drawn = [np.percentile(np.concatenate([parts[i] for i in row]), TAIL) for row in rows[:500]]
    reach = student(len(parts) - 1) * _spread(np.array(drawn), len(parts))
    return Estimate(value, value - reach, value + reach)


def summary(jobs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Everything of one job from its runs, each with ``windows`` and ``round``, the steps of a
    burst; trials of several runs are pooled."""
    runs = [(job.get("windows", ()), job.get("round", 1)) for job in jobs]
    every = [trial for windows, burst in runs for trial in trials(windows, burst)]
    states = ["on", "control", *sorted({t.state for t in every} - {"on", "control"})]
    found: dict[str, Any] = {"peers": states[2:]}
    for state in states:
        own = [trial for trial in every if trial.state == state]
        found[state] = {
            "windows": len(own),
            "steps": int(sum(len(trial.tried) for trial in own)),
            "mean": slowdown(own, "mean"),
            "median": slowdown(own, "median"),
            "tail": tail(own),
        }
    off = [seconds(w) for windows, _ in runs for w in windows if w["state"] == "off"]
    found["step_s"] = float(np.median(np.concatenate(off))) if any(map(len, off)) else None
    on, control = found["on"]["tail"], found["control"]["tail"]
    if on and control and control.high is not None:
        found["tail_inside"] = bool(on.value <= control.high)
    return found


def steps_inside(rows: Sequence[Mapping[str, Any]], t0: float, t1: float) -> list[int]:
    """Microseconds of the steps that lie wholly between two moments."""
    return [round((r["t"] - r["t0"]) * 1e6) for r in rows if r["t0"] >= t0 and r["t"] <= t1]


def _resampled(units: int) -> NDArray[np.int64] | None:
    if units < FEWEST_TRIALS:
        return None
    return np.random.default_rng(SEED).integers(0, units, size=(DRAWS, units))


def _error(values: Values) -> float | None:
    """Standard error of the mean by bootstrap; None where there are too few values."""
    rows = _resampled(len(values))
    return None if rows is None else _spread(values[rows].mean(axis=1), len(values))


def _spread(drawn: Values, units: int) -> float:
    """The bootstrap standard error, to be taken times Student's t for so few units.

    Percentile intervals never leave the range of what was measured and are far too narrow for
    three or six units; a draw's spread is too small by sqrt((n - 1) / n) besides (Hesterberg 2015,
    "What Teachers Should Know About the Bootstrap").
    """
    return float(drawn.std()) * sqrt(units / (units - 1))


def _paired(values: Values) -> Values:
    """Means of neighbours, two by two."""
    whole = values[: len(values) // 2 * 2]
    return np.asarray(whole.reshape(-1, 2).mean(axis=1))


def student(degrees: int) -> float:
    """The 97.5 % quantile of Student's t (Abramowitz and Stegun 26.7.5; 0.7 % low at 2)."""
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + float(sum(term / degrees**power for power, term in enumerate(terms, start=1)))
