"""Xid events: the driver's reports of GPU errors, read without waiting."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from gpuwhy.observe.nvml_device import Device
from gpuwhy.observe.nvml_library import GONE, NvmlError, address, call, constant
from gpuwhy.observe.observation import Observation

XID = constant("nvmlEventTypeXidCriticalError")
MAX_XID = 9999
"""NVIDIA's catalogue ends in the hundreds; what is beyond is garbage."""
MOST = 64
"""Events taken in one read: a storm must not hold the poll."""


class XidEvents:
    """One event set for all GPUs of the library's session."""

    def __init__(self, devices: Iterable[Device]) -> None:
        self.counts: dict[str, int] = {}  # uuid -> events so far; only GPUs that can send any
        self.last: dict[str, int] = {}
        self._uuids: dict[int, str] = {}
        self._set: Any = None
        self.register(devices)

    def register(self, devices: Iterable[Device]) -> None:
        """(Re)make the set; counts go on. A GPU that sends no events is left out."""
        self.close()
        try:
            self._set = call("nvmlEventSetCreate")
        except NvmlError:
            return
        for device in devices:
            with contextlib.suppress(NvmlError):  # what is lost shows at its first read
                if not (device.get("nvmlDeviceGetSupportedEventTypes") or 0) & XID:
                    continue
                call("nvmlDeviceRegisterEvents", device.handle, XID, self._set)
                self._uuids[address(device.handle)] = device.uuid
                self.counts.setdefault(device.uuid, 0)

    def read(self, t: float) -> list[Observation]:
        """The events since the last read. Raises NvmlError if the library is gone."""
        out: list[Observation] = []
        for _ in range(MOST if self._uuids else 0):
            try:
                event = call("nvmlEventSetWait_v2", self._set, 0)
            except NvmlError as error:
                if error.code in GONE:
                    raise
                break  # TIMEOUT: there is none; a lost GPU shows elsewhere
            uuid = self._uuids.get(address(event.device))
            xid = int(event.eventData)
            if uuid is None or not event.eventType & XID or not 0 < xid <= MAX_XID:
                continue
            self.counts[uuid] += 1
            self.last[uuid] = xid
            out.append({"t": t, "kind": "xid", "uuid": uuid, "xid": xid})
        return out

    def close(self) -> None:
        held, self._set, self._uuids = self._set, None, {}
        if held is not None:
            with contextlib.suppress(NvmlError):
                call("nvmlEventSetFree", held)
