"""Rates, intervals and bounds over judged jobs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from bench.accuracy_jobs import Job

DRAWS = 2000


def rate(found: Sequence[Job], length: int, outcome: str = "right") -> float:
    """Share of all windows of ``length`` seconds with this outcome."""
    total = sum(sum(j.counts[length].values()) for j in found)
    return sum(j.counts[length][outcome] for j in found) / total if total else float("nan")


def interval(found: Sequence[Job], length: int) -> tuple[float, float]:
    """95 % bootstrap interval of the rate of right answers, over jobs: windows of one job are
    alike."""
    rng = random.Random(7)
    draws = sorted(rate(rng.choices(found, k=len(found)), length) for _ in range(DRAWS))
    return draws[int(0.025 * DRAWS)], draws[int(0.975 * DRAWS)]


def percentile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else float("nan")


def upper_bound(events: int, confidence: float = 0.95) -> float:
    """Upper limit of a Poisson mean of which ``events`` were seen (3.0 where none was: the rule of
    three): the mean at which so few are seen in 1 - ``confidence`` of all cases."""
    return _crossing(
        0.0,
        10.0 * (events + 3),
        lambda mean: sum(math.exp(-mean) * mean**k / math.factorial(k) for k in range(events + 1)),
        1 - confidence,
    )


def lower_bound(right: int, total: int, confidence: float = 0.95) -> float:
    """Lower limit of a share of which ``right`` of ``total`` were seen (Clopper and Pearson, one
    side)."""
    if not right:
        return 0.0
    return _crossing(
        0.0,
        1.0,
        lambda share: sum(
            -math.comb(total, k) * share**k * (1 - share) ** (total - k)
            for k in range(right, total + 1)
        ),
        confidence - 1,
    )


def _crossing(low: float, high: float, falling: Callable[[float], float], level: float) -> float:
    """Where a falling function comes down to ``level``, by bisection."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > level else (low, middle)
    return (low + high) / 2
