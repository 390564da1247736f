"""Who holds a GPU, and what share of its multiprocessors each process had.

Drivers list impossible processes now and then (PID 0, PID 2^32 - 1, processes that are gone), and
old bindings mix PID and memory up. A PID counts if such a process exists; memory, if it fits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpuwhy.observe import namespaces
from gpuwhy.observe.cadence import Every
from gpuwhy.observe.nvml_device import EMPTY, SENTINELS, Device
from gpuwhy.observe.nvml_messages import explain_refusal
from gpuwhy.observe.nvml_sample import MOST_BYTES, memory_info
from gpuwhy.observe.observation import Observation

LISTS = (  # the first that names a process gives its type
    ("nvmlDeviceGetMPSComputeRunningProcesses", "mps"),
    ("nvmlDeviceGetComputeRunningProcesses", "compute"),
    ("nvmlDeviceGetGraphicsRunningProcesses", "graphics"),
)
COMPUTE_BEFORE_R510 = "nvmlDeviceGetComputeRunningProcesses_v2"

UNSEEN_S = 5.0
"""GPU memory held by nobody in sight for this long means that we cannot see who."""

UNSEEN_BYTES = 512 * 2**20

SELDOM_S = 5.0
"""How often the lists are read that seldom hold a job's process."""

ALONE_S = 6.0
"""How often SM shares are read where there is nobody to share with: they are averages since the
last read, so none is lost."""

OTHER_NAMESPACE = (
    "GPU memory is in use, but the driver shows no process that exists here: "
    "gpuwhy runs in a PID namespace of its own",
    "share the host's PID namespace (hostPID: true in Kubernetes, --pid=host in Docker)",
)
MOST_PIDS = 2**31
CANNOT_BE = "the driver lists processes that cannot be (PID {}); they are left out"
NO_SUCH_PROCESS = (
    "the driver lists only processes that do not exist: library and driver do not fit together",
    "install nvidia-ml-py as new as the driver (pip install -U nvidia-ml-py), restart gpuwhy",
)


class ProcessReader:
    """Processes and SM shares of one GPU, or processes of one MIG instance."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self._unseen_since: float | None = None
        self._newest_us = 0  # time stamp of the newest utilisation sample read
        self._holders: set[int] = set()
        self._seldom, self._sharing = Every(SELDOM_S), Every(ALONE_S)
        self._last: dict[str, list[Any]] = {}  # what the other lists held

    def processes(self, device: Device, t: float) -> list[Observation]:
        """Who holds memory on the device; nothing if no list could be read."""
        info = memory_info(device)
        total = min(int(info.total), MOST_BYTES) if info is not None else MOST_BYTES
        found: dict[int, dict[str, Any]] = {}
        refused, listed = "", 0
        impossible: set[int] = set()
        seldom = self._seldom.due(device.now)
        for name, kind in LISTS:
            if kind == "compute":
                entries, code = self._list(device, name)
                refused = "" if code in EMPTY else code
            else:
                if seldom:
                    self._last[name], _ = self._list(device, name)
                entries = self._last.get(name, [])
            listed += len(entries)
            for entry in entries:
                if self.exists(entry.pid):
                    found.setdefault(int(entry.pid), _process(entry, kind, total))
                elif not 0 < entry.pid < MOST_PIDS:
                    impossible.add(int(entry.pid))
        if refused and not found:
            device.say("gpu_processes", False, *explain_refusal(refused, virtual=device.virtual))
            return []
        device.missing["gpu_processes"] = ["pid"] if impossible else []
        device.notes["gpu_processes"] = CANNOT_BE.format(
            ", ".join(map(str, sorted(impossible)[:4]))
        )
        self._judge(device, bool(found), listed, info)
        if found.keys() != self._holders:
            self._holders, self._newest_us = set(found), 0  # what was before is not their share
        return [
            {
                "t": t,
                "kind": "gpu_processes",
                "uuid": device.uuid,
                "processes": [found[pid] for pid in sorted(found)],
            }
        ]

    def _list(self, device: Device, name: str) -> tuple[list[Any], str]:
        entries, code = device.ask(name)
        if code == "FUNCTION_NOT_FOUND" and name == LISTS[1][0]:
            entries, code = device.ask(COMPUTE_BEFORE_R510)
        return list(entries or ()), code

    def shares(self, device: Device, t: float) -> list[Observation]:
        """SM share by process since the last sample read; nothing if none is newer.

        The driver averages over all samples after the given time stamp; given 0, over its whole
        buffer of 14 s, with processes that are gone.
        """
        if not self._sharing.due(device.now) and len(self._holders) <= 1:
            return []
        since = self._newest_us if t - 10 < self._newest_us * 1e-6 <= t else int((t - 1.0) * 1e6)
        entries, code = device.ask("nvmlDeviceGetProcessUtilization", since, key=())
        if entries is None and code not in EMPTY:
            why = explain_refusal(code, mig=device.mig_enabled, virtual=device.virtual)
            device.say("sm_share", False, *why)
            return []
        device.say("sm_share", True)
        recent = [e for e in entries or () if since < e.timeStamp <= (t + 1.0) * 1e6]
        if not recent:
            return []
        self._newest_us = max(int(e.timeStamp) for e in recent)
        shares = [
            [int(e.pid), e.smUtil / 100.0, min(e.memUtil, 100) / 100.0]
            for e in recent
            if self.exists(e.pid) and e.smUtil <= 100
        ]
        dt = (self._newest_us - since) * 1e-6
        return [
            {"t": t, "kind": "sm_share", "uuid": device.uuid, "dt": dt, "shares": sorted(shares)}
        ]

    def exists(self, pid: int) -> bool:
        """Is there such a process in our PID namespace?"""
        return 0 < pid < MOST_PIDS and (self.proc / str(pid)).exists()

    def _judge(self, device: Device, any_seen: bool, listed: int, info: Any) -> None:
        """Say that the list is up, unless the GPU is held by nobody in sight for a while."""
        now, at_home = device.now, namespaces.in_host_pids(self.proc)
        # Without version 2 "used" holds the driver's own reserve.
        used = int(info.used) if info is not None and hasattr(info, "reserved") else 0
        hidden = not any_seen and (listed > 0 if at_home else used > UNSEEN_BYTES)
        if not hidden:
            self._unseen_since = None
        elif self._unseen_since is None or now < self._unseen_since:
            self._unseen_since = now
        if self._unseen_since is not None and now - self._unseen_since >= UNSEEN_S:
            device.say("gpu_processes", False, *(NO_SUCH_PROCESS if at_home else OTHER_NAMESPACE))
        else:
            device.say("gpu_processes", True)


def _process(entry: Any, kind: str, total: int) -> dict[str, Any]:
    out: dict[str, Any] = {"pid": int(entry.pid), "type": kind}
    memory = entry.usedGpuMemory  # None or a sentinel where the driver does not know
    if memory is not None and memory not in SENTINELS and 0 <= memory <= total:
        out["memory"] = int(memory)
    return out
