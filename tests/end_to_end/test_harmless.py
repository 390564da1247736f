"""Proof that a watched job is only read: every system call of ours that can reach into another
process is traced, with all our children, while a real job with workers is watched."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from bench.h200.job import free_port
from bench.h200.processes import end
from tests.observe.live_job import LiveJob

from gpuwhy.observe import pyspy

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

STOPS = ("ptrace", "process_vm_writev", "process_madvise", "process_mrelease", "perf_event_open")
"""Never called at all, whatever for: the first stops a thread, the next ones change its memory."""
SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
CHANGES = (
    *("setpriority", "ioprio_set", "sched_setaffinity", "sched_setattr", "sched_setparam"),
    *("sched_setscheduler", "prlimit64", "move_pages", "migrate_pages", "pidfd_open", "setns"),
)
"""Called of ourselves, if at all."""
OPENS = ("open", "openat", "openat2", "creat", "truncate")
TRACED = ",".join((*STOPS, *SIGNALS, *CHANGES, *OPENS, "execve", "process_vm_readv"))
CALL = re.compile(r"^\d+ +(\w+)\((.*)")
READ_ONLY = re.compile(r"\bO_RDONLY\b|\bO_PATH\b")


class Trace:
    """A command under strace. ``calls`` are those that it and its children have made so far."""

    def __init__(self, folder: Path, command: list[str], **environment: str) -> None:
        self.path, self.log = folder / "calls", folder / "log"
        strace = ["strace", "-f", "-qq", "--seccomp-bpf", "-s", "512", "-o", str(self.path)]
        settings = [f"-E{name}={value}" for name, value in environment.items()]
        with self.log.open("w") as log:
            self.child = subprocess.Popen(
                [*strace, "-e", f"trace=?{TRACED.replace(',', ',?')}", *settings, *command],
                stdout=log,
                stderr=log,
            )

    def calls(self) -> Iterator[tuple[str, str]]:
        """Name and arguments."""
        text = self.path.read_text(errors="replace") if self.path.exists() else ""
        yield from (match.groups() for line in text.splitlines() if (match := CALL.match(line)))  # type: ignore[misc]

    def has_read(self, pid: int) -> bool:
        """Whether memory of the process has been read."""
        return any(n == "process_vm_readv" and a.startswith(f"{pid},") for n, a in self.calls())

    def samplers(self, pid: int | None = None) -> list[str]:
        """The command lines of py-spy, of any process or of one."""
        lines = [a for n, a in self.calls() if n == "execve" and "py-spy" in a and '"--pid"' in a]
        return [line for line in lines if pid is None or f'"--pid", "{pid}"' in line]

    def wait(self, true: Callable[[], object], seconds: float = 120.0) -> None:
        until = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.2)

    def harm(self, job: set[int]) -> list[str]:
        """The calls that stop, change or signal one of the job's processes."""
        return [
            f"{name}({arguments}"
            for name, arguments in self.calls()
            if _harms(name, arguments, job)
        ]


def _harms(name: str, arguments: str, job: set[int]) -> bool:
    numbers = {int(number) for number in re.findall(r"(?<![\w/])-?\d+", arguments)}
    if name in STOPS:
        return True
    if name in SIGNALS or name in CHANGES:
        # A negative PID means a process group; signal 0 only asks whether somebody is there.
        asks = name in SIGNALS and arguments.split(")", maxsplit=1)[0].endswith(", 0")
        return not asks and not job.isdisjoint({abs(number) for number in numbers})
    if name in OPENS:
        ours = re.search(r"/proc/(\d+)/", arguments)
        return bool(ours and int(ours[1]) in job and not READ_ONLY.search(arguments))
    return False


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJob]:
    with LiveJob(tmp_path_factory.mktemp("job"), "--workers", "2") as job:
        yield job


def family(job: LiveJob) -> set[int]:
    """Every process and thread of the job."""
    found = [job.process, *job.process.children(recursive=True)]
    return {thread.id for process in found for thread in process.threads()}


def tracers(pids: set[int]) -> set[str]:
    """``TracerPid`` of each: 0 where nobody traces it."""
    status = (Path(f"/proc/{pid}/status").read_text() for pid in pids)
    return {text.partition("TracerPid:")[2].split()[0] for text in status}


def test_serve_only_reads(tmp_path: Path, job: LiveJob) -> None:
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "gpuwhy", "serve"]
    trace = Trace(tmp_path, command, GPUWHY_WEB_LISTEN_ADDRESS=address)
    pids = family(job)
    try:
        worker = job.process.children()[0].pid
        trace.wait(lambda: trace.has_read(job.pid) and trace.has_read(worker))
        trace.wait(lambda: any('"record"' in started for started in trace.samplers(job.pid)))
        assert any('"dump"' in started for started in trace.samplers(job.pid))
        assert tracers(pids) == {"0"}
        for server in psutil.Process(trace.child.pid).children():
            server.send_signal(signal.SIGTERM)
        trace.child.wait(60)
    finally:
        end([trace.child.pid], [trace.child])
    assert all('"--nonblocking"' in started for started in trace.samplers())
    assert trace.harm(pids) == []


@pytest.mark.parametrize("command", ["diagnose", "profile"])
def test_commands_only_read(tmp_path: Path, job: LiveJob, command: str) -> None:
    pids = family(job)
    options = {
        "diagnose": ["diagnose", "--for", "6s"],
        "profile": ["profile", "--pid", str(job.pid), "--for", "2s", str(tmp_path / "x.svg")],
    }
    trace = Trace(tmp_path, [sys.executable, "-m", "gpuwhy", *options[command]])
    try:
        trace.child.wait(120)
    finally:
        end([trace.child.pid], [trace.child])
    assert trace.has_read(job.pid), trace.log.read_text()
    assert trace.harm(pids) == []


def test_py_spy_as_others_run_it_is_caught(tmp_path: Path, job: LiveJob) -> None:
    """The same trace shows the stop that py-spy makes by default: the proof can fail."""
    trace = Trace(tmp_path, [str(pyspy.executable()), "dump", "--pid", str(job.pid)])
    try:
        trace.child.wait(60)
    finally:
        end([trace.child.pid], [trace.child])
    assert any(call.startswith("ptrace(") for call in trace.harm(family(job)))


def test_what_counts_as_harm() -> None:
    job = {100, 101}
    assert _harms("kill", "101, SIGSTOP) = 0", job)
    assert _harms("kill", "-100, SIGTERM) = 0", job)
    assert _harms("prlimit64", "100, RLIMIT_CORE, {rlim_cur=0}, NULL) = 0", job)
    assert _harms("openat", 'AT_FDCWD, "/proc/100/mem", O_RDWR|O_CLOEXEC) = 3', job)
    assert _harms("ptrace", "PTRACE_SEIZE, 7, NULL, 0) = 0", job)
    assert not _harms("kill", "101, 0) = 0", job)
    assert not _harms("kill", "7, SIGINT) = 0", job)
    assert not _harms("openat", 'AT_FDCWD, "/proc/100/maps", O_RDONLY|O_CLOEXEC) = 3', job)
    assert not _harms("openat", 'AT_FDCWD, "/proc/7/oom_score_adj", O_WRONLY) = 3', job)
