"""The period of the GPU's activity, from the 50 Hz power ring."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpuwhy.signals.row import Wave
from gpuwhy.signals.tracks import SLOW_S, GpuTrack, RingTrack

WINDOW_S = 20.0
MIN_STRENGTH = 0.3  # autocorrelation at the period; white noise of 1000 samples stays below 0.1
MIN_DEPTH_W = 20.0  # a busy H200 wobbles by some watts without a gap between kernels
MIN_KNOWN = 0.7  # share of the window that must have been read
MIN_SPAN_S = 8.0  # from the first sample to the last
MIN_PERIODS = 2.5  # of the period within the window
MIN_SAMPLES = 2.5  # of the ring within a period: faster ones fold back (Nyquist)
SLOW_WINDOW_S, SLOW_FROM_S = 170.0, 2.5
"""Periods from SLOW_FROM_S are sought over SLOW_WINDOW_S, so that eight of them are in it (20 s is
the longest)."""
SLOW_PERIODS, SLOW_STRENGTH = 4.0, 0.4  # a power that wanders has slow peaks of 0.3 now and then
SHARP, SHARP_STRENGTH = 0.25, 0.6
"""A peak of one sample, with this share of it at most on either side, is the instrument's: the ring
of an H200 has spikes of its own every 100 ms. A GPU that really works in bursts that short is clear
of them."""
AGAIN = 0.5  # a period repeats: correlation at twice the lag, as a share of that at the lag


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
    the highest, refined between the samples. Strength 0 and no period where there is none.
    """
    ring = track.rings.get("power")
    if ring is None or not ring.step:
        return None
    fine = _of(ring.values(end - WINDOW_S, end), ring.step)
    if fine is None or (fine.period_s or SLOW_FROM_S) < SLOW_FROM_S:
        return fine
    slow = _of(ring.slow_values(end - SLOW_WINDOW_S, end), SLOW_S)
    return slow if slow is not None and _lasting(slow, ring, end) else fine


def _lasting(wave: Wave, ring: RingTrack, end: float) -> bool:
    """Is it slow, clear, and seen often enough?"""
    period = wave.period_s or 0.0
    watched = end - min(ring.slow) * SLOW_S if ring.slow else 0.0
    often = min(watched, SLOW_WINDOW_S) >= SLOW_PERIODS * period
    return period >= SLOW_FROM_S and wave.strength >= SLOW_STRENGTH and often


def _of(values: list[float | None], step: float) -> Wave | None:
    """The wave in an even grid of power; None where too little of it is known. What lies before
    the first sample was not observed, and is no flat line either."""
    known = [i for i, v in enumerate(values) if v is not None]
    if not known or (len(values) - known[-1]) * step > MIN_SPAN_S / 2:
        return None
    first, span = known[0], known[-1] - known[0] + 1
    if span * step < MIN_SPAN_S or len(known) < MIN_KNOWN * span:
        return None
    power = np.interp(
        np.arange(first, first + span),
        known,
        np.array([values[i] for i in known], dtype=np.float64),
    )
    high, low = np.percentile(power, (90, 10))
    depth = float(high - low)
    return _period(power, step, depth) if depth >= MIN_DEPTH_W else Wave(None, 0.0, depth)


def _period(power: NDArray[np.float64], step: float, depth: float) -> Wave:
    correlation = _autocorrelation(power)
    inner = correlation[1 : int(len(power) / MIN_PERIODS) + 1]
    middle = inner[1:-1]
    high = (middle >= inner[:-2]) & (middle > inner[2:]) & (middle >= MIN_STRENGTH)
    peaks = [
        i
        for i in (np.flatnonzero(high) + 2).tolist()
        if correlation[i] >= _least(correlation, i) and _again(correlation, i)
    ]
    if not peaks:
        return Wave(None, 0.0, depth)
    highest = max(correlation[i] for i in peaks)
    first = next(i for i in peaks if correlation[i] >= 0.8 * highest)
    lag = _refine(correlation, first)
    if lag < MIN_SAMPLES:
        return Wave(None, 0.0, depth)
    return Wave(lag * step, float(correlation[first]), depth)


def _least(correlation: NDArray[np.float64], lag: int) -> float:
    beside = max(float(correlation[lag - 1]), float(correlation[lag + 1]))
    return SHARP_STRENGTH if beside < SHARP * correlation[lag] else MIN_STRENGTH


def _again(correlation: NDArray[np.float64], lag: int) -> bool:
    """Does it come a second time? A slow wander of the power has a peak too, but only one."""
    if 2 * lag + 2 >= len(correlation):
        return True
    return float(correlation[2 * lag - 1 : 2 * lag + 2].max()) >= AGAIN * float(correlation[lag])


def _autocorrelation(signal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unbiased, normalised to 1 at lag 0, by FFT."""
    centred = signal - signal.mean()
    size = len(centred)
    spectrum = np.fft.rfft(centred, 2 * size)
    raw = np.fft.irfft(spectrum * np.conj(spectrum))[:size]
    raw = raw / np.arange(size, 0, -1)
    return np.asarray(raw / raw[0] if raw[0] > 0 else raw * 0, dtype=np.float64)


def _refine(correlation: NDArray[np.float64], i: int) -> float:
    """Vertex of the curve through the peak and its neighbours; over many periods at once."""
    best = _vertex(correlation, i)
    for multiple in (2, 4, 8, 16):
        centre = round(best * multiple)
        if centre + 2 >= len(correlation) // 2:
            break
        lag = max((centre - 1, centre, centre + 1), key=lambda k: correlation[k])
        if correlation[lag] < 0.6 * correlation[i]:
            break
        best = _vertex(correlation, lag) / multiple
    return best


def _vertex(correlation: NDArray[np.float64], i: int) -> float:
    """Where a cosine through three points is highest: a period of a few samples is no parabola.
    No further than halfway to the neighbours; of what is no cosine, the middle one."""
    left, mid, right = (float(correlation[k]) for k in (i - 1, i, i + 1))
    if mid <= 0 or not -1.0 < (left + right) / (2 * mid) < 1.0:
        return float(i)
    angle = math.acos((left + right) / (2 * mid))
    offset = math.atan((right - left) / (2 * math.sin(angle) * mid)) / angle
    return i + min(0.5, max(-0.5, offset))
