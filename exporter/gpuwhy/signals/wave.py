"""The period of the GPU's activity, from the 50 Hz power ring."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuwhy.signals.row import Wave
from gpuwhy.signals.tracks import GpuTrack

WINDOW_S = 20.0
MIN_STRENGTH = 0.3  # autocorrelation at the period; white noise of 1000 samples stays below 0.1
MIN_DEPTH_W = 20.0  # a busy H200 wobbles by some watts without a gap between kernels
MIN_KNOWN = 0.7  # share of the window that must have been read
MIN_PERIODS = 2.5  # of the period within the window


FIT_S = 10
"""The phase is fitted over the same stretch of UTC on every host: [10 k, 10 k + 10)."""


def find_wave(track: GpuTrack, end: float) -> Wave | None:
    """Period and strength of the activity before ``end``, and the phase over the last FIT_S."""
    wave = _find(track, end)
    if wave is None or wave.period_s is None:
        return wave
    ring = track.rings["power"]
    start = (int(end) // FIT_S - 1) * FIT_S
    fitted = _phase(ring.values(start, start + FIT_S), ring.step, wave.period_s)
    if fitted is None:
        return wave
    return replace(wave, cosine=fitted[0], sine=fitted[1], centre=start + FIT_S / 2)


def _phase(values: list[float | None], step: float, period: float) -> tuple[float, float] | None:
    """Cosine and sine of the phase at the centre: the first Fourier component at this period."""
    known = [(i, v) for i, v in enumerate(values) if v is not None]
    if len(known) < MIN_KNOWN * len(values) or not known:
        return None
    offset = (np.array([i for i, _ in known]) - (len(values) - 1) / 2) * step
    power = np.array([v for _, v in known], dtype=np.float64)
    angle = 2 * np.pi * offset / period
    centred = power - power.mean()
    cosine, sine = float(centred @ np.cos(angle)), float(-(centred @ np.sin(angle)))
    length = float(np.hypot(cosine, sine))
    return (cosine / length, sine / length) if length > 0 else None


def _find(track: GpuTrack, end: float) -> Wave | None:
    """The wave of the last WINDOW_S of power before ``end``; None where the ring was not seen.

    Autocorrelation of the mean-free signal; the period is the first peak that is nearly as high as
    the highest, refined by a parabola. Strength 0 and no period where there is none.
    """
    ring = track.rings.get("power")
    if ring is None or not ring.step:
        return None
    values = ring.values(end - WINDOW_S, end)
    known = [i for i, v in enumerate(values) if v is not None]
    if len(known) < MIN_KNOWN * len(values) or len(known) < 50:
        return None
    power = np.interp(
        np.arange(len(values)), known, np.array([values[i] for i in known], dtype=np.float64)
    )
    depth = float(np.percentile(power, 90) - np.percentile(power, 10))
    if depth < MIN_DEPTH_W:
        return Wave(None, 0.0, depth)
    return _period(power, ring.step, depth)


def _period(power: NDArray[np.float64], step: float, depth: float) -> Wave:
    correlation = _autocorrelation(power)
    limit = int(len(power) / MIN_PERIODS)
    inner = correlation[1 : limit + 1]
    peaks = [
        i + 1
        for i in range(1, len(inner) - 1)
        if inner[i] >= inner[i - 1] and inner[i] > inner[i + 1] and inner[i] >= MIN_STRENGTH
    ]
    if not peaks:
        return Wave(None, 0.0, depth)
    highest = max(correlation[i] for i in peaks)
    first = next(i for i in peaks if correlation[i] >= 0.8 * highest)
    return Wave(_refine(correlation, first) * step, float(correlation[first]), depth)


def _autocorrelation(signal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unbiased, normalised to 1 at lag 0, by FFT."""
    centred = signal - signal.mean()
    size = len(centred)
    spectrum = np.fft.rfft(centred, 2 * size)
    raw = np.fft.irfft(spectrum * np.conj(spectrum))[:size]
    raw = raw / np.arange(size, 0, -1)
    return np.asarray(raw / raw[0] if raw[0] > 0 else raw * 0, dtype=np.float64)


def _refine(correlation: NDArray[np.float64], i: int) -> float:
    """Vertex of the parabola through the peak and its neighbours; over many periods at once."""
    best, lag = float(i), i
    for multiple in (2, 4, 8, 16):
        centre = round(best * multiple)
        if centre + 2 >= len(correlation) // 2:
            break
        near = range(max(1, centre - 2), centre + 3)
        lag = max(near, key=lambda k: correlation[k])
        if correlation[lag] < 0.6 * correlation[i]:
            break
        best = _vertex(correlation, lag) / multiple
    return best if lag != i else _vertex(correlation, i)


def _vertex(correlation: NDArray[np.float64], i: int) -> float:
    left, mid, right = (float(correlation[k]) for k in (i - 1, i, i + 1))
    bend = left - 2 * mid + right
    if bend >= 0:
        return float(i)
    return i + min(0.5, max(-0.5, 0.5 * (left - right) / bend))  # no peak: no further than halfway
