"""What windows with and without the exporter say about its cost to the job: pure functions.

A window is ``{"state": "off" | "on" | "control", "steps_us": [...]}`` with the microseconds of each
step that lies wholly inside it. Every ``on`` and every ``control`` window is paired with the
``off`` windows beside it, so that a slow drift (a card that warms up) cancels in their mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Window = Mapping[str, Any]

FEWEST_STEPS, FEWEST_PAIRS = 5, 3
DRAWS, SEED, LEVEL, TAIL = 10_000, 20251201, 0.95, 99.9


@dataclass(frozen=True)
class Pair:
    """Step times in seconds of a watched (or control) window and of the empty one beside it."""

    state: str
    tried: Values
    empty: Values


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, None where there are too few pairs for one."""

    value: float
    low: float | None = None
    high: float | None = None


def pairs(windows: Sequence[Window]) -> list[Pair]:
    """Each ``on`` or ``control`` window with each ``off`` window next to it, in one run."""
    found = []
    for one, other in pairwise(windows):
        tried, empty = (one, other) if other["state"] == "off" else (other, one)
        if tried["state"] == "off" or empty["state"] != "off":
            continue
        pair = Pair(tried["state"], seconds(tried), seconds(empty))
        if min(len(pair.tried), len(pair.empty)) >= FEWEST_STEPS:
            found.append(pair)
    return found


def seconds(window: Window) -> Values:
    """Step times of a window."""
    return np.asarray(window["steps_us"], dtype=np.float64) / 1e6


def slowdown(of: Sequence[Pair], measure: str) -> Estimate | None:
    """How much longer a step takes, as a ratio (0.01: 1 %), by ``mean`` or ``median``."""
    if not of:
        return None
    centre = np.mean if measure == "mean" else np.median
    logs = np.array([np.log(centre(pair.tried) / centre(pair.empty)) for pair in of])
    drawn = _resampled(len(logs))
    low, high = _interval(logs[drawn].mean(axis=1), len(logs)) if drawn is not None else (None,) * 2
    ends = [None if end is None else float(np.expm1(end)) for end in (low, high)]
    return Estimate(float(np.expm1(logs.mean())), *ends)


def tail(of: Sequence[Pair]) -> Estimate | None:
    """The 99.9th percentile of step-time differences from the empty window's median, as a ratio.

    Pooled over pairs; the interval comes from drawing pairs again.
    """
    if not of:
        return None
    parts = [pair.tried / np.median(pair.empty) - 1 for pair in of]
    value = float(np.percentile(np.concatenate(parts), TAIL))
    rows = _resampled(len(parts))
    if rows is None:
        return Estimate(value)
    some = rows[:500]
    drawn = [np.percentile(np.concatenate([parts[i] for i in row]), TAIL) for row in some]
    return Estimate(value, *_interval(np.array(drawn), len(parts)))


def summary(runs: Iterable[Sequence[Window]]) -> dict[str, Any]:
    """Everything of one job from its windows, run by run; pairs of several runs are pooled."""
    runs = list(runs)
    every = [pair for windows in runs for pair in pairs(windows)]
    found: dict[str, Any] = {}
    for state in ("on", "control"):
        own = [pair for pair in every if pair.state == state]
        found[state] = {
            "pairs": len(own),
            "steps": int(sum(len(pair.tried) for pair in own)),
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
    if units < FEWEST_PAIRS:
        return None
    return np.random.default_rng(SEED).integers(0, units, size=(DRAWS, units))


def _interval(drawn: Values, units: int) -> tuple[float, float]:
    """The percentile interval, widened for few units.

    Plain percentile intervals are too narrow for small samples; the level is set back to that of
    Student's t (the expanded percentile interval: Hesterberg 2015, "What Teachers Should Know
    About the Bootstrap", section 5.3).
    """
    wide = -sqrt(units / (units - 1)) * student(units - 1)
    outside = NormalDist().cdf(wide)
    low, high = np.quantile(drawn, [outside, 1 - outside])
    return float(low), float(high)


def student(degrees: int) -> float:
    """The 97.5 % quantile of Student's t (Abramowitz and Stegun 26.7.5; 0.4 % off at 3)."""
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    terms = (
        (z**3 + z) / 4.0,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / float(degrees) ** power for power, term in enumerate(terms, start=1))
