"""The questions that the checks ask of a real host."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwhy.doctor_checks import host


def test_a_tool_answers_or_is_none() -> None:
    assert host.run_tool([sys.executable, "-c", "print('well')"]) == "well"
    assert host.run_tool([sys.executable, "-c", "raise SystemExit(3)"]) is None
    assert host.run_tool(["/no/such/tool"]) is None


def test_a_port_is_free_or_taken() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        server.listen()
        assert not host.port_free(port)
    assert host.port_free(port)


def test_memory_of_a_process_can_be_read_in_the_ways_of_py_spy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert host.reads_memory() == "process_vm_readv"
    monkeypatch.setattr(host, "_by_call", lambda _: False)
    assert host.reads_memory() == "/proc/PID/mem"


SECCOMP = """
import ctypes, struct, sys
sys.path.insert(0, sys.argv[1])
from gpuwhy.doctor_checks.host import reads_memory
step = struct.Struct("HBBI").pack
code = step(0x20, 0, 0, 0) + step(0x15, 0, 1, 310)  # load the call's number; is it ours?
code += step(6, 0, 0, 0x00050001) + step(6, 0, 0, 0x7FFF0000)  # EPERM, else allow
program = ctypes.create_string_buffer(code)
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
filter = Filter(4, ctypes.addressof(program))
assert libc.prctl(22, 2, ctypes.byref(filter)) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
print(reads_memory())
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of the call is x86-64's")
def test_a_seccomp_filter_leaves_the_second_way() -> None:
    exporter = Path(host.__file__).parents[2]
    told = subprocess.run(
        [sys.executable, "-c", SECCOMP, exporter], capture_output=True, text=True, check=False
    )
    if told.returncode and "prctl(22" in told.stderr:
        pytest.skip("no seccomp filter can be set here")
    assert told.stdout.strip() == "/proc/PID/mem", told.stderr


def test_the_clock_and_the_disk_answer() -> None:
    assert host.clock_synchronised() in (True, False, None)
    assert host.free_bytes(Path.cwd()) >= 0


def test_a_file_can_be_opened_or_not(tmp_path: Path) -> None:
    assert host.can_open(Path("/proc/self/environ"))
    assert not host.can_open(tmp_path / "missing")


def test_capabilities_are_read_from_the_kernel() -> None:
    found = host.Host().has_capability(19)
    assert found is not None
    if os.geteuid() != 0:
        assert found is False
