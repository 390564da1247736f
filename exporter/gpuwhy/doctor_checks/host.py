"""The host as the checks see it: a tree of files, a few questions, and a short trial of watching.

Everything that a check may touch is a field, so a test gives it a folder and plain functions.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuwhy.observe.observation import Observation

TOOL_DEADLINE_S = 5.0
_CAPABILITIES = re.compile(r"^CapEff:\s*([0-9a-f]{1,16})$", re.MULTILINE)


def run_tool(command: Sequence[str]) -> str | None:
    """What a command prints; None where it is missing, fails or does not end in time."""
    try:
        done = subprocess.run(
            list(command), capture_output=True, text=True, timeout=TOOL_DEADLINE_S, check=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip()


def port_free(port: int) -> bool:
    """Whether a server could listen on the port of the loopback interface."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def clock_synchronised() -> bool | None:
    """Whether the kernel keeps the clock in step (``adjtimex(2)``); None if it does not say."""
    buffer = ctypes.create_string_buffer(512)  # a zeroed timex: modes 0 only reads
    try:
        state = ctypes.CDLL(None).adjtimex(buffer)
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != 5  # TIME_ERROR


def free_bytes(path: Path) -> int:
    """Bytes that a user may still write below the path."""
    return shutil.disk_usage(path).free


def can_open(path: Path) -> bool:
    """Whether the kernel lets us open a file; nothing is read."""
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return False
    return True


def reads_memory() -> str:
    """The way in which a process's memory can be read, tried on ourselves in the order of py-spy's:
    ``process_vm_readv(2)``, else ``/proc/PID/mem``; "" where neither works."""
    text = ctypes.create_string_buffer(b"seen")
    if _by_call(text):
        return "process_vm_readv"
    return "/proc/PID/mem" if _by_file(text) else ""


def _by_call(text: ctypes.Array[ctypes.c_char]) -> bool:
    copy = ctypes.create_string_buffer(len(text))
    local = (ctypes.c_void_p * 2)(ctypes.addressof(copy), len(text))  # struct iovec
    remote = (ctypes.c_void_p * 2)(ctypes.addressof(text), len(text))
    try:
        call = ctypes.CDLL(None, use_errno=True).process_vm_readv
    except (OSError, AttributeError):
        return False
    call.restype = ctypes.c_ssize_t
    flags = ctypes.c_ulong(0)
    done = call(os.getpid(), local, ctypes.c_ulong(1), remote, ctypes.c_ulong(1), flags)
    return bool(done == len(text))


def _by_file(text: ctypes.Array[ctypes.c_char]) -> bool:
    try:
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            return os.pread(memory.fileno(), len(text), ctypes.addressof(text)) == text.raw
    except OSError:
        return False


@dataclass(frozen=True)
class Host:
    """``seen`` holds the observations of a trial run of the observer, the newest last."""

    root: Path = Path("/")
    seen: Sequence[Observation] = ()
    uid: int = field(default_factory=os.geteuid)
    system: str = field(default_factory=platform.system)
    machine: str = field(default_factory=platform.machine)
    kernel: str = field(default_factory=platform.release)
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    allowed: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    now: Callable[[], float] = time.time
    synchronised: Callable[[], bool | None] = clock_synchronised
    which: Callable[[str], str | None] = shutil.which
    tool: Callable[[Sequence[str]], str | None] = run_tool
    port_free: Callable[[int], bool] = port_free
    free_bytes: Callable[[Path], int] = free_bytes
    can_open: Callable[[Path], bool] = can_open
    reads_memory: Callable[[], str] = reads_memory
    py_spy: Callable[[], tuple[str, str] | None] = lambda: None  # path, version

    def path(self, name: str) -> Path:
        """A path below the root of the tree: ``path("/proc/stat")``."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> str | None:
        """The text of a file; None where it is missing or refused."""
        try:
            return self.path(name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def link(self, name: str) -> str | None:
        """Where a link points, such as ``pid:[4026531836]``; None where it cannot be read."""
        try:
            return str(self.path(name).readlink())
        except OSError:
            return None

    def glob(self, folder: str, pattern: str) -> list[Path]:
        """Matching paths in a folder, which may be missing."""
        try:
            return sorted(self.path(folder).glob(pattern))
        except OSError:
            return []

    def sources(self, name: str) -> list[Observation]:
        """The last word of a source about itself, as a whole and on each GPU; down ones first."""
        last = {o.get("uuid"): o for o in self.kind("source") if self._is_own(o, name)}
        return sorted(last.values(), key=lambda o: bool(o["up"]))

    def refusals(self, name: str) -> dict[int, Observation]:
        """The processes that a source cannot serve, by PID."""
        last = {o["pid"]: o for o in self.kind("source") if o["source"] == name and "pid" in o}
        return {pid: o for pid, o in last.items() if not o["up"]}

    @staticmethod
    def _is_own(observation: Observation, name: str) -> bool:
        return observation["source"] == name and "pid" not in observation

    def kind(self, kind: str) -> Iterator[Observation]:
        """The observations of one kind, in their order."""
        return (o for o in self.seen if o["kind"] == kind)

    def gpus(self) -> dict[str, Observation]:
        """The last ``gpu_info`` of each GPU, by UUID."""
        return {o["uuid"]: o for o in self.kind("gpu_info")}

    def ranks(self) -> list[dict[str, Any]]:
        """The training processes in sight, from the last process table."""
        tables = list(self.kind("processes"))
        table = tables[-1]["processes"] if tables else []
        return [process for process in table if process.get("role") == "rank"]

    def has_capability(self, bit: int) -> bool | None:
        """Whether this process holds a capability (``capabilities(7)``), effective."""
        held = _CAPABILITIES.search(self.read("/proc/self/status") or "")
        return bool(int(held[1], 16) >> bit & 1) if held else None
