"""Merge whole reads of a driver ring into new samples on an even grid.

The driver keeps the last samples of utilisation and power in rings. Each read gives the ring
whole, with a time stamp for each sample. On an H200 the stamp of one sample moves by up to 0.5 ms
between two reads, and samples are *taken* up to 25 ms late where the host is short of CPU, with
some left out. So a sample is new if its stamp lies past the newest one taken by more than
``SAME`` of a step, and goes to the grid cell that its stamp, less the running phase, is nearest.
Cell k is the UTC time ``k * step``; the grid is the same for every read, so no cell is given twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cos, hypot, pi, sin
from statistics import median

SAME = 0.2
"""Stamps closer than this share of a step are one sample. Seen: shifts of 0.026 of a step at most,
true distances of 0.38 at least."""

WRAPPED = 1.5
"""The ring's oldest sample is this many steps past the newest taken: what lay between is lost."""

HOLE_CELLS = 25
"""A longer hole inside a read is a lost stretch, not a row of nulls (5 s and 0.5 s on an H200)."""

GAIN = 0.02
"""Share of a sample's error by which the phase follows: about a second of the power ring."""

SLIP = 0.75
"""The phase may lie this many steps off the grid before it slips by a cell: more than a half, or
jitter would make it slip to and fro."""

LEAST_GAPS = 8
"""Fewer tell no period."""

LEAST_FIT = 0.4
"""Concentration below which stamps are taken to follow no grid (yet)."""

Sample = tuple[float, float]
"""(UTC time stamp in seconds, value)."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """New cells in a row: the first is at ``t``; ``lost`` seconds before it were not seen."""

    t: float
    values: list[float | None]
    lost: float


def concentration(times: Sequence[float], step: float) -> float:
    """How well the stamps fit a grid of this step: 1 if exactly, near 0 if not at all.

    The mean resultant length of their phases (Mardia and Jupp, Directional Statistics, 2.3).
    """
    turns = [2.0 * pi * ((t - times[0]) / step) for t in times]
    return hypot(sum(map(cos, turns)), sum(map(sin, turns))) / len(turns)


def estimate_step(times: Sequence[float]) -> float | None:
    """The sampling period in seconds, from sorted stamps with jitter and holes; None if there are
    too few of them, or they fit no grid.

    A whole number of milliseconds where that fits as well, since periods are, else to 0.1 ms.
    """
    gaps = [after - before for before, after in pairwise(times)]
    rough = median(gaps) if len(gaps) >= LEAST_GAPS else 0.0
    if rough <= 0.0:
        return None
    # Not down to half of it: a grid of half the true step fits as well.
    steps = [rough * (0.6 + i / 500) for i in range(700)]
    fits = {step: concentration(times, step) for step in steps}
    best = max(fits, key=lambda step: fits[step])
    if fits[best] < LEAST_FIT:
        return None
    whole = round(best, 3)
    fits_whole = whole > 0.0 and concentration(times, whole) >= 0.9 * fits[best]
    return whole if fits_whole else round(best, 4) or None


class RingMerger:
    """State of one ring between reads. ``since``: samples up to this time are of no interest."""

    def __init__(self, since: float) -> None:
        self.newest = since  # stamp of the newest sample taken
        self.cell = 0  # its cell
        self.step: float | None = None
        self.phase: float | None = None  # running mean of stamp - cell * step
        self.lost_s = 0.0

    @property
    def known_to(self) -> float:
        """Samples up to this time stamp change nothing any more; the two that follow are wanted,
        known as they are, to tell whether anything was lost before the new ones."""
        return 0.0 if self.phase is None or self.step is None else self.newest - 2.5 * self.step

    def merge(self, samples: Sequence[Sample]) -> list[Stretch]:
        """The new samples of one read (sorted by stamp), in rows without long holes. The read is
        whole, or lacks what lies before ``known_to``."""
        times = [t for t, _ in samples]
        if self.step is None:
            self.step = estimate_step(times)
        if self.step is None or not times:
            return []
        step, newest = self.step, self.newest
        if self.phase is None:
            self.phase = first_phase(times, step)
            self.cell = round((newest - self.phase) / step) - 1
        lost = times[0] - newest - step if times[0] > newest + WRAPPED * step else 0.0
        fresh = [s for s in samples if s[0] > newest + SAME * step]
        return self._rows(self._place(fresh, self.phase, step), step, lost) if fresh else []

    def resync(self, samples: Sequence[Sample]) -> None:
        """The clock was set: go on behind the newest sample of this read."""
        self.phase, self.newest = None, max((t for t, _ in samples), default=self.newest)

    def _place(self, fresh: Sequence[Sample], phase: float, step: float) -> dict[int, float]:
        """Give each sample a cell after ``self.cell``; advance cell, phase and newest."""
        cells: dict[int, float] = {}
        latest, shared = self.cell, 1
        for t, value in fresh:
            cell = round((t - phase) / step)
            if cell > latest:
                cells[cell], latest, shared = value, cell, 1
            elif latest in cells and latest - 1 not in cells and latest - 1 > self.cell:
                # The one before came late and took this one's place: move it back to its own.
                cells[latest - 1], cells[latest], shared = cells[latest], value, 1
            elif latest in cells:
                shared += 1
                cells[latest] += (value - cells[latest]) / shared
            else:  # the cell was given in an earlier read
                latest, shared = latest + 1, 1
                cells[latest] = value
            phase = follow(phase, t - phase - cell * step, step)
        self.cell, self.phase, self.newest = latest, phase, fresh[-1][0]
        return cells

    def _rows(self, cells: dict[int, float], step: float, lost: float) -> list[Stretch]:
        """Cut where a hole is too long; ``lost``: seconds before the first cell."""
        rows: list[Stretch] = []
        row: list[int] = []
        for cell in sorted(cells):
            if row and cell - row[-1] > HOLE_CELLS:
                rows.append(_row(row, cells, step, lost))
                lost, row = (cell - row[-1] - 1) * step, []
            row.append(cell)
        rows.append(_row(row, cells, step, lost))
        self.lost_s += sum(r.lost for r in rows)
        return rows


def first_phase(times: Sequence[float], step: float) -> float:
    """Where the stamps of a whole read lie against the grid, at most half a step off."""
    first = times[-1] - round(times[-1] / step) * step
    return first + median(t - first - round((t - first) / step) * step for t in times)


def follow(phase: float, error: float, step: float) -> float:
    """The phase after one more sample, slipped by a step if it has gone too far."""
    phase += GAIN * error
    if abs(phase) > SLIP * step:
        phase -= step if phase > 0 else -step
    return phase


def _row(row: Sequence[int], cells: dict[int, float], step: float, lost: float) -> Stretch:
    values = [cells.get(cell) for cell in range(row[0], row[-1] + 1)]
    return Stretch(round(row[0] * step, 6), values, round(lost, 6))
