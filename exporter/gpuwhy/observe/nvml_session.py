"""The connection to the driver library: opening it, losing it or a GPU, opening it again.

One way back serves every loss: leave the library, initialise it, look the GPUs up afresh. Readers
are kept by UUID, so rings go on where they were; GPUs that do not come back stay lost while the
others go on.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from gpuwhy.observe.cadence import BackOff
from gpuwhy.observe.nvml_device import Device
from gpuwhy.observe.nvml_events import XidEvents
from gpuwhy.observe.nvml_gpu import GpuReader
from gpuwhy.observe.nvml_info import topology, uuid_of
from gpuwhy.observe.nvml_library import GARBAGE, GONE, NvmlError, call
from gpuwhy.observe.nvml_messages import explain_library

MOST_GPUS = 256
"""Of one host: /dev/nvidia0 to 254 is all that there is room for."""


class Session:
    """``gpus`` by UUID; ``unreadable``: index -> code of those that give no handle."""

    def __init__(self, *, proc: Path, pci: Path) -> None:
        self.open = False
        self.why: tuple[str, str] = ("", "")  # why it is not open, and the remedy
        self.code = ""
        self.gpus: dict[str, GpuReader] = {}
        self.unreadable: dict[int, str] = {}
        self.xids = XidEvents(())
        self._proc, self._pci = proc, pci
        self._library = BackOff(1.0, 60.0)
        self._lost = BackOff(10.0, 60.0)

    def due(self, now: float) -> bool:
        """Is it time to (re)open?"""
        if not self.open:
            return self._library.due(now)
        return self._any_lost() and self._lost.due(now)

    def connect(self, now: float) -> None:
        """Open anew and find the GPUs. Raises NvmlError if the library does not answer."""
        self.close()
        call("nvmlInit")
        self.open = True
        count = int(call("nvmlDeviceGetCount"))
        if not 0 < count <= MOST_GPUS:
            raise NvmlError(GARBAGE if count else "NO_GPU", "nvmlDeviceGetCount")
        attached = self._attach(now, count)
        for gpu in attached:
            with contextlib.suppress(NvmlError):  # a GPU lost this early shows at its first read
                gpu.topology = topology(gpu.device, [other.device for other in attached])
        self.xids.register([gpu.device for gpu in attached])
        self._library.succeeded()
        self.why, self.code = ("", ""), ""

    def lose(self, error: NvmlError, now: float) -> None:
        """The library does not answer: close it and wait."""
        self.close()
        self.why, self.code = explain_library(error.code), error.code
        self._library.failed(now)

    def settle(self, now: float) -> None:
        """After a round of reads: keep the pause before the next attempt at lost GPUs."""
        if not self._any_lost():
            self._lost.succeeded()
        elif self._lost.due(now):
            self._lost.failed(now)

    def close(self) -> None:
        """Leave the library."""
        self.xids.close()
        for gpu in self.gpus.values():
            gpu.close()
        if self.open:
            self.open = False
            with contextlib.suppress(NvmlError):
                call("nvmlShutdown")

    def _any_lost(self) -> bool:
        return bool(self.unreadable) or any(gpu.lost for gpu in self.gpus.values())

    def _attach(self, now: float, count: int) -> list[GpuReader]:
        """Give every GPU that answers its reader; the others are lost."""
        attached: list[GpuReader] = []
        self.unreadable = {}
        for index in range(count):
            try:
                handle = call("nvmlDeviceGetHandleByIndex", index)
                device = Device(handle, uuid_of(handle), index)
            except NvmlError as error:
                if error.code in GONE:
                    raise
                self.unreadable[index] = error.code
                continue
            device.begin(now)
            attached.append(self._reader(device))
        for gpu in self.gpus.values():
            if gpu not in attached:
                gpu.lose(self.unreadable.get(gpu.device.index, "GPU_NOT_FOUND"))
        return attached

    def _reader(self, device: Device) -> GpuReader:
        known = self.gpus.get(device.uuid)
        if known is None:
            # What the rings hold of the time before we looked belongs to nobody's account.
            known = GpuReader(device, since=time.time(), proc=self._proc, pci=self._pci)
            self.gpus[device.uuid] = known
        else:
            known.attach(device)
        return known
