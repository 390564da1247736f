"""Faults of the driver, against a running exporter: survived, told, the rest goes on."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.rig import Rig

ONE_GPU = "GPU-standin-0"
OTHER_GPU = "GPU-standin-1"
SOURCE = Path(__file__).parents[1] / "standin_nvml/nvml.c"
CALLS = sorted(
    set(re.findall(r'ENTER\("(\w+)"', SOURCE.read_text()))
    | set(re.findall(r"^(?:NUMBER|PROCESSES)\((\w+),", SOURCE.read_text(), re.MULTILINE))
)


@pytest.fixture(scope="module")
def job(shared: Rig) -> Iterator[int]:
    yield shared.start("work").pid


@pytest.fixture
def host(shared: Rig, job: int) -> Iterator[Rig]:
    """Two GPUs, a job on the first; whatever a test breaks is whole again at its end."""
    shared.script(holds(job))
    shared.wait(lambda: healthy(shared, job), "GPUs and job in sight")
    yield shared
    shared.script(holds(job))
    shared.wait(lambda: healthy(shared, job), "all is well again")


def holds(pid: int) -> str:
    return f"process 0 {pid} 1073741824 compute\n"


def healthy(rig: Rig, pid: int) -> bool:
    return (
        rig.up("nvml")
        and all(power(rig, uuid) is not None for uuid in (ONE_GPU, OTHER_GPU))
        and rig.processes().get(pid, {}).get("role") == "rank"
    )


def power(rig: Rig, uuid: str) -> float | None:
    return rig.value("gpuwhy_gpu_temperature_celsius", uuid=uuid)


def test_a_call_that_hangs_is_told_and_comes_back(host: Rig, job: int) -> None:
    host.script(holds(job) + "hang nvmlDeviceGetTemperature")
    host.wait(lambda: not host.up("nvml"), "nvml is down")
    assert host.says("nvml did not answer for", "Remedy", "dmesg")
    host.goes_on()
    assert host.up("processes")


@pytest.mark.full
def test_a_call_that_hangs_for_long_costs_the_process_that_made_it(host: Rig, job: int) -> None:
    first = host.observer().pid
    host.script(holds(job) + "hang nvmlDeviceGetTemperature")
    host.wait(lambda: host.observer().pid != first, "a new observer")
    host.script(holds(job))


def test_a_gpu_is_lost_and_returns_while_the_other_goes_on(host: Rig, job: int) -> None:
    host.script(holds(job) + "lost 0")
    host.wait(lambda: power(host, ONE_GPU) is None, "the lost GPU has no values")
    assert power(host, OTHER_GPU) is not None
    host.wait(lambda: host.says("fallen off the bus", "drain the node"), "the sentence")
    assert host.value("gpuwhy_source_parts_down", source="nvml") == 1
    host.goes_on()


def test_the_driver_is_reloaded(host: Rig, job: int) -> None:
    host.script("fail nvmlInitWithFlags DRIVER_NOT_LOADED\nfail * UNINITIALIZED")
    host.wait(lambda: not host.up("nvml"), "nvml is down")
    host.wait(lambda: host.says("kernel driver is not loaded", "modprobe nvidia"), "the sentence")
    host.goes_on()


def test_the_devices_are_taken_from_the_container(host: Rig, job: int) -> None:
    """What `systemctl daemon-reload` does to a container under the systemd cgroup driver."""
    host.script(holds(job) + "fail * UNKNOWN\nfail nvmlDeviceGetCount_v2 UNKNOWN")
    host.wait(lambda: not host.up("nvml"), "nvml is down")
    assert host.says("Unknown Error", "restart the container")
    host.goes_on()


def test_a_new_observer_after_the_devices_were_taken(host: Rig, job: int) -> None:
    """What is open stays open: mostly the next process is the first to be refused."""
    host.script("fail nvmlInitWithFlags UNKNOWN")
    host.observer().kill()
    host.wait(lambda: not host.up("nvml") and host.says("Unknown Error"), "nvml is down")
    assert host.says("restart the container")
    host.wait(lambda: host.up("host"), "the rest is up")
    host.goes_on()


@pytest.mark.parametrize("pid", [0, 4294967295])
def test_processes_that_cannot_be(host: Rig, job: int, pid: int) -> None:
    host.script(f"{holds(job)}process 0 {pid} 1048576 compute\nshare 0 {pid} 300 300")
    host.goes_on()
    assert pid not in host.processes()
    assert healthy(host, job)
    missing = "gpuwhy_source_missing_fields"
    host.wait(lambda: host.value(missing, source="gpu_processes") == 1, "it is counted")
    assert host.says(f"processes that cannot be (PID {pid})")


def test_pid_and_memory_in_each_others_place(host: Rig, job: int) -> None:
    """Bindings of one version over a driver of another: fields stand where others belong."""
    host.script(f"process 0 1073741824 {job} compute")
    host.goes_on()
    assert 1073741824 not in host.processes()
    series = host.series()
    assert not any(dict(labels).get("pid") == "1073741824" for _, labels in series)
    host.wait(lambda: host.says("lists only processes that do not exist"), "it is told")
    assert host.value("gpuwhy_source_parts_down", source="gpu_processes") == 1


def test_sentinels_are_no_values(host: Rig, job: int) -> None:
    host.script(holds(job) + "set sentinels 1")
    host.wait(lambda: power(host, ONE_GPU) is None, "no temperature")
    host.goes_on()  # and with it that no sample is a sentinel
    assert (host.value("gpuwhy_source_missing_fields", source="nvml") or 0) >= 2, "on two GPUs"
    assert host.says(f"{ONE_GPU}: no", "temperature_c")


@pytest.mark.parametrize("call", CALLS[::12])
def test_a_call_fails(host: Rig, job: int, call: str) -> None:
    fail(host, job, call, "UNKNOWN")


def test_what_one_gpu_does_not_give_is_counted_and_named(host: Rig, job: int) -> None:
    host.script(holds(job) + "fail nvmlDeviceGetTemperature UNKNOWN 0\n"
                "fail nvmlDeviceGetTemperatureV UNKNOWN 0")  # fmt: skip
    missing = "gpuwhy_source_missing_fields"
    host.wait(lambda: host.value(missing, source="nvml") == 1, "it is counted")
    host.wait(lambda: power(host, ONE_GPU) is None, "and has no sample")
    assert power(host, OTHER_GPU) is not None
    assert host.says(f"{ONE_GPU}: no temperature_c", "Remedy")
    host.goes_on()
    host.script(holds(job))
    host.wait(lambda: host.value(missing, source="nvml") == 0, "it is there again")


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_every_call_fails_one_by_one(host: Rig, job: int) -> None:
    assert len(CALLS) > 55
    for code in ("NOT_SUPPORTED", "UNKNOWN"):
        for call in CALLS:
            fail(host, job, call, code)


def fail(host: Rig, job: int, call: str, code: str) -> None:
    """The exporter goes on, exports no made-up value, and is whole again afterwards."""
    host.script(f"{holds(job)}fail {call} {code}")
    time.sleep(1.5)
    host.goes_on()
    host.series()
    assert "Traceback" not in host.tail(), host.tail()
    host.script(holds(job))
