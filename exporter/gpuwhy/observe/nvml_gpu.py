"""Everything read of one physical GPU and its MIG instances, each thing at its own pace."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from gpuwhy.observe.cadence import Every
from gpuwhy.observe.nvml_device import Device
from gpuwhy.observe.nvml_gpm import Gpm
from gpuwhy.observe.nvml_health import health, reasons
from gpuwhy.observe.nvml_info import info, instance_info, instances
from gpuwhy.observe.nvml_limits import LimitReader
from gpuwhy.observe.nvml_messages import MIG, UNIFIED, VIRTUAL, explain_lost
from gpuwhy.observe.nvml_processes import ProcessReader
from gpuwhy.observe.nvml_ring_reader import RingReader
from gpuwhy.observe.nvml_sample import instance_sample, sample
from gpuwhy.observe.observation import Observation

RINGS_S = PROCESSES_S = 1.0
LIMITS_S = 2.0
SLOW_S = 10.0
INFO_S = 60.0

EXPECTED = ("utilization", "power_w", "sm_mhz", "temperature_c", "reasons", "memory_used")
"""Fields of ``gpu`` whose absence is worth a word."""

NOT_OF_INSTANCES = {
    "utilization_ring": "none; GPM stands in for utilisation on Hopper and newer",
    "power_ring": "none: power is measured of the whole card",
    "sm_share": "none: give each job an instance of its own, and nothing is shared",
}
"""What a MIG instance does not have, and what helps."""

NOTHING = 3
"""Fields of a sample that says nothing: t, kind, uuid."""


class Changes:
    """Lets an observation through if it says something new, or after ``SLOW_S``."""

    def __init__(self) -> None:
        self._last: Observation = {}

    def news(self, observation: Observation) -> list[Observation]:
        before, now = self._last, observation["t"]
        same = {**before, "t": now} == observation
        if same and before["t"] <= now < before["t"] + 0.9 * SLOW_S:
            return []
        self._last = observation
        return [observation]


class GpuReader:
    """The readers of one GPU; they outlive a reconnection to the driver (``attach``)."""

    def __init__(self, device: Device, *, since: float, proc: Path, pci: Path) -> None:
        self.device = device
        self.instances: list[Device] = []
        self.lost = ""  # the code with which it was lost
        self.topology: list[dict[str, Any]] = []
        self.rings = RingReader(since)
        self._proc, self._pci = proc, pci
        self._gpms: list[Gpm] = []
        self._processes: dict[str, ProcessReader] = {}
        self._limits, self._limit_changes = LimitReader(), Changes()
        self._health: dict[str, Changes] = {}
        self._identity: Observation = {}
        self._reasons: object = None
        self._start_over()

    def attach(self, device: Device) -> None:
        """Go on with a fresh handle after the library was initialised again."""
        self.device, self.lost = device, ""
        self._start_over()

    def lose(self, code: str) -> None:
        """The GPU answers no more: say so of every source."""
        self.lost = code
        for device in (self.device, *self.instances):
            for source in ("nvml", *device.states):
                device.say(source, False, *explain_lost(code))

    def poll(self, now: float) -> list[Observation]:
        """What is due. Raises NvmlError if the GPU or the library is gone."""
        for device in (self.device, *self.instances):
            device.begin(now)
        out: list[Observation] = []
        if self._slow.due(now):
            self._refresh_instances()
        if self._info.due(now):
            out += self._who(now)
        of_gpu = sample(self.device, time.time())
        of_instances = [instance_sample(i, of_gpu) for i in self.instances]
        if len(of_gpu) == NOTHING:
            self.lose("UNKNOWN" if self.device.unknown else "NO_ANSWER")
            return []
        if self._energy.due(now):
            self._put_energy(of_gpu)
        out += [of_gpu, *of_instances]
        for gpm in self._gpms:
            out += gpm.read()
        if self._rings.due(now):
            out += self.rings.read(self.device)
        out += self._changes(of_gpu, now)
        out += self._holders(now)
        self._judge(of_gpu)
        return out

    def health(self, now: float, xids: dict[str, int]) -> list[Observation]:
        """``gpu_health`` of the GPU and its instances, with the Xid figures of the GPU."""
        out: list[Observation] = []
        for device in (self.device, *self.instances):
            state = health(device, now) | (xids if device is self.device else {})
            out += self._health.setdefault(device.uuid, Changes()).news(state)
        return out

    def close(self) -> None:
        """Free what the driver holds for us."""
        for gpm in self._gpms:
            gpm.close()
        self._gpms = []

    def _start_over(self) -> None:
        self.close()
        self.instances = []
        self._gpms = [Gpm(self.device)]
        self._slow, self._energy = Every(SLOW_S), Every(SLOW_S)
        self._info, self._rings = Every(INFO_S), Every(RINGS_S)
        self._holding, self._limiting = Every(PROCESSES_S), Every(LIMITS_S)
        self._reasoning, self._reason_change = Every(SLOW_S), Every(1.0)

    def _refresh_instances(self) -> None:
        """Follow a MIG configuration that changes; a new instance starts anew."""
        found = instances(self.device)
        if [i.uuid for i in found] == [i.uuid for i in self.instances]:
            return
        for gpm in self._gpms[1:]:
            gpm.close()
        self.instances = found
        shared = [i.gpu_instance for i in found]
        self._gpms[1:] = [Gpm(i, alone=shared.count(i.gpu_instance) == 1) for i in found]
        self._info.last = None

    def _who(self, now: float) -> list[Observation]:
        self._identity = info(self.device, now, self._pci)
        if self.topology:
            self._identity["topology"] = self.topology
        return [
            self._identity,
            *(instance_info(i, self._identity, now) for i in self.instances),
        ]

    def _put_energy(self, of_gpu: Observation) -> None:
        millijoules = self.device.get("nvmlDeviceGetTotalEnergyConsumption")  # 3 to 17 ms
        if millijoules is not None and millijoules < 2**62:
            of_gpu["energy_j"] = round(millijoules * 1e-3, 3)

    def _changes(self, of_gpu: Observation, now: float) -> list[Observation]:
        """Limits and reasons: when due and when something changed."""
        out: list[Observation] = []
        if self._limiting.due(now):
            limits = self._limits.read(self.device, now)
            for news in self._limit_changes.news(limits):
                out += [news, *({**news, "uuid": i.uuid} for i in self.instances)]
        changed = of_gpu.get("reasons") != self._reasons and self._reason_change.due(now)
        self._reasons = of_gpu.get("reasons")
        if self._reasoning.due(now) or changed:
            out += reasons(self.device, now)
        return out

    def _holders(self, now: float) -> list[Observation]:
        """Processes of each device. A GPU in MIG mode runs nothing outside its instances."""
        if not self._holding.due(now):
            return []
        out: list[Observation] = []
        for device in self.instances or [self.device]:
            reader = self._processes.setdefault(device.uuid, ProcessReader(self._proc))
            out += reader.processes(device, time.time())
        whole = self._processes.setdefault(self.device.uuid, ProcessReader(self._proc))
        return out + whole.shares(self.device, time.time())

    def _judge(self, of_gpu: Observation) -> None:
        """The state of source "nvml" on this GPU, and what its instances have from it."""
        device = self.device
        device.say("nvml", True)
        device.missing["nvml"] = [name for name in EXPECTED if name not in of_gpu]
        device.notes["nvml"] = self._note()
        for instance in self.instances:
            instance.say("nvml", True)
            for source, remedy in NOT_OF_INSTANCES.items():
                instance.say(source, False, MIG, remedy)

    def _note(self) -> str:
        """Why this GPU does not give what others do."""
        if self.device.mig_enabled:
            return MIG
        if self.device.virtual:
            return VIRTUAL
        return UNIFIED if self._identity.get("unified_memory") else ""
