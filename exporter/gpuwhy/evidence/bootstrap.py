"""Confidence intervals of ratios, by resampling stretches of time.

What is measured second by second is alike from one second to the next, so whole stretches are
drawn again, not single seconds (moving-block bootstrap, Künsch 1989).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

DRAWS = 2000
LEVEL = 0.95
FEWEST = 4
"""Units below which an interval would say nothing."""
SEED = 20251101
"""The same two files give the same interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value; its interval is None where there are too few units for one."""

    value: float
    low: float | None = None
    high: float | None = None

    def as_json(self) -> dict[str, float]:
        """The parts that are known."""
        parts = {"value": self.value, "low": self.low, "high": self.high}
        return {name: round(part, 9) for name, part in parts.items() if part is not None}

    @property
    def certain(self) -> bool:
        """Is there an interval at all?"""
        return self.low is not None


def draws(units: int, block: int, which: int = 0) -> NDArray[np.int64] | None:
    """Rows of indices, one for each draw; None for too few units. ``which`` tells the two of a
    comparison apart, so that each is drawn by itself."""
    if units < max(FEWEST, 2 * block):
        return None
    generator = np.random.default_rng((SEED, which))
    count = -(-units // block)
    starts = generator.integers(0, units - block + 1, size=(DRAWS, count))
    rows = (starts[:, :, None] + np.arange(block)).reshape(DRAWS, -1)
    return rows[:, :units]


def ratios(above: Values, below: Values, rows: NDArray[np.int64] | None) -> Values | None:
    """sum(above) / sum(below) of each draw."""
    if rows is None:
        return None
    return np.asarray(above[rows].sum(axis=1) / np.maximum(below[rows].sum(axis=1), 1e-12))


def ratio(above: Values, below: Values, rows: NDArray[np.int64] | None) -> Estimate:
    """sum(above) / sum(below) with its interval."""
    return around(float(above.sum() / max(below.sum(), 1e-12)), ratios(above, below, rows))


def around(value: float, drawn: Values | None) -> Estimate:
    """A value with the percentile interval of its draws."""
    if drawn is None:
        return Estimate(value)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, float(low), float(high))
