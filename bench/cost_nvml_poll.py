"""The calls that a monitor makes of every GPU, ten times a second: a peer to measure against."""

from __future__ import annotations

import time

import pynvml

HZ = 10


def read(handle: object) -> None:
    """Utilisation, memory, power, temperature, clock, its limits, and who computes."""
    pynvml.nvmlDeviceGetUtilizationRates(handle)
    pynvml.nvmlDeviceGetMemoryInfo(handle)
    pynvml.nvmlDeviceGetPowerUsage(handle)
    pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)
    pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)
    pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    pynvml.nvmlDeviceGetComputeRunningProcesses(handle)


def main() -> None:
    """Until it is ended."""
    pynvml.nvmlInit()
    handles = [
        pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
    ]
    while True:
        for handle in handles:
            read(handle)
        time.sleep(1 / HZ)


if __name__ == "__main__":
    main()
