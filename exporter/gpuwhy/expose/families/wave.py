"""The rhythm of a GPU's activity, found in its power at 50 Hz."""

from __future__ import annotations

from collections.abc import Callable

from gpuwhy.expose.metric import Metric, Samples, on_gpu
from gpuwhy.expose.view import View
from gpuwhy.signals.row import Wave

FROM_WAVE: tuple[tuple[Metric, Callable[[Wave], float | None]], ...] = (
    (
        on_gpu(
            "gpuwhy_gpu_wave_period_seconds",
            "Period of the GPU's activity. Not always that of a step: bursts of workers and the "
            "0.1 s of a CPU quota show too. Absent where there is none.",
        ),
        lambda wave: wave.period_s,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_wave_strength_ratio",
            "How regular the activity is, from 0 (no period) to 1 (every period alike).",
        ),
        lambda wave: wave.strength,
    ),
    (
        on_gpu("gpuwhy_gpu_wave_depth_watts", "Power of the wave from trough to peak."),
        lambda wave: wave.depth_w,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_wave_phase_cosine",
            "Cosine of the wave's phase at the centre of the fit; the fit covers the same fixed "
            "10 s of UTC on every host, so that GPUs of one period can be compared.",
        ),
        lambda wave: wave.cosine,
    ),
    (
        on_gpu("gpuwhy_gpu_wave_phase_sine", "Sine of the wave's phase at the centre of the fit."),
        lambda wave: wave.sine,
    ),
    (
        on_gpu(
            "gpuwhy_gpu_wave_centre_timestamp_seconds",
            "Centre of the 10 s that the wave's phase was fitted over, Unix time.",
        ),
        lambda wave: wave.centre,
    ),
)

METRICS = tuple(metric for metric, _ in FROM_WAVE)


def collect(view: View) -> Samples:
    """The GPUs of the last second whose power was seen well enough to tell."""
    for labels, gpu, _ in view.gpu_rows():
        if gpu.wave is not None:
            for metric, value_of in FROM_WAVE:
                yield metric, labels, value_of(gpu.wave)
