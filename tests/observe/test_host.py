"""The host, from the files of a real one and from this one."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.observe.proc_tree import files

from gpuwhy.observe import host
from gpuwhy.observe.host import HostSource
from gpuwhy.observe.host_info import describe_host, describe_limits

PROC = {
    "stat": (
        "cpu  1000 20 300 40000 50 6 7 8 900 0\n"
        "cpu0 500 10 150 20000 25 3 4 4 450 0\n"
        "cpu1 500 10 150 20000 25 3 3 4 450 0\n"
        "intr 123456 0 9 0\nctxt 234567\nbtime 1700000000\nprocesses 99\n"
        "procs_running 3\nprocs_blocked 1\n"
    ),
    "loadavg": "3.19 2.08 1.09 5/300 1234\n",
    "meminfo": (
        "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    9000 kB\n"
        "SwapTotal:       2000 kB\nSwapFree:         500 kB\nHugePages_Total:       0\n"
    ),
    "vmstat": "pgpgin 8\npswpin 2\npswpout 3\n",
    "diskstats": (
        "   7 0 loop0 10 0 80 0 0 0 0 0 0 0 0\n"
        " 259 0 nvme0n1 10 0 100 0 20 0 200 0 0 0 0\n"
        " 259 1 nvme0n1p1 10 0 100 0 20 0 200 0 0 0 0\n"
        "   8 0 sda 1 0 10 0 2 0 20 0 0 0 0\n"
        "   8 1 sda1 1 0 10 0 2 0 20 0 0 0 0\n"
        " 253 0 dm-0 1 0 10 0 2 0 20 0 0 0 0\n"
    ),
    "1/net/dev": (
        "Inter-|   Receive                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes packets\n"
        "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
        "  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n"
        "  ib0:  10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n"
        "docker0: 500 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
        "veth12ab: 500 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
        "eth0.7: 500 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
        "   br0: 500 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
        " vmbr1: 500 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
        "vlan10: 500 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
    ),
    "net/dev": "  eth0: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n",
    "pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n",
}
SYS = {
    "devices/system/node/online": "0-1\n",
    "devices/system/node/node0/cpulist": "0-3\n",
    "devices/system/node/node0/meminfo": "Node 0 MemTotal: 100 kB\nNode 0 MemFree: 40 kB\n",
    "devices/system/node/node1/cpulist": "4-7\n",
}


def test_a_whole_host(tmp_path: Path) -> None:
    proc, sys = files(tmp_path / "proc", PROC), files(tmp_path / "sys", SYS)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    page = os.sysconf("SC_PAGE_SIZE")
    observation, state = HostSource(proc=str(proc), sys=str(sys)).poll(100.0)
    assert state["up"] is True
    assert observation == {
        "t": 100.0,
        "kind": "host",
        "cpus": 2,
        "cpu_seconds": {
            "user": 1000 * tick,
            "nice": 20 * tick,
            "system": 300 * tick,
            "idle": 40000 * tick,
            "iowait": 50 * tick,
            "irq": 6 * tick,
            "softirq": 7 * tick,
            "steal": 8 * tick,
        },
        "interrupts": 123456,
        "context_switches": 234567,
        "running": 3,
        "blocked": 1,
        "load1": 3.19,
        "load5": 2.08,
        "load15": 1.09,
        "memory_total": 16000 * 1024,
        "memory_available": 9000 * 1024,
        "swap_total": 2000 * 1024,
        "swap_free": 500 * 1024,
        "swap_in": 2 * page,
        "swap_out": 3 * page,
        "disk_read_bytes": 110 * 512,
        "disk_write_bytes": 220 * 512,
        "network_receive_bytes": 1010,  # PID 1's: a container's own are 7
        "network_transmit_bytes": 2020,
        "psi": {"cpu_some": 1.5},
        "numa": [
            {"node": 0, "cpus": 4, "memory_total": 100 * 1024, "memory_free": 40 * 1024},
            {"node": 1, "cpus": 4},
        ],
    }


def test_missing_files_are_absent_values(tmp_path: Path) -> None:
    proc = files(tmp_path / "proc", {"loadavg": "1.00 2.00 3.00 1/2 3\n"})
    observation, state = HostSource(proc=str(proc), sys=str(tmp_path)).poll(1.0)
    assert observation == {"t": 1.0, "kind": "host", "load1": 1.0, "load5": 2.0, "load15": 3.0}
    assert state["up"] is False
    assert "stat cannot be read" in state["why"]
    assert state["remedy"]


@pytest.mark.parametrize(
    "parse",
    [
        host.parse_stat,
        host.parse_meminfo,
        host.parse_vmstat,
        host.parse_diskstats,
        host.parse_net_dev,
        host.parse_loadavg,
    ],
)
def test_an_empty_file_is_no_value(parse: object) -> None:
    assert callable(parse)
    assert parse("") == {}


def test_this_host_moves_on() -> None:
    source = HostSource()
    first = source.poll(time.time())[0]
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        pass
    last = source.poll(time.time())[0]
    assert last["cpus"] == os.cpu_count()
    assert sum(last["cpu_seconds"].values()) > sum(first["cpu_seconds"].values())
    assert 0 < last["memory_available"] < last["memory_total"]
    assert last["context_switches"] >= first["context_switches"]


def test_the_host_in_a_few_words() -> None:
    found = describe_host()
    assert found["cpus"] == os.cpu_count()
    assert found["kernel"] == os.uname().release
    assert found["memory"] > 1 << 28
    assert isinstance(found["container"], bool)
    assert describe_limits()["cpus_allowed"] == len(os.sched_getaffinity(0))
