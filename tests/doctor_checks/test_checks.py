"""Every check of the doctor: one host on which it passes, and at least one on which it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.doctor_checks.fixture import RANK, T, down, host, source

from gpuwhy.doctor import CHECKS, examine
from gpuwhy.doctor_checks.check import Result
from gpuwhy.doctor_checks.host import Host

CHECK = {check.name: check.look for check in CHECKS}

Make = Callable[[Path], Host]


def processes(**more: Any) -> dict[str, Any]:
    """A process table of one rank, changed."""
    return {"t": T, "kind": "processes", "processes": [{**RANK, **more}]}


NO_DRIVER = dict.fromkeys(
    (
        "proc/driver/nvidia/version",
        "proc/driver/nvidia/gpus/0000:01:00.0/information",
        "dev/nvidiactl",
    )
)
PCI = {
    "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
    "sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
}
FREE_THREADED = {"proc/4242/maps": "7f r-xp /usr/lib/libpython3.13t.so.1.0\n"}
NO_CAPABILITIES = {"proc/self/status": "CapEff:\t0000000000000000\n"}
GPU_KINDS = ("gpu_info", "gpu_processes")


def no_gpu(root: Path, *changed: Any, **more: Any) -> Host:
    """A host without driver or GPU."""
    files = {**NO_DRIVER, **more.pop("files", {})}
    return host(root, down("nvml"), *changed, files=files, without=GPU_KINDS, **more)


WRONG: dict[str, list[tuple[str, str, Make]]] = {
    "nvidia-driver": [
        ("failed", "no NVIDIA GPU in sight", no_gpu),
        ("failed", "is not loaded", lambda root: no_gpu(root, files=PCI)),
        ("failed", "/dev/nvidiactl", lambda root: host(root, files={"dev/nvidiactl": None})),
    ],
    "nvml": [
        ("not-applicable", "no driver", no_gpu),
        ("failed", "nvml is down", lambda root: host(root, down("nvml"))),
        ("degraded", "nvml is down", lambda root: host(root, down("nvml", uuid="GPU-b"))),
        ("failed", "did not answer", lambda root: host(root, without=("source",))),
        (
            "degraded",
            "GPU 1: lost",
            lambda root: host(root, source("nvml", why="GPU 1: lost", remedy="reset it")),
        ),
    ],
    "gpus-visible": [
        ("not-applicable", "no GPU driven", no_gpu),
        ("failed", "NVML shows none", lambda root: host(root, without=GPU_KINDS)),
        (
            "degraded",
            "1 of 2 GPUs",
            lambda root: host(root, files={"proc/driver/nvidia/gpus/0000:02:00.0/information": ""}),
        ),
    ],
    "gpm": [
        ("degraded", "gpm is down", lambda root: host(root, down("gpm", uuid="GPU-a"))),
        ("degraded", "nothing was heard", lambda root: host(root, without=("source",))),
        ("not-applicable", "no GPU", no_gpu),
    ],
    "utilization-ring": [
        ("degraded", "is down", lambda root: host(root, down("utilization_ring"))),
    ],
    "power-ring": [("degraded", "is down", lambda root: host(root, down("power_ring")))],
    "mig": [
        (
            "degraded",
            "1 MIG instances",
            lambda root: host(
                root, {"t": T, "kind": "gpu_info", "uuid": "MIG-1", "mig": "1/0", "gpu": 0}
            ),
        ),
        (
            "degraded",
            "MIG is enabled",
            lambda root: host(
                root, {"t": T, "kind": "gpu_limits", "uuid": "GPU-a", "mig_enabled": True}
            ),
        ),
        ("not-applicable", "no GPU", no_gpu),
    ],
    "gpu-processes": [
        (
            "failed",
            "another namespace: [4242]",
            lambda root: host(root, files={"proc/4242/environ": None, "proc/4242/maps": None}),
        ),
        (
            "degraded",
            "namespace of its own",
            lambda root: host(root, links={"pid": "pid:[4026532000]"}, without=("gpu_processes",)),
        ),
        ("degraded", "is down", lambda root: host(root, down("gpu_processes"))),
        ("not-applicable", "no GPU", no_gpu),
    ],
    "sm-share": [("degraded", "is down", lambda root: host(root, down("sm_share")))],
    "processes": [("failed", "is down", lambda root: host(root, down("processes")))],
    "py-spy": [
        ("failed", "not installed", lambda root: host(root, py_spy=lambda: None)),
        ("degraded", "0.3.14", lambda root: host(root, py_spy=lambda: ("/p", "0.3.14"))),
    ],
    "ptrace-rights": [
        (
            "failed",
            "ptrace_scope is 3",
            lambda root: host(root, files={"proc/sys/kernel/yama/ptrace_scope": "3\n"}),
        ),
        ("failed", "scope is 1", lambda root: host(root, files=NO_CAPABILITIES)),
        (
            "degraded",
            "no CAP_SYS_PTRACE",
            lambda root: host(
                root, files={**NO_CAPABILITIES, "proc/sys/kernel/yama/ptrace_scope": None}
            ),
        ),
    ],
    "memory-reads": [
        ("failed", "seccomp", lambda root: host(root, reads_memory=lambda: "")),
    ],
    "stacks": [
        (
            "failed",
            "4242 (train.py): stacks is down",
            lambda root: host(root, down("stacks", pid=4242), without=("stack",)),
        ),
        ("failed", "no stack was read", lambda root: host(root, without=("stack",))),
        (
            "degraded",
            "5 (b.py)",
            lambda root: host(
                root,
                {
                    "t": T,
                    "kind": "processes",
                    "processes": [RANK, {**RANK, "pid": 5, "script": "b.py"}],
                },
            ),
        ),
        ("not-applicable", "no training job", lambda root: host(root, without=("processes",))),
    ],
    "interpreter": [
        (
            "failed",
            "free-threaded",
            lambda root: host(root, files=FREE_THREADED, without=("stack",)),
        ),
        (
            "failed",
            "Python 3.19",
            lambda root: host(root, processes(python="3.19"), without=("stack",)),
        ),
        ("not-applicable", "no training job", lambda root: host(root, without=("processes",))),
    ],
    "environment": [
        (
            "degraded",
            "environ is refused",
            lambda root: host(root, can_open=lambda path: "environ" not in path.name),
        ),
        ("not-applicable", "no training job", lambda root: host(root, without=("processes",))),
    ],
    "nccl-ras": [
        ("degraded", "no answer", lambda root: host(root, without=("nccl",))),
        ("degraded", "is down", lambda root: host(root, down("nccl_ras"), without=("nccl",))),
        (
            "not-applicable",
            "several ranks",
            lambda root: host(root, processes(world_size=1), without=("nccl",)),
        ),
    ],
    "kernel": [
        ("failed", "Darwin", lambda root: host(root, system="Darwin")),
        ("degraded", "riscv64", lambda root: host(root, machine="riscv64")),
    ],
    "pid-namespace": [
        (
            "degraded",
            "namespace of its own",
            lambda root: host(root, links={"pid": "pid:[4026532000]"}),
        ),
    ],
    "hidepid": [
        (
            "degraded",
            "hidepid=invisible",
            lambda root: host(
                root,
                uid=1000,
                files={
                    "proc/self/mountinfo": "22 27 0:21 / /proc rw - proc proc rw,hidepid=invisible"
                },
            ),
        ),
    ],
    "cgroup": [
        ("degraded", "is down", lambda root: host(root, down("cgroup"))),
        (
            "failed",
            "is not there",
            lambda root: host(root, files={"sys/fs/cgroup/cgroup.controllers": None}),
        ),
        (
            "degraded",
            "namespace of its own",
            lambda root: host(root, links={"cgroup": "cgroup:[4026532001]"}),
        ),
    ],
    "psi": [
        ("degraded", "/proc/pressure", lambda root: host(root, files={"proc/pressure/cpu": None}))
    ],
    "schedstat": [
        ("degraded", "empty", lambda root: host(root, files={"proc/self/schedstat": "0 0 0\n"})),
        ("degraded", "missing", lambda root: host(root, files={"proc/self/schedstat": None})),
    ],
    "cpus": [("degraded", "1 of 16", lambda root: host(root, allowed=1))],
    "clock": [
        ("failed", "before 2025", lambda root: host(root, now=lambda: 1000.0)),
        ("degraded", "not kept in step", lambda root: host(root, synchronised=lambda: False)),
    ],
    "clock-source": [
        (
            "degraded",
            "hpet",
            lambda root: host(
                root,
                files={"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"},
            ),
        ),
    ],
    "docker": [
        ("degraded", "does not answer", lambda root: host(root, tool=lambda command: None)),
        ("not-applicable", "no docker", lambda root: host(root, which=lambda name: None)),
    ],
    "docker-compose": [
        ("degraded", "2.5.0", lambda root: host(root, tool=lambda command: "2.5.0")),
        ("degraded", "no docker compose", lambda root: host(root, tool=lambda command: "")),
        ("not-applicable", "no docker", lambda root: host(root, which=lambda name: None)),
    ],
    "nvidia-container-runtime": [
        (
            "failed",
            "not installed",
            lambda root: host(root, which=lambda n: None if n.startswith("nvidia") else "/x"),
        ),
        (
            "failed",
            "not set up",
            lambda root: host(root, files={"etc/docker/daemon.json": "no json"}),
        ),
        ("not-applicable", "no container engine", lambda root: host(root, which=lambda n: None)),
        ("not-applicable", "no driver", no_gpu),
    ],
    "ports": [
        (
            "degraded",
            "9090 (Prometheus)",
            lambda root: host(root, port_free=lambda port: port != 9090),
        ),
    ],
    "disk": [
        ("failed", "0.0 GiB", lambda root: host(root, free_bytes=lambda path: 1000)),
        ("degraded", "1.0 GiB", lambda root: host(root, free_bytes=lambda path: 1 << 30)),
    ],
}

CASES = [
    pytest.param(name, *case, id=f"{name}: {case[1]}")
    for name, cases in WRONG.items()
    for case in cases
]


def test_every_check_has_a_host_that_it_does_not_pass() -> None:
    complains = {
        name
        for name, cases in WRONG.items()
        if any(state in ("failed", "degraded") for state, _, _ in cases)
    }
    assert complains == set(CHECK)


@pytest.mark.parametrize("name", CHECK)
def test_a_healthy_host_passes(tmp_path: Path, name: str) -> None:
    result = CHECK[name](host(tmp_path))
    assert result == Result("ok", result.found)


@pytest.mark.parametrize(("name", "state", "found", "make"), CASES)
def test_what_is_wrong_is_found(
    tmp_path: Path, name: str, state: str, found: str, make: Make
) -> None:
    result = CHECK[name](make(tmp_path))
    assert result.state == state
    assert found in result.found
    wrong = state in ("failed", "degraded")
    assert bool(result.lost) is wrong, "what is lost is said where something is"
    assert bool(result.remedy) is wrong, "and what mends it"


def test_cgroup_version_1_and_cdi_will_do(tmp_path: Path) -> None:
    made = host(
        tmp_path,
        files={
            "sys/fs/cgroup/cgroup.controllers": None,
            "sys/fs/cgroup/cpu/cpu.stat": "",
            "etc/docker/daemon.json": None,
            "etc/cdi/nvidia.yaml": "",
        },
    )
    assert CHECK["cgroup"](made) == Result("ok", "version 1")
    assert CHECK["nvidia-container-runtime"](made) == Result("ok", "CDI")


def test_every_job_is_told_with_its_own_reason(tmp_path: Path) -> None:
    jobs = [{**RANK, "pid": pid, "script": f"{pid}.py"} for pid in (4242, 5, 6)]
    refused = [
        source("stacks", False, pid=pid, why=f"{pid} is another user's", remedy="run as root")
        for pid in (4242, 5)
    ]
    refused.append(source("stacks", False, pid=6, why="6 is stopped", remedy="kill -CONT 6"))
    table = {"t": T, "kind": "processes", "processes": jobs}
    result = CHECK["stacks"](host(tmp_path, table, *refused, without=("stack",)))
    assert result.found == (
        "4242 (4242.py): 4242 is another user's; 5 (5.py): 5 is another user's; "
        "6 (6.py): 6 is stopped"
    )
    assert result.remedy == "run as root; kill -CONT 6"


def test_an_interpreter_whose_stacks_were_read_is_well(tmp_path: Path) -> None:
    """py-spy 0.4.3 came out before Python 3.15.0, and reads it."""
    for name, files, python in (("new", {}, "3.19"), ("free", FREE_THREADED, "3.13")):
        made = host(tmp_path / name, processes(python=python), files=files)
        assert CHECK["interpreter"](made) == Result("ok", python)


def test_the_second_way_of_reading_memory_will_do(tmp_path: Path) -> None:
    result = CHECK["memory-reads"](host(tmp_path, reads_memory=lambda: "/proc/PID/mem"))
    assert (result.state, "process_vm_readv is refused" in result.found) == ("ok", True)


def test_a_source_that_came_back_is_well(tmp_path: Path) -> None:
    made = host(tmp_path, down("gpm", uuid="GPU-a"), source("gpm", uuid="GPU-a"))
    assert CHECK["gpm"](made).state == "ok"


def test_this_very_host_is_examined_without_a_trial() -> None:
    findings = examine(Host())
    assert [name for name, _ in findings] == list(CHECK)
    assert not [name for name, result in findings if "check itself failed" in result.found]
