"""Reading /proc by hand: the files of one process, as plain values.

psutil opens several files for one answer, and a job's hundred processes are looked at every second.
A file that is gone or may not be read gives None.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICK = 1.0 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
MOST_CPUS = 1 << 16
"""Eight times what any kernel is built for."""
LONGEST_FILE = 16 << 20
"""Bytes read of any file: /proc/PID/maps of a large job is about half a megabyte."""

_FRAMEWORK = re.compile(
    rb"/libtorch_(?:cpu|python)\.so|/_jax\.so|/xla_extension\.|/libjax_common\.so"
    rb"|/libtensorflow_framework|/_pywrap_tensorflow|/libpaddle\.so|/paddle/[^\n]*/libphi"
)
_PYTHON_LIB = re.compile(rb"/(?:lib)?python(3\.\d+)[a-z]*[/.]")
_PYTHON_EXE = re.compile(r"^(?:python|pypy)(\d(?:\.\d+)?)?[a-z]*$")


_IO = re.compile(rb"^(rchar|read_bytes|write_bytes):\s*(\d{1,20})$", re.MULTILINE)
_IO_NAMES = {b"read_bytes": "read_bytes", b"write_bytes": "write_bytes", b"rchar": "read_chars"}
_SWITCHES = re.compile(
    rb"^(voluntary_ctxt_switches|nonvoluntary_ctxt_switches):\s*(\d{1,20})$", re.MULTILINE
)
_SWITCHES_NAMES = {
    b"voluntary_ctxt_switches": "voluntary",
    b"nonvoluntary_ctxt_switches": "involuntary",
}
_NAMESPACE_PIDS = re.compile(rb"^NSpid:((?:[ \t]+\d{1,10}){1,32})$", re.MULTILINE)
_CPUS_ALLOWED = re.compile(rb"^Cpus_allowed_list:\s*(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stat:
    """The fields of ``/proc/PID/stat`` that are of use; times are seconds of CPU."""

    name: str
    state: str
    ppid: int
    session: int
    cpu_s: float
    threads: int
    start: int  # clock ticks after boot: with the PID, the identity of a process
    rss: int  # bytes
    processor: int | None = None  # CPU on which it last ran


def read_bytes(path: str | os.PathLike[str]) -> bytes | None:
    """A file's content, or None where it is gone or may not be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        chunks: list[bytes] = []
        size = 0
        while size < LONGEST_FILE and (chunk := os.read(descriptor, 65536)):
            chunks.append(chunk)
            size += len(chunk)
        return b"".join(chunks)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def read_small(path: str) -> bytes | None:
    """The same for a file of /proc that the kernel gives whole in one read: half the calls."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, 16384)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def read_text(path: str | os.PathLike[str]) -> str | None:
    """The same as text; bytes that are no UTF-8 are replaced."""
    content = read_bytes(path)
    return None if content is None else content.decode(errors="replace")


def pids(proc: str) -> set[int]:
    """All processes in sight."""
    try:
        with os.scandir(proc) as entries:
            return {int(entry.name) for entry in entries if entry.name.isdigit()}
    except OSError:
        return set()


def boot_time(proc: str) -> float:
    """Unix seconds at which the host booted, or 0.0 where it is not told."""
    found = re.search(r"^btime ([0-9]{1,20})\b", read_text(f"{proc}/stat") or "", re.MULTILINE)
    return float(found[1]) if found else 0.0


def booted_at() -> float:
    """Unix seconds at which the host booted, by the clock as it is set now."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def read_stat(base: str) -> Stat | None:
    """``base`` is /proc/PID or /proc/PID/task/TID; None also for a zombie: it has ended."""
    return parse_stat(read_small(f"{base}/stat") or b"")


def parse_stat(content: bytes) -> Stat | None:
    """The name stands in parentheses and may hold any byte, parentheses and spaces too."""
    opening, closing = content.find(b"("), content.rfind(b")")
    fields = content[closing + 2 :].split()
    if opening < 0 or len(fields) < 22 or fields[0] in (b"Z", b"X"):
        return None
    numbers = [number(fields[i]) for i in (1, 3, 11, 12, 17, 19, 21)]
    if None in numbers:
        return None
    ppid, session, user, system, threads, start, rss = (n or 0 for n in numbers)
    return Stat(
        name=content[opening + 1 : closing].decode(errors="replace"),
        state=fields[0].decode(errors="replace"),
        ppid=ppid,
        session=session,
        cpu_s=(user + system) * TICK,
        threads=threads,
        start=start,
        rss=rss * PAGE,
        processor=number(fields[36]) if len(fields) > 36 else None,
    )


def read_run_delay(base: str) -> float | None:
    """Seconds for which the thread was runnable but not running (kernel: sched-stats.rst).

    They are added when it next runs, and include the time for which its group was throttled
    (measured on Linux 6.18: a busy thread under a quota of 0.3 cores reads 0.7 s/s).
    """
    words = (read_small(f"{base}/schedstat") or b"").split()
    delay = number(words[1]) if len(words) == 3 else None
    return None if delay is None else delay / 1e9


def read_io(base: str) -> dict[str, int] | None:
    """``/proc/PID/io``: needs the right to trace the process."""
    found = _IO.findall(read_small(f"{base}/io") or b"")
    return {_IO_NAMES[name]: int(value) for name, value in found} or None


def read_status(base: str) -> dict[str, int]:
    """Of ``/proc/PID/status``: context switches of the main thread so far (``voluntary``,
    ``involuntary``), and the number of CPUs that it is allowed (``affinity``, cpusets included)."""
    content = read_small(f"{base}/status") or b""
    switches = _SWITCHES.findall(content, max(0, len(content) - 512))  # they stand at its end
    found = {_SWITCHES_NAMES[name]: int(value) for name, value in switches}
    cpus = _CPUS_ALLOWED.search(content)
    if cpus is not None:
        found["affinity"] = len(parse_cpu_list(cpus[1].decode(errors="replace")))
    return found


def read_namespace_pids(base: str) -> tuple[int, ...]:
    """The PID that the process has in each PID namespace that it is in, ours first."""
    found = _NAMESPACE_PIDS.search(read_small(f"{base}/status") or b"")
    return tuple(map(int, found[1].split())) if found else ()


def local_addresses(proc: str) -> frozenset[str]:
    """The IP addresses of our network namespace; empty where they cannot be read."""
    four = re.findall(r"\|-- (\S+)\n(?=\s+/32 host LOCAL)", read_text(f"{proc}/net/fib_trie") or "")
    six = (line.split()[0] for line in (read_text(f"{proc}/net/if_inet6") or "").splitlines())
    packed = (bytes.fromhex(word) for word in six if re.fullmatch("[0-9a-f]{32}", word))
    return frozenset([*four, *(socket.inet_ntop(socket.AF_INET6, word) for word in packed)])


def read_argv(base: str) -> list[str]:
    """The command line; empty for a kernel thread and for a process that has ended."""
    content = read_bytes(f"{base}/cmdline") or b""
    return content.rstrip(b"\0").decode(errors="replace").split("\0") if content else []


def read_environ(base: str, names: Iterable[str]) -> dict[str, str] | None:
    """The named variables that the process was started with; None where that is refused."""
    content = read_bytes(f"{base}/environ")
    if content is None:
        return None
    wanted = {name.encode() for name in names}
    pairs = (entry.partition(b"=") for entry in content.split(b"\0"))
    return {k.decode(): v.decode(errors="replace") for k, _, v in pairs if k in wanted}


@dataclass(frozen=True, slots=True)
class Loaded:
    """What ``/proc/PID/maps`` tells."""

    framework: bool  # a training framework is loaded
    python: str | None  # "3.12"


def read_loaded(base: str) -> Loaded | None:
    """None where that is refused."""
    content = read_bytes(f"{base}/maps")
    if content is None:
        return None
    version = _PYTHON_LIB.search(content)
    return Loaded(
        framework=_FRAMEWORK.search(content) is not None,
        python=version[1].decode() if version else None,
    )


def read_python(base: str, argv: list[str]) -> str | None:
    """The version of the Python that a process runs ("3.12", or less if its name tells less), ""
    where it is Python of an unknown version, None where it is none.

    The name of its executable decides. Where that may not be read, the command line does.
    """
    try:
        name = Path(f"{base}/exe").readlink().name.removesuffix(" (deleted)")
    except OSError:
        name = Path(argv[0]).name if argv else ""
    found = _PYTHON_EXE.match(name)
    return None if found is None else found[1] or ""


def number(text: str | bytes) -> int | None:
    """A whole number, 0 or more, of at most 20 digits (2**64 has so many); None for anything else.

    ``int`` takes more: signs, underscores, digits of every script, thousands of them. A container's
    cgroup files are its own to write.
    """
    digits = text.encode(errors="replace") if isinstance(text, str) else text
    digits = digits.strip()
    return int(digits) if digits.isdigit() and len(digits) <= 20 else None


def parse_cpu_list(text: str) -> set[int]:
    """``0-3,8`` -> {0, 1, 2, 3, 8}; empty for anything else."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        begin, end = number(first), number(last or first)
        if begin is None or end is None or end > MOST_CPUS:
            return set()
        cpus.update(range(begin, end + 1))
    return cpus


def parse_pressure(resource: str, text: str) -> dict[str, float]:
    """A PSI file -> cumulative seconds: ``{"cpu_some": ..., "cpu_full": ...}``."""
    found = re.findall(r"^(some|full) .*total=([0-9]{1,20})\b", text, re.MULTILINE)
    return {f"{resource}_{tasks}": int(total) / 1e6 for tasks, total in found}


def exists(path: Path) -> bool:
    """Whether a path is there, as far as we may look."""
    try:
        return path.exists()
    except OSError:
        return False
