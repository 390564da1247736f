"""The period of the activity, found in a power ring or honestly absent."""

from __future__ import annotations

import numpy as np
import pytest

from gpuwhy.signals.tracks import GpuTrack
from gpuwhy.signals.wave import find_wave


def track(power: list[float | None], start: float = 1000.0) -> GpuTrack:
    made = GpuTrack("g")
    made.add(
        {"kind": "ring", "t": start, "uuid": "g", "ring": "power", "dt": 0.02, "values": power}
    )
    return made


def square(
    period: float, duty: float, noise: float = 15.0, seed: int = 1, seconds: float = 20.0
) -> list[float | None]:
    """Power of a GPU that works a share of each period."""
    random = np.random.default_rng(seed)
    size = round(seconds / 0.02)
    t = (np.arange(size) + 0.5) * 0.02
    high = (t / period) % 1.0 < duty
    return [float(x) for x in np.where(high, 600.0, 150.0) + random.normal(0, noise, size)]


@pytest.mark.parametrize("period", [0.1, 0.143, 0.38, 0.8, 1.0, 2.4])
@pytest.mark.parametrize("duty", [0.25, 0.6])
def test_period(period: float, duty: float) -> None:
    wave = find_wave(track(square(period, duty)), 1020.0)
    assert wave is not None
    assert wave.period_s == pytest.approx(period, rel=0.01)
    assert wave.strength > 0.3


def test_uneven_steps_of_three_samples_are_exact_on_average() -> None:
    """Their correlation fades before many periods could make it exact."""
    errors = []
    for seed in range(8):
        random = np.random.default_rng(seed)
        steps = 0.0659 * (1 + 0.1 * random.standard_normal(400))
        starts = np.concatenate([[0.0], np.cumsum(steps)])
        t = np.arange(1000) * 0.02
        k = np.searchsorted(starts, t, side="right") - 1
        power = 500 + 150 * np.cos(2 * np.pi * (t - starts[k]) / steps[k])
        wave = find_wave(track([float(x) for x in power]), 1020.0)
        assert wave is not None
        errors.append(abs((wave.period_s or 0.0) * k[-1] / 20.0 - 1))
    assert float(np.mean(errors)) < 0.005


@pytest.mark.parametrize("period", [2.6, 5.0, 11.3, 20.0])
def test_slow_periods_are_exact_over_eight_of_them(period: float) -> None:
    seconds = 8.2 * period
    wave = find_wave(track(square(period, 0.6, seconds=seconds)), 1000.0 + seconds)
    assert wave is not None
    assert wave.period_s == pytest.approx(period, rel=0.01)


def test_a_power_that_wanders_has_no_period() -> None:
    for seed in range(8):
        steps = np.random.default_rng(seed).normal(0, 3, 2000)
        wander = 500 + np.convolve(steps, np.ones(80), "valid")
        values: list[float | None] = [float(x) for x in wander]
        wave = find_wave(track(values), 1000.0 + len(values) * 0.02)
        assert wave is not None
        assert wave.period_s is None, (seed, wave)


def test_the_rings_own_spikes_are_no_wave() -> None:
    random = np.random.default_rng(5)
    power = 680 + random.normal(0, 30, 1000)
    power[::5] += 50
    wave = find_wave(track([float(x) for x in power]), 1020.0)
    assert wave is not None
    assert wave.period_s is None


def test_periods_shorter_than_the_ring_can_show_are_not_made_up() -> None:
    wave = find_wave(track(square(0.04, 0.5)), 1020.0)
    assert wave is not None
    assert wave.period_s is None


def test_what_lies_before_the_first_sample_is_not_a_flat_line() -> None:
    values = square(0.8, 0.5, seconds=9.0)
    wave = find_wave(track(values, start=1011.0), 1020.0)
    assert wave is not None
    assert wave.period_s == pytest.approx(0.8, rel=0.01)


def test_noise_has_no_period() -> None:
    random = np.random.default_rng(3)
    for level in (5.0, 60.0):
        wave = find_wave(track([float(x) for x in random.normal(600, level, 1000)]), 1020.0)
        assert wave is not None
        assert wave.period_s is None
        assert wave.strength == 0.0


def test_holes_are_bridged_and_too_many_are_not() -> None:
    values = square(0.8, 0.5)
    few = [v if i % 50 else None for i, v in enumerate(values)]
    wave = find_wave(track(few), 1020.0)
    assert wave is not None
    assert wave.period_s == pytest.approx(0.8, rel=0.01)
    assert find_wave(track([*values[:300], *([None] * 700)]), 1020.0) is None


def test_no_ring_no_wave() -> None:
    assert find_wave(GpuTrack("g"), 1020.0) is None


def test_the_phase_is_of_the_same_ten_seconds_of_utc_and_tells_a_shift() -> None:
    def phase(shift_s: float) -> float:
        t = 1000 + (np.arange(1000) + 0.5) * 0.02
        power = [float(x) for x in np.where(((t - shift_s) / 0.8) % 1.0 < 0.5, 600.0, 150.0)]
        wave = find_wave(track(power), 1020.0)
        assert wave is not None
        assert wave.cosine is not None
        assert wave.sine is not None
        assert wave.centre == 1015.0
        return float(np.arctan2(wave.sine, wave.cosine))

    turn = (phase(0.0) - phase(0.2)) % (2 * np.pi)
    assert turn == pytest.approx(np.pi / 2, abs=0.1)
