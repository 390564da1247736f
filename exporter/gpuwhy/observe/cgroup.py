"""The control group of a job: its limits, what they cost, and its memory and pressure.

Version 2 and version 1 (and the hybrid, where the controllers are version 1's) are read through one
small view. A limit may stand on the group itself or on any group above it: the tightest holds, and
its counters are those that count throttled periods.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.procfs import exists, number, parse_cpu_list, parse_pressure, read_text

UNLIMITED = 1 << 60
"""Version 1 writes a number near 2^63 where no memory limit is set."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group found in a mounted hierarchy. ``top`` is the mount: the walk upwards ends there."""

    path: str  # as /proc/PID/cgroup gives it: the name it is known by
    version: Literal[1, 2]
    cpu: Path
    cpu_top: Path
    memory: Path | None
    memory_top: Path | None
    cpuset: Path | None
    usage: Path | None  # version 1: the group of the cpuacct controller


def memberships(text: str) -> dict[str, str]:
    """Controller -> path of a ``/proc/PID/cgroup``; "" is version 2's single hierarchy."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            found[controller] = path
    return found


def path_of(members: dict[str, str]) -> str | None:
    """The path by which a group is known: in version 1 that of the first controller that has put
    the process into a group at all."""
    if "cpu" not in members:
        return members.get("")
    paths = [members.get(name, "/") for name in ("cpu", "memory", "cpuset", "cpuacct", "pids")]
    return next((path for path in paths if path != "/"), "/")


def find(pid: int, members: dict[str, str], proc: Path, mount: Path) -> Group | None:
    """The group of a process, or None where none is in sight.

    ``mount`` is our own ``/sys/fs/cgroup``. In a private cgroup namespace it does not reach the
    job's group: then that of the process itself, through ``/proc/PID/root``, does. A candidate is
    right if it lists the process.
    """
    for root in (mount, proc / str(pid) / "root/sys/fs/cgroup"):
        group = _find_v1(pid, members, root) if "cpu" in members else _find_v2(pid, members, root)
        if group is not None:
            return group
    return None


def _find_v2(pid: int, members: dict[str, str], root: Path) -> Group | None:
    path = members.get("")
    if path is None:
        return None
    for top in (root, root / "unified"):
        found = _listed(pid, path, top)
        if found is not None:
            return Group(path, 2, found, top, found, top, found, None)
    return None


def _find_v1(pid: int, members: dict[str, str], root: Path) -> Group | None:
    found: dict[str, tuple[Path, Path]] = {}
    for controller in ("cpu", "cpuacct", "memory", "cpuset"):
        top = root / controller
        if controller == "cpu" and not top.is_dir():
            top = root / "cpu,cpuacct"
        directory = _listed(pid, members.get(controller, "/"), top)
        if directory is not None:
            found[controller] = directory, top
    if "cpu" not in found:
        return None
    cpu, top = found["cpu"]
    memory, memory_top = found.get("memory", (None, None))
    cpuset, usage = found.get("cpuset", (None,))[0], found.get("cpuacct", (None,))[0]
    return Group(path_of(members) or "/", 1, cpu, top, memory, memory_top, cpuset, usage)


def _listed(pid: int, path: str, top: Path) -> Path | None:
    """The directory under ``top`` that stands for ``path`` and lists the process.

    In a container the mount begins somewhere below the true root: leading parts of the path are
    missing there, so ever shorter tails of it are tried, down to the mount itself.
    """
    parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..")]
    for skip in range(len(parts) + 1):
        directory = top.joinpath(*parts[skip:])
        procs = read_text(directory / "cgroup.procs") or ""
        if str(pid) in procs.split():
            return directory
    return None


def observe(group: Group, pids: list[int], now: float) -> Observation:
    """One ``cgroup`` observation; what cannot be read is absent."""
    observation: Observation = {
        "t": now,
        "kind": "cgroup",
        "path": group.path,
        "version": group.version,
        "pids": pids,
        **_cpu(group),
        **_memory(group),
        **_pressure(group),
    }
    cpus = _cpuset(group)
    if cpus is not None:
        observation["cpuset_cores"] = cpus
    if _is_nested(group):
        observation["hidden_parents"] = True
    return observation


def _cpu(group: Group) -> dict[str, Any]:
    """Quota and throttling of the tightest group from this one upwards, and this one's usage."""
    quotas = [
        (quota, directory)
        for directory in _upwards(group.cpu, group.cpu_top)
        if (quota := _quota(group.version, directory)) is not None
    ]
    fields: dict[str, Any] = {}
    if quotas:
        fields["quota_cores"], holder = min(quotas, key=lambda pair: pair[0])
        fields.update(_throttling(holder))
    elif group.cpu.is_dir():
        fields["unlimited"] = True
    usage = _usage(group)
    return fields if usage is None else {**fields, "usage_s": usage}


def _quota(version: int, directory: Path) -> float | None:
    """CPU quota in cores; None where the group sets none (or has no CPU controller)."""
    if version == 2:
        words = (read_text(directory / "cpu.max") or "").split()
    else:
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        words = [(read_text(directory / name) or "").strip() for name in names]
    quota, period = map(number, words) if len(words) == 2 else (None, None)
    return None if quota is None or not period else quota / period


def _throttling(directory: Path) -> dict[str, Any]:
    stat = _table(directory / "cpu.stat")
    fields: dict[str, Any] = {k: stat[k] for k in ("nr_periods", "nr_throttled") if k in stat}
    if "throttled_usec" in stat:
        fields["throttled_s"] = stat["throttled_usec"] / 1e6
    elif "throttled_time" in stat:
        fields["throttled_s"] = stat["throttled_time"] / 1e9
    return fields


def _usage(group: Group) -> float | None:
    if group.version == 2:
        usage = _table(group.cpu / "cpu.stat").get("usage_usec")
        return None if usage is None else usage / 1e6
    nanoseconds = _number(group.usage / "cpuacct.usage") if group.usage else None
    return None if nanoseconds is None else nanoseconds / 1e9


def _memory(group: Group) -> dict[str, Any]:
    if group.memory is None or group.memory_top is None:
        return {}
    groups = list(_upwards(group.memory, group.memory_top))
    fields: dict[str, int | None] = {}
    if group.version == 2:
        fields["memory_max"], holder = _lowest(groups, "memory.max")
        fields["memory_current"] = _number(holder / "memory.current")
        high = _lowest(groups, "memory.high")[1] / "memory.events"
        fields["memory_high_events"] = _table(high).get("high")
        kills = _nearest(groups, "memory.events") / "memory.events"
    else:
        fields["memory_max"], holder = _lowest(groups, "memory.limit_in_bytes")
        fields["memory_current"] = _number(holder / "memory.usage_in_bytes")
        kills = group.memory / "memory.oom_control"
    fields["oom_kills"] = _table(kills).get("oom_kill")
    return {name: value for name, value in fields.items() if value is not None}


def _lowest(groups: list[Path], name: str) -> tuple[int | None, Path]:
    """The lowest limit of this name and the group that sets it; without one, the nearest group in
    which it could be set."""
    limits = [
        (limit, directory)
        for directory in groups
        if (limit := _number(directory / name)) is not None and limit < UNLIMITED
    ]
    return min(limits, key=lambda pair: pair[0]) if limits else (None, _nearest(groups, name))


def _nearest(groups: list[Path], name: str) -> Path:
    """The first group that has the file: version 2 has a controller's files only where the group
    above hands the controller on."""
    return next((directory for directory in groups if exists(directory / name)), groups[0])


def _pressure(group: Group) -> dict[str, Any]:
    if group.version != 2:
        return {}
    psi: dict[str, float] = {}
    for resource in ("cpu", "memory", "io"):
        psi.update(parse_pressure(resource, read_text(group.cpu / f"{resource}.pressure") or ""))
    return {"psi": psi} if psi else {}


def _cpuset(group: Group) -> int | None:
    if group.cpuset is None:
        return None
    name = "cpuset.cpus.effective" if group.version == 2 else "cpuset.effective_cpus"
    return len(parse_cpu_list(read_text(group.cpuset / name) or "")) or None


def _is_nested(group: Group) -> bool:
    """Does the mount begin below the true root? Version 2's root alone has no ``cgroup.type``;
    version 1's alone has a ``release_agent``."""
    if group.version == 2:
        return exists(group.cpu_top / "cgroup.type")
    return not exists(group.cpu_top / "release_agent")


def _upwards(directory: Path, top: Path) -> Iterator[Path]:
    yield directory
    while directory != top and directory != directory.parent:
        directory = directory.parent
        yield directory


def _number(path: Path) -> int | None:
    return number(read_text(path) or "")


def _table(path: Path) -> dict[str, int]:
    """A file of ``name number`` lines."""
    table: dict[str, int] = {}
    for line in (read_text(path) or "").splitlines():
        name, _, value = line.partition(" ")
        count = number(value)
        if count is not None:
            table[name] = count
    return table


def version(mount: Path) -> int | None:
    """2 where the mount is version 2's alone, 1 for version 1 and hybrids, None without any."""
    if exists(mount / "cgroup.controllers"):
        return 2
    return 1 if exists(mount / "cpu") or exists(mount / "cpu,cpuacct") else None
