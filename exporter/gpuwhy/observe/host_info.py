"""The host in a few words, for the head of a recording."""

from __future__ import annotations

import os
import platform
import resource
from pathlib import Path
from typing import Any

import psutil

from gpuwhy.observe import cgroup
from gpuwhy.observe.procfs import exists, read_text

_CONTAINER_SIGNS = ("/.dockerenv", "/run/.containerenv", "/run/secrets/kubernetes.io")


def describe_host(cgroup_mount: str = "/sys/fs/cgroup") -> dict[str, Any]:
    """Name, kernel, size, and whether we look at it from inside a container. Absent is unknown."""
    values = {
        "hostname": platform.node() or None,
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "distribution": _distribution(),
        "cpus": psutil.cpu_count(),
        "cores": psutil.cpu_count(logical=False),
        "cpu_model": _cpu_model(),
        "memory": psutil.virtual_memory().total,
        "container": in_container(),
        "cgroup_version": cgroup.version(Path(cgroup_mount)),
    }
    return {name: value for name, value in values.items() if value is not None}


def describe_limits() -> dict[str, Any]:
    """What our own observing is limited to: CPUs that we may use, files that we may open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {"cpus_allowed": len(os.sched_getaffinity(0)), "open_files": files}


def describe_software() -> dict[str, Any]:
    """The Python that observes."""
    return {"python": platform.python_version(), "psutil": psutil.__version__}


def in_container() -> bool:
    """Are we ourselves in a container?"""
    if any(exists(Path(sign)) for sign in _CONTAINER_SIGNS) or os.environ.get("container"):  # noqa: SIM112 - systemd's name
        return True
    first = read_text("/proc/1/cgroup") or ""
    return any(word in first for word in ("docker", "kubepods", "containerd", "libpod", "lxc"))


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _cpu_model() -> str | None:
    text = read_text("/proc/cpuinfo") or ""
    names = (line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line)
    return next(names, None)
