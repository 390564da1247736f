"""A host in a folder: healthy as it is made, and one change away from each thing that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpuwhy.doctor_checks.host import Host
from gpuwhy.observe.observation import Observation

T = 1796050000.0
INITIAL = {"pid": "pid:[4026531836]", "cgroup": "cgroup:[4026531835]"}
FULL = "000001ffffffffff"

FILES = {
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  x\n",
    "proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: NVIDIA H200\n",
    "dev/nvidiactl": "",
    "proc/self/status": f"Name:\tgpuwhy\nCapEff:\t{FULL}\n",
    "proc/self/schedstat": "1000 2000 30\n",
    "proc/self/mountinfo": "22 27 0:21 / /proc rw,relatime - proc proc rw\n",
    "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "proc/sys/kernel/yama/ptrace_scope": "1\n",
    "proc/4242/environ": "",
    "proc/4242/maps": "7f00 r-xp /usr/lib/libpython3.12.so.1.0\n",
    "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "etc/docker/daemon.json": '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}',
}

SOURCES = [
    "nvml",
    "gpm",
    "utilization_ring",
    "power_ring",
    "gpu_processes",
    "sm_share",
    "processes",
    "stacks",
    "cgroup",
    "nccl_ras",
]

RANK = {
    "pid": 4242,
    "role": "rank",
    "run": "job",
    "rank": 0,
    "world_size": 2,
    "python": "3.12",
    "script": "train.py",
    "name": "python",
}

VERSIONS = {
    ("docker", "version", "--format", "{{.Server.Version}}"): "28.2.2",
    ("docker", "compose", "version", "--short"): "2.40.3",
}


def source(name: str, up: bool = True, **more: Any) -> Observation:
    """The last word of a source."""
    return {"t": T, "kind": "source", "source": name, "up": up, **more}


def down(name: str, **more: Any) -> Observation:
    """A source that is down, with its reason and remedy."""
    return source(name, False, why=f"{name} is down", remedy=f"mend {name}", **more)


def observations(*changed: Observation, without: Sequence[str] = ()) -> list[Observation]:
    """What a trial sees of a healthy host; ``changed`` comes later, so it holds."""
    seen: list[Observation] = [source(name) for name in SOURCES]
    seen += [
        {"t": T, "kind": "gpu_info", "uuid": "GPU-a", "gpu": 0, "name": "NVIDIA H200"},
        {"t": T, "kind": "gpu_processes", "uuid": "GPU-a", "processes": [{"pid": 4242}]},
        {"t": T, "kind": "processes", "processes": [RANK]},
        {"t": T, "kind": "stack", "pid": 4242, "frames": [["train", "/a/train.py", 3]]},
        {"t": T, "kind": "nccl", "port": "28028", "communicators": [{"hash": "1", "size": 2}]},
    ]
    return [o for o in seen if o["kind"] not in without] + list(changed)


def host(
    root: Path,
    *changed: Observation,
    files: dict[str, str | None] | None = None,
    links: dict[str, str] | None = None,
    without: Sequence[str] = (),
    **more: Any,
) -> Host:
    """A healthy host below ``root``, but for what is changed; a file of None is missing."""
    for name, text in {**FILES, **(files or {})}.items():
        if text is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for name, target in {**INITIAL, **(links or {})}.items():
        path = root / "proc/self/ns" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    given: dict[str, Any] = {
        "uid": 0,
        "system": "Linux",
        "machine": "x86_64",
        "kernel": "6.8.0",
        "cores": 16,
        "allowed": 16,
        "now": lambda: T,
        "synchronised": lambda: True,
        "which": lambda name: f"/usr/bin/{name}",
        "tool": lambda command: VERSIONS.get(tuple(command)),
        "port_free": lambda port: True,
        "free_bytes": lambda path: 50 << 30,
        "can_open": lambda path: True,
        "reads_memory": lambda: "process_vm_readv",
        "py_spy": lambda: ("/opt/gpuwhy/bin/py-spy", "0.4.3"),
    }
    return Host(root=root, seen=observations(*changed, without=without), **{**given, **more})
