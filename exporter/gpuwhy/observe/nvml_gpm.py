"""GPM: exact means of activity over the time between two samples (Hopper and newer).

The counters behind it move every 100 ms on an H200: closer samples read 0 or 1 in turn, and NaN
for DRAM. Any longer interval is an exact mean. The first interval after the start reads false
zeros and is dropped.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

from gpuwhy.observe.cadence import Every
from gpuwhy.observe.nvml_device import RETRY_S, Device, put
from gpuwhy.observe.nvml_library import NvmlError, call, gpm_metrics
from gpuwhy.observe.nvml_messages import explain_refusal
from gpuwhy.observe.observation import Observation

LEAST_S = 0.1
"""Samples are never taken closer together than this."""

MIB = 2.0**20
METRICS = {  # nvml.h NVML_GPM_METRIC_*: number -> (field, scale, highest credible value)
    1: ("graphics", 0.01, 1.0),
    2: ("sm", 0.01, 1.0),
    3: ("occupancy", 0.01, 1.0),
    5: ("tensor", 0.01, 1.0),
    10: ("dram", 0.01, 1.0),
    20: ("pcie_tx", MIB, 1e12),
    21: ("pcie_rx", MIB, 1e12),
    60: ("nvlink_rx", MIB, 1e13),
    61: ("nvlink_tx", MIB, 1e13),
}

NO_GPM = (
    "GPM activity counters exist on Hopper and newer GPUs",
    "none; the utilisation ring stands in, which cannot tell work from waiting",
)
SHARED_INSTANCE = (
    "several compute instances share this GPU instance, and GPM counts it as a whole",
    "give each job a GPU instance of its own",
)

ROUNDING = 1.02
"""A share may be read a little over 1; it is cut there."""


class Gpm:
    """The sampler of one GPU, or of the GPU instance that one MIG device stands for."""

    def __init__(self, device: Device, *, alone: bool = True) -> None:
        """``alone``: no other compute instance shares the GPU instance (the counters are its)."""
        self.device = device
        self.alone = alone
        self._previous: tuple[Any, float] | None = None  # sample, monotonic time
        self._spare: Any = None
        self._settled = False
        self._ask_again = Every(RETRY_S)
        self._able = False

    def read(self) -> list[Observation]:
        """The mean since the last sample, if at least ``LEAST_S`` have passed."""
        if self._previous and time.monotonic() - self._previous[1] < LEAST_S:
            return []
        if not self._supported():
            return []
        taken = self._sample()
        if taken is None:
            return []
        before, self._previous = self._previous, taken
        if before is None:
            return []
        self._spare = before[0]
        return self._mean(before, taken)

    def close(self) -> None:
        """Give the driver its sample buffers back."""
        held = [self._spare, self._previous[0] if self._previous else None]
        self._spare, self._previous, self._settled = None, None, False
        for sample in held:
            if sample is not None:
                with contextlib.suppress(NvmlError):
                    call("nvmlGpmSampleFree", sample)

    def _supported(self) -> bool:
        if not self._ask_again.due(self.device.now):
            return self._able
        self._able = False
        if not self.alone:
            self.device.say("gpm", False, *SHARED_INSTANCE)
            return False
        physical = self.device.parent or self.device
        support, code = physical.ask("nvmlGpmQueryDeviceSupport")
        self._able = support is not None and bool(support.isSupportedDevice)
        if support is not None or code in ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND"):
            self.device.say("gpm", self._able, *(("", "") if self._able else NO_GPM))
        else:
            self.device.say("gpm", False, *explain_refusal(code))
        return self._able

    def _sample(self) -> tuple[Any, float] | None:
        """Take a sample; its time is the middle of the call."""
        device = self.device
        buffer = self._spare
        try:
            buffer = call("nvmlGpmSampleAlloc") if buffer is None else buffer
        except NvmlError as error:
            device.say("gpm", False, *explain_refusal(error.code))
            return None
        self._spare = buffer  # until it is taken: a failed call must not leak it
        start = time.monotonic()
        if device.parent is None:
            value, code = device.ask("nvmlGpmSampleGet", buffer, key=())
        else:
            instance = device.gpu_instance
            value, code = device.parent.ask(
                "nvmlGpmMigSampleGet", instance, buffer, key=(instance,)
            )
        if value is None:
            device.say("gpm", False, *explain_refusal(code))
            return None
        device.say("gpm", True)
        self._spare = None
        return buffer, (start + time.monotonic()) / 2.0

    def _mean(self, before: tuple[Any, float], after: tuple[Any, float]) -> list[Observation]:
        try:
            values = gpm_metrics(before[0], after[0], tuple(METRICS))
        except NvmlError as error:
            self.device.say("gpm", False, *explain_refusal(error.code))
            return []
        settled, self._settled = self._settled, True
        out: Observation = {
            "t": time.time() - (time.monotonic() - after[1]),
            "kind": "gpm",
            "uuid": self.device.uuid,
            "dt": round(after[1] - before[1], 6),
        }
        empty = len(out)
        for metric, value in values.items():
            field, scale, high = METRICS[metric]
            put(out, field, value, low=0.0, high=high * ROUNDING, scale=scale)
            if field in out and high == 1.0:
                out[field] = min(1.0, out[field])
        if not settled:
            return []
        if len(out) == empty:
            self.device.say("gpm", False, "GPM gives no metric on this GPU", "update the driver")
            return []
        return [out]
