"""Reading the driver's rings of utilisation and power, whole, before they wrap.

A read costs the driver milliseconds of CPU, and the ring of utilisation holds 14 s. Where GPM says
how busy the GPU is, that ring only stands by, and is read less often.
"""

from __future__ import annotations

import time

from gpuwhy.observe.cadence import Every
from gpuwhy.observe.nvml_device import Device
from gpuwhy.observe.nvml_library import constant, number
from gpuwhy.observe.nvml_messages import explain_refusal
from gpuwhy.observe.nvml_rings import RingMerger, Sample
from gpuwhy.observe.observation import Observation

RINGS = (  # name, nvmlSamplingType_t, source, scale, highest credible value
    ("utilization", constant("NVML_GPU_UTILIZATION_SAMPLES"), "utilization_ring", 0.01, 1.0),
    ("power", constant("NVML_TOTAL_POWER_SAMPLES"), "power_ring", 0.001, 10_000.0),
)

STANDING_BY_S = 10.0
"""How often the ring of utilisation is read where GPM serves: within its 14 s."""

CLOCK_SET_S = 0.05
"""The wall clock has been set if it moves against the monotonic one by more than this."""

AHEAD_S = 1.0
"""A stamp further in the future is garbage."""


class RingReader:
    """The rings of one GPU. ``since``: Unix time before which samples are left out."""

    def __init__(self, since: float) -> None:
        self.mergers = {name: RingMerger(since) for name, *_ in RINGS}
        self._standing_by = Every(STANDING_BY_S)
        self._offset: float | None = None  # wall clock - monotonic clock

    @property
    def lost_s(self) -> dict[str, float]:
        """Cumulative seconds lost, by ring."""
        return {name: merger.lost_s for name, merger in self.mergers.items()}

    def read(self, device: Device) -> list[Observation]:
        """The new samples of each ring; says on the device which rings are up."""
        was_set = self._clock_was_set()
        out: list[Observation] = []
        for name, sampling, source, scale, high in RINGS:
            merger = self.mergers[name]
            if not was_set and name == "utilization" and self._may_wait(device):
                continue
            known_to = 0.0 if was_set else merger.known_to
            samples, code = read_ring(device, sampling, scale, high, known_to)
            mig = device.mig_enabled
            why = explain_refusal(code, mig=mig, virtual=device.virtual) if code else ("", "")
            device.say(source, not code, *why)
            if was_set:
                merger.resync(samples)
                continue
            for row in merger.merge(samples):
                out.append(
                    {
                        "t": row.t,
                        "kind": "ring",
                        "uuid": device.uuid,
                        "ring": name,
                        "dt": merger.step,
                        "values": row.values,
                        **({"lost": row.lost} if row.lost else {}),
                    }
                )
        return out

    def _may_wait(self, device: Device) -> bool:
        due = self._standing_by.due(device.now)
        return not due and device.states.get("gpm", (False,))[0]

    def _clock_was_set(self) -> bool:
        offset = time.time() - time.monotonic()
        before, self._offset = self._offset, offset
        return before is not None and abs(offset - before) > CLOCK_SET_S


def read_ring(
    device: Device, sampling: int, scale: float, high: float, known_to: float
) -> tuple[list[Sample], str]:
    """The credible samples of a ring past the time stamp ``known_to``, sorted, and the code of a
    refusal or ""."""
    answer, code = device.ask("nvmlDeviceGetSamples", sampling, 0)
    if answer is None:
        return [], code
    value_type, entries = answer
    latest = time.time() + AHEAD_S
    samples: list[Sample] = []
    old = False
    for entry in entries:
        t = entry.timeStamp * 1e-6
        if 0.0 < t <= known_to:
            old = True
            continue
        value = number(entry.sampleValue, value_type)
        if value is not None and 0.0 < t <= latest and 0.0 <= value * scale <= high:
            samples.append((t, round(value * scale, 6)))
    samples.sort()
    return samples, "" if samples or old else "NO_DATA"
