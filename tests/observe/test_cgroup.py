"""Control groups, version 1 and 2: limits up the tree, from in and outside of containers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.observe.proc_tree import files

from gpuwhy.observe import cgroup, procfs

PRESSURE = (
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n"
)
V2 = {
    "cgroup.controllers": "cpu memory",
    "cgroup.procs": "1\n",
    "slice/cgroup.type": "domain\n",
    "slice/cgroup.procs": "",
    "slice/cpu.max": "200000 100000\n",
    "slice/cpu.stat": "usage_usec 9\nnr_periods 50\nnr_throttled 40\nthrottled_usec 3000000\n",
    "slice/memory.max": "8000\n",
    "slice/memory.current": "7000\n",
    "slice/job/cgroup.type": "domain\n",
    "slice/job/cgroup.procs": "41\n42\n",
    "slice/job/cpu.max": "max 100000\n",
    "slice/job/cpu.stat": "usage_usec 1500000\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
    "slice/job/cpuset.cpus.effective": "0-3,8\n",
    "slice/job/memory.max": "max\n",
    "slice/job/memory.current": "5000\n",
    "slice/job/memory.events": "low 0\nhigh 12\nmax 0\noom 2\noom_kill 1\n",
    "slice/job/cpu.pressure": PRESSURE,
    "slice/job/io.pressure": PRESSURE,
}


def seen(pid: int, text: str, proc: Path, mount: Path) -> dict[str, Any] | None:
    group = cgroup.find(pid, cgroup.memberships(text), proc, mount)
    return None if group is None else cgroup.observe(group, [pid], 100.0)


def test_version_2_with_limits_above(tmp_path: Path) -> None:
    mount = files(tmp_path / "cgroup", V2)
    assert seen(42, "0::/slice/job\n", tmp_path / "proc", mount) == {
        "t": 100.0,
        "kind": "cgroup",
        "path": "/slice/job",
        "version": 2,
        "pids": [42],
        "quota_cores": 2.0,  # the slice's: it is the tightest, so its throttling counts
        "nr_periods": 50,
        "nr_throttled": 40,
        "throttled_s": 3.0,
        "usage_s": 1.5,
        "memory_max": 8000,
        "memory_current": 7000,  # of the slice, which holds the limit
        "memory_high_events": 12,
        "oom_kills": 1,
        "psi": {"cpu_some": 2.5, "cpu_full": 0.5, "io_some": 2.5, "io_full": 0.5},
        "cpuset_cores": 5,
    }


def test_version_2_where_the_memory_controller_ends_above(tmp_path: Path) -> None:
    """A group made by hand below a slice has no memory files of its own."""
    own = ("memory.max", "memory.current", "memory.events")
    content = {name: V2[name] for name in V2 if not name.endswith(tuple(f"job/{n}" for n in own))}
    above = {"slice/memory.events": "high 3\noom_kill 4\n", "slice/memory.high": "max\n"}
    found = seen(42, "0::/slice/job\n", tmp_path, files(tmp_path / "cgroup", content | above))
    assert found is not None
    assert (found["memory_max"], found["memory_current"]) == (8000, 7000)
    assert (found["memory_high_events"], found["oom_kills"]) == (3, 4)


def test_version_2_counts_where_the_group_is_held_back(tmp_path: Path) -> None:
    """The kernel counts ``high`` in the group that sets memory.high and above, not below it."""
    above = {"slice/memory.events": "high 30\noom_kill 9\n", "slice/memory.high": "6000\n"}
    own = {"slice/job/memory.high": "max\n"}
    found = seen(42, "0::/slice/job\n", tmp_path, files(tmp_path / "cgroup", V2 | above | own))
    assert found is not None
    assert (found["memory_high_events"], found["oom_kills"]) == (30, 1)


def test_the_tightest_quota_holds(tmp_path: Path) -> None:
    mount = files(tmp_path / "cgroup", {**V2, "slice/job/cpu.max": "50000 100000\n"})
    found = seen(42, "0::/slice/job\n", tmp_path, mount)
    assert found is not None
    assert found["quota_cores"] == 0.5
    assert found["nr_periods"] == 0  # its own counters


def test_no_quota_is_said_as_such(tmp_path: Path) -> None:
    mount = files(tmp_path / "cgroup", {**V2, "slice/cpu.max": "max 100000\n"})
    found = seen(42, "0::/slice/job\n", tmp_path, mount)
    assert found is not None
    assert found["unlimited"] is True
    assert not {"quota_cores", "nr_periods", "throttled_s"} & found.keys()


def test_what_cannot_be_read_is_absent(tmp_path: Path) -> None:
    mount = files(tmp_path / "cgroup", {"cgroup.procs": "", "job/cgroup.procs": "42\n"})
    found = seen(42, "0::/job\n", tmp_path, mount)
    assert found is not None
    assert found.keys() == {"t", "kind", "path", "version", "pids", "unlimited"}


def test_a_group_that_does_not_list_the_process_is_not_taken(tmp_path: Path) -> None:
    mount = files(tmp_path / "cgroup", V2)
    assert seen(99, "0::/slice/job\n", tmp_path / "proc", mount) is None
    assert seen(42, "", tmp_path / "proc", mount) is None


def test_private_namespace_is_passed_through_the_process_own_root(tmp_path: Path) -> None:
    ours = files(tmp_path / "cgroup", {"cgroup.procs": "1\n", "cgroup.type": "domain\n"})
    files(
        tmp_path / "proc/42/root/sys/fs/cgroup",
        {"cgroup.type": "domain\n", "cgroup.procs": "42\n", "cpu.max": "100000 100000\n"},
    )
    found = seen(42, "0::/../docker-abc.scope\n", tmp_path / "proc", ours)
    assert found is not None
    assert found["path"] == "/../docker-abc.scope"
    assert found["quota_cores"] == 1.0
    assert found["hidden_parents"] is True


V1 = {
    "cpu,cpuacct/release_agent": "",
    "cpu,cpuacct/cgroup.procs": "1\n",
    "cpu,cpuacct/docker/c1/cgroup.procs": "42\n",
    "cpu,cpuacct/docker/c1/cpu.cfs_quota_us": "150000\n",
    "cpu,cpuacct/docker/c1/cpu.cfs_period_us": "100000\n",
    "cpu,cpuacct/docker/c1/cpu.stat": "nr_periods 9\nnr_throttled 8\nthrottled_time 7000000000\n",
    "cpuacct/docker/c1/cgroup.procs": "42\n",
    "cpuacct/docker/c1/cpuacct.usage": "2500000000\n",
    "memory/docker/c1/cgroup.procs": "42\n",
    "memory/docker/c1/memory.usage_in_bytes": "5000\n",
    "memory/docker/c1/memory.limit_in_bytes": "9223372036854771712\n",
    "memory/docker/c1/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
    "cpuset/docker/c1/cgroup.procs": "42\n",
    "cpuset/docker/c1/cpuset.effective_cpus": "0-1\n",
}
V1_TEXT = "5:cpu,cpuacct:/docker/c1\n4:memory:/docker/c1\n3:cpuset:/docker/c1\n0::/\n"


def test_version_1(tmp_path: Path) -> None:
    mount = files(tmp_path / "cgroup", V1)
    assert seen(42, V1_TEXT, tmp_path, mount) == {
        "t": 100.0,
        "kind": "cgroup",
        "path": "/docker/c1",
        "version": 1,
        "pids": [42],
        "quota_cores": 1.5,
        "nr_periods": 9,
        "nr_throttled": 8,
        "throttled_s": 7.0,
        "usage_s": 2.5,
        "memory_current": 5000,
        "oom_kills": 3,
        "cpuset_cores": 2,
    }


def test_version_1_in_a_container_whose_mount_begins_below_the_root(tmp_path: Path) -> None:
    moved = {name.replace("/docker/c1/", "/"): text for name, text in V1.items()}
    del moved["cpu,cpuacct/release_agent"]
    found = seen(42, V1_TEXT, tmp_path, files(tmp_path / "cgroup", moved))
    assert found is not None
    assert found["quota_cores"] == 1.5
    assert found["hidden_parents"] is True


def test_a_version_1_group_is_named_by_the_controller_that_has_one() -> None:
    text = "4:memory:/job\n1:cpu:/\n0::/\n"
    assert cgroup.path_of(cgroup.memberships(text)) == "/job"
    assert cgroup.path_of(cgroup.memberships("1:cpu:/\n4:memory:/\n")) == "/"


def test_version_of_a_mount(tmp_path: Path) -> None:
    assert cgroup.version(files(tmp_path / "2", {"cgroup.controllers": ""})) == 2
    assert cgroup.version(files(tmp_path / "1", {"cpu/tasks": ""})) == 1
    assert cgroup.version(tmp_path / "none") is None


def limited(name: str, limits: tuple[tuple[str, str, str], ...]) -> Iterator[Path]:
    """A real group with a limit (parent, file, value), in the version that there is."""
    for parent, file, value in limits:
        group = Path(parent) / f"gpuwhy-test-{os.getpid()}-{name}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / file).write_text(value)
        except OSError:
            group.rmdir()
            continue
        yield group
        group.rmdir()
        return
    pytest.skip("no control group with such a limit can be made here")


@pytest.fixture
def limited_group() -> Iterator[Path]:
    """A CPU quota of 0.3 cores."""
    v1 = ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "30000")
    yield from limited("cpu", (v1, ("/sys/fs/cgroup", "cpu.max", "30000 100000")))


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A memory limit of 64 MiB."""
    v1 = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", str(64 << 20))
    yield from limited("memory", (v1, ("/sys/fs/cgroup", "memory.max", str(64 << 20))))


def test_a_process_that_is_really_killed_for_want_of_memory(small_group: Path) -> None:
    """Its parent, in the same group, lives on: a DataLoader's worker is lost like this."""
    if (small_group / "memory.swap.max").exists():
        (small_group / "memory.swap.max").write_text("0")
    greedy = "import os\nif os.fork() == 0: bytearray(300 << 20)\nelse: os.wait(); input()\n"
    code = f"import os\nopen({str(small_group / 'cgroup.procs')!r}, 'w').write('0')\n{greedy}"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        try:
            found, deadline = None, time.monotonic() + 30.0
            while not (found and found.get("oom_kills")) and time.monotonic() < deadline:
                time.sleep(0.1)
                text = procfs.read_text(f"/proc/{process.pid}/cgroup") or ""
                found = seen(process.pid, text, Path("/proc"), Path("/sys/fs/cgroup"))
        finally:
            process.kill()
    assert found is not None
    assert found["oom_kills"] == 1
    assert found["memory_max"] == 64 << 20
    assert 0 < found["memory_current"] <= 64 << 20


def test_a_really_throttled_process(limited_group: Path) -> None:
    """The quota, its throttled periods, and that the run delay counts the time throttled."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            (limited_group / "cgroup.procs").write_text(str(process.pid))
            time.sleep(0.3)
            text = procfs.read_text(f"/proc/{process.pid}/cgroup") or ""
            mount = Path("/sys/fs/cgroup")
            began, waited = time.monotonic(), procfs.read_run_delay(f"/proc/{process.pid}")
            first = seen(process.pid, text, Path("/proc"), mount)
            time.sleep(2.0)
            last = seen(process.pid, text, Path("/proc"), mount)
            delay = procfs.read_run_delay(f"/proc/{process.pid}")
            passed = time.monotonic() - began
        finally:
            process.kill()
    assert first is not None
    assert last is not None
    assert last["quota_cores"] == pytest.approx(0.3)
    periods = last["nr_periods"] - first["nr_periods"]
    assert periods >= 10
    assert last["nr_throttled"] - first["nr_throttled"] > periods / 2
    assert waited is not None
    assert delay is not None
    assert (delay - waited) / passed > 0.4  # 0.7 on an idle machine
