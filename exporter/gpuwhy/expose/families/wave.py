"""The rhythm of a GPU's activity, found in its power at 50 Hz."""

from __future__ import annotations

from gpuwhy.expose.metric import on_gpu

PERIOD = on_gpu(
    "gpuwhy_gpu_wave_period_seconds",
    "Period of the GPU's activity. Not always that of a step: bursts of workers and the 0.1 s of "
    "a CPU quota show too. Absent where there is none.",
)
STRENGTH = on_gpu(
    "gpuwhy_gpu_wave_strength_ratio",
    "How regular the activity is, from 0 (no period) to 1 (every period alike).",
)
DEPTH = on_gpu("gpuwhy_gpu_wave_depth_watts", "Power of the wave from trough to peak.")
COSINE = on_gpu(
    "gpuwhy_gpu_wave_phase_cosine",
    "Cosine of the wave's phase at the centre of the fit; the fit covers the same fixed 10 s of "
    "UTC on every host, so that GPUs of one period can be compared.",
)
SINE = on_gpu("gpuwhy_gpu_wave_phase_sine", "Sine of the wave's phase at the centre of the fit.")
CENTRE = on_gpu(
    "gpuwhy_gpu_wave_centre_timestamp_seconds",
    "Centre of the 10 s that the wave was fitted over, Unix time.",
)

METRICS = (PERIOD, STRENGTH, DEPTH, COSINE, SINE, CENTRE)
