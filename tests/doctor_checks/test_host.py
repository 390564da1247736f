"""The questions that the checks ask of a real host."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

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


def test_memory_of_a_process_can_be_read_by_the_same_call_as_py_spy_uses() -> None:
    assert host.reads_memory() is True


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
