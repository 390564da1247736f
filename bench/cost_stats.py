"""What windows with and without the exporter say about its cost to the job: pure functions.

A window is ``{"state": "off" | "on" | "control", "steps_us": [...]}`` with the microseconds of each
step that lies wholly inside it. Every ``on`` and every ``control`` window is held against
the ``off`` windows on both sides, so that a slow drift (a card that warms up) cancels.
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

FEWEST_STEPS, FEWEST_TRIALS = 5, 3
DRAWS, SEED, LEVEL, TAIL = 10_000, 20251201, 0.95, 99.9


@dataclass(frozen=True)
class Trial:
    """Step times in seconds of a watched (or control) window and of the empty ones around it."""

    state: str
    tried: Values
    empty: Sequence[Values]


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, None where there are too few trials for one."""

    value: float
    low: float | None = None
    high: float | None = None


def trials(windows: Sequence[Window]) -> list[Trial]:
    """Each ``on`` or ``control`` window with an ``off`` window before and after it, in one run."""
    found = []
    for before, one, after in zip(windows, windows[1:], windows[2:], strict=False):
        if one["state"] == "off" or {before["state"], after["state"]} != {"off"}:
            continue
        trial = Trial(one["state"], seconds(one), [seconds(before), seconds(after)])
        if min(map(len, [trial.tried, *trial.empty])) >= FEWEST_STEPS:
            found.append(trial)
    return found


def seconds(window: Window) -> Values:
    """Step times of a window."""
    return np.asarray(window["steps_us"], dtype=np.float64) / 1e6


def slowdown(of: Sequence[Trial], measure: str) -> Estimate | None:
    """How much longer a step takes, as a ratio (0.01: 1 %), by ``mean`` or ``median``."""
    if not of:
        return None
    centre = np.mean if measure == "mean" else np.median
    logs = np.array(
        [
            np.log(centre(trial.tried)) - np.mean([np.log(centre(steps)) for steps in trial.empty])
            for trial in of
        ]
    )
    value = float(logs.mean())
    rows = _resampled(len(logs))
    if rows is None:
        return Estimate(float(np.expm1(value)))
    ends = _interval(value, logs[rows].mean(axis=1), len(logs))
    return Estimate(float(np.expm1(value)), *(float(np.expm1(end)) for end in ends))


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
    return Estimate(value, *_interval(value, np.array(drawn), len(parts)))


def summary(runs: Iterable[Sequence[Window]]) -> dict[str, Any]:
    """Everything of one job from its windows, run by run; trials of several runs are pooled."""
    runs = list(runs)
    every = [trial for windows in runs for trial in trials(windows)]
    found: dict[str, Any] = {}
    for state in ("on", "control"):
        own = [trial for trial in every if trial.state == state]
        found[state] = {
            "windows": len(own),
            "steps": int(sum(len(trial.tried) for trial in own)),
            "mean": slowdown(own, "mean"),
            "median": slowdown(own, "median"),
            "tail": tail(own),
        }
    off = [seconds(w) for windows in runs for w in windows if w["state"] == "off"]
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


def _interval(value: float, drawn: Values, units: int) -> tuple[float, float]:
    """The bootstrap standard error times Student's t, for few units.

    Percentile intervals never leave the range of what was measured and are far too narrow for
    three or six units; a draw's spread is too small by sqrt((n - 1) / n) besides (Hesterberg 2015,
    "What Teachers Should Know About the Bootstrap").
    """
    error = float(drawn.std()) * sqrt(units / (units - 1))
    return value - student(units - 1) * error, value + student(units - 1) * error


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
