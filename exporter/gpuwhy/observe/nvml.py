"""NVML: everything the driver tells of its GPUs.

One :class:`NvmlSource` reads all GPUs in one thread. A call that hangs cannot be cancelled: the
loop that runs the source sees its deadline pass, and in the end its process is replaced.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from gpuwhy.observe.cadence import Every
from gpuwhy.observe.nvml_device import Device, State
from gpuwhy.observe.nvml_gpu import SLOW_S, GpuReader
from gpuwhy.observe.nvml_info import info
from gpuwhy.observe.nvml_library import LOST, NvmlError, bindings_version, call
from gpuwhy.observe.nvml_messages import explain_lost
from gpuwhy.observe.nvml_session import Session
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.source_state import SourceState

SOURCES = ("gpm", "utilization_ring", "power_ring", "gpu_processes", "sm_share", "nvml")
"""What this source speaks for; "nvml" last: who reads one state after another ends on it."""

RINGS = {"utilization_ring": "utilization", "power_ring": "power"}

INIT_DEADLINE_S = 30.0
"""Initialising wakes every GPU: seconds each where persistence mode is off."""

READ_DEADLINE_S = 5.0

PROC = Path("/proc")
PCI = Path("/sys/bus/pci/devices")


class NvmlSource:
    """Source of ``gpu``, ``gpm``, ``ring``, ``gpu_*``, ``sm_share`` and ``xid`` observations."""

    name = "nvml"
    period_s = 0.5

    def __init__(self, *, proc: Path = PROC, pci: Path = PCI) -> None:
        self.deadline_s = INIT_DEADLINE_S
        self._pci = pci
        self._session = Session(proc=proc, pci=pci)
        self._health = Every(SLOW_S)
        self._states: dict[tuple[str, str | None], SourceState] = {}
        self._reads = 0
        self._cpu_s = 0.0
        self._lag_s = 0.0
        self._polled: float | None = None

    @property
    def restart_wanted(self) -> bool:
        """Only a new process can load the library of another driver version."""
        return self._session.code == "LIB_RM_VERSION_MISMATCH"

    def poll(self, now: float) -> list[Observation]:
        """Read what is due. Never raises for what the driver does."""
        started = time.thread_time()
        if self._polled is not None:
            self._lag_s = max(0.0, now - self._polled - self.period_s)
        self._polled = now
        session = self._session
        out: list[Observation] = []
        try:
            if session.due(now):
                self.deadline_s = INIT_DEADLINE_S
                session.connect(now)
                self.deadline_s = READ_DEADLINE_S
            if session.open:
                out += self._read(now)
        except NvmlError as error:
            session.lose(error, now)
        self._cpu_s += time.thread_time() - started
        return out + self._report(now)

    def close(self) -> None:
        """Leave the driver library."""
        self._session.close()

    def describe(self) -> dict[str, Any]:
        """See :func:`describe`."""
        return describe(self._pci)

    def _read(self, now: float) -> list[Observation]:
        """One round over the GPUs. Raises NvmlError if the library is gone."""
        session = self._session
        events = session.xids.read(time.time())
        out = list(events)
        health_due = self._health.due(now) or bool(events)
        for gpu in session.gpus.values():
            if gpu.lost:
                continue
            try:
                out += gpu.poll(now)
                if health_due and not gpu.lost:
                    out += gpu.health(now, self._xid_figures(gpu.device.uuid))
            except NvmlError as error:
                if error.code not in LOST:
                    raise
                gpu.lose(error.code)
        session.settle(now)
        self._reads += 1
        return out

    def _xid_figures(self, uuid: str) -> dict[str, int]:
        xids = self._session.xids
        figures = {"xid_errors": xids.counts[uuid]} if uuid in xids.counts else {}
        return figures | ({"last_xid": xids.last[uuid]} if uuid in xids.last else {})

    # What the source says of itself

    def _report(self, now: float) -> list[Observation]:
        """States per GPU where a source is not up, then the state of each source as a whole."""
        out: list[Observation] = []
        for source in SOURCES:
            states = self._device_states(source)
            for device, (up, why, remedy) in states:
                key = (source, device.uuid)
                missing = device.missing.get(source, []) if up else []
                if not up or missing or key in self._states:
                    state = self._states.setdefault(key, SourceState(source, uuid=device.uuid))
                    note = device.notes.get(source, "") if missing else ""
                    extra = {"missing": missing} if missing else {}
                    out += state.report(now, up, why or note, remedy, **extra)
            out += self._report_whole(source, [state for _, state in states], now)
        return out

    def _device_states(self, source: str) -> list[tuple[Device, State]]:
        if not self._session.open:
            return []
        devices = [
            device for gpu in self._session.gpus.values() for device in (gpu.device, *gpu.instances)
        ]
        return [(d, d.states[source]) for d in devices if source in d.states]

    def _report_whole(self, source: str, states: list[State], now: float) -> list[Observation]:
        """Up if any device gives it."""
        session = self._session
        if not session.open:
            up, (why, remedy) = False, session.why
        elif source == "nvml":
            up, why, remedy = self._all_gpus(states)
        elif not states:
            return []  # not tried yet
        else:
            up, why, remedy = next((s for s in states if s[0]), states[0])
        figures = self._figures() if source == "nvml" else self._ring_figures(source)
        state = self._states.setdefault((source, None), SourceState(source))
        return state.report(now, up, why, remedy, **figures)

    def _all_gpus(self, states: list[State]) -> State:
        """The library answers; not up only if no GPU does. One that cannot be named by a UUID has
        no state of its own, and is told here."""
        up = any(s[0] for s in states)
        for index, code in self._session.unreadable.items():
            why, remedy = explain_lost(code)
            return up, f"GPU {index}: {why}", remedy
        return states[0] if states and not up else (up, "", "")

    def _figures(self) -> dict[str, Any]:
        gpus = self._session.gpus.values()
        return {
            "period_s": self.period_s,
            "lag_s": round(self._lag_s, 3),
            "cpu_s": round(self._cpu_s, 3),
            "reads": self._reads,
            "failures": sum(d.failures for g in gpus for d in (g.device, *g.instances)),
        }

    def _ring_figures(self, source: str) -> dict[str, Any]:
        ring = RINGS.get(source)
        if ring is None:
            return {}
        lost = sum(gpu.rings.lost_s[ring] for gpu in self._session.gpus.values())
        return {"lost_s": round(lost, 3)}


def describe(pci: Path = PCI) -> dict[str, Any]:
    """Versions and GPUs for a recording's header; ``error`` and ``remedy`` if NVML does not answer.

    Keys: ``driver``, ``nvml``, ``cuda`` ("13.0"), ``nvidia_ml_py``, ``gpus`` (as ``gpu_info``).
    """
    session = Session(proc=PROC, pci=pci)
    out: dict[str, Any] = {}
    bindings = bindings_version()
    if bindings is not None:
        out["nvidia_ml_py"] = bindings
    try:
        session.connect(time.time())
        out |= _versions()
        out["gpus"] = [_identity(gpu, pci) for gpu in session.gpus.values()]
    except NvmlError as error:
        session.lose(error, time.time())
        out["error"], out["remedy"] = session.why
    finally:
        session.close()
    return out


def _versions() -> dict[str, str]:
    out: dict[str, str] = {}
    for key, name in (
        ("driver", "nvmlSystemGetDriverVersion"),
        ("nvml", "nvmlSystemGetNVMLVersion"),
    ):
        with contextlib.suppress(NvmlError):
            out[key] = str(call(name))
    with contextlib.suppress(NvmlError):
        cuda = int(call("nvmlSystemGetCudaDriverVersion_v2"))
        out["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
    return out


def _identity(gpu: GpuReader, pci: Path) -> dict[str, Any]:
    try:
        found = info(gpu.device, 0.0, pci)
    except NvmlError as error:
        return {"uuid": gpu.device.uuid, "error": explain_lost(error.code)[0]}
    return {key: value for key, value in found.items() if key not in ("t", "kind")}
