"""py-spy, the foreign program that reads Python stacks: found, and run without waiting for it.

Every capture is ``--nonblocking``: py-spy then only reads the job's memory (``process_vm_readv``)
and never stops a thread. Its default stops all of them (py-spy issue 872), ``--native`` costs a
second and excludes ``--nonblocking``, ``--gil`` hides the waits that we look for: none is used.
A capture is not given a lower priority either: on a busy host it would then be late just when the
job computes, and see too many waits.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

NEVER_BLOCK = ("--nonblocking", "--full-filenames")
_ENVIRONMENT = {"RUST_BACKTRACE": "0"}
_LOG = {"RUST_LOG": "py_spy=warn,py_spy::config=info,py_spy::stack_trace=off"}
"""A record's log: its settings, printed just before its clock starts, and each read that failed."""
_OUTPUT_BYTES = 64 << 20  # a capture larger than this is refused: it is no stack
_MESSAGE_BYTES = 64 << 10


class PySpyError(Exception):
    """py-spy is missing or does not run."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"{why}; {remedy}")
        self.why, self.remedy = why, remedy


def executable() -> Path:
    """The py-spy that was installed with us, never an older one on ``PATH``."""
    for path in _candidates():
        if path.is_file() and os.access(path, os.X_OK):
            return path
    raise PySpyError(
        f"py-spy is not installed beside {sys.executable}",
        f"install it: {sys.executable} -m pip install py-spy",
    )


def _candidates() -> Iterable[Path]:
    yield Path(sys.executable).parent / "py-spy"
    yield Path(sysconfig.get_path("scripts")) / "py-spy"
    with contextlib.suppress(metadata.PackageNotFoundError):
        for file in metadata.distribution("py-spy").files or ():
            if file.name == "py-spy":
                yield Path(str(file.locate()))
        # `pip install --target` keeps scripts beside the packages, and records another place.
        yield Path(str(metadata.distribution("py-spy").locate_file("bin/py-spy")))


@lru_cache(maxsize=4)
def version(path: Path) -> str:
    """What ``py-spy --version`` says, such as ``0.4.3``."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise PySpyError(
            f"{path} does not run ({error})",
            f"reinstall it: {sys.executable} -m pip install --force-reinstall py-spy",
        ) from error
    return done.stdout.split()[-1]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a finished capture left. ``written`` is when it wrote its data (UTC, within the kernel's
    clock tick, 1 to 10 ms early); ``cpu_s`` is the CPU time it used."""

    ok: bool
    data: bytes
    messages: str
    written: float
    cpu_s: float


class Capture:
    """One py-spy child, which writes into memory (a memfd): no disk, no pipe that could fill."""

    def __init__(
        self,
        arguments: Sequence[str | Path],
        data: int,
        *,
        to_stdout: bool,
        environment: Mapping[str, str] = _ENVIRONMENT,
    ) -> None:
        """Start it; ``data`` is the descriptor that it writes to, ours from here on.

        Raises OSError where no process can be started."""
        self.began = time.time()
        self._data = data
        self._messages = os.memfd_create("gpuwhy-py-spy-messages")
        try:
            self._child = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=data if to_stdout else self._messages,
                stderr=self._messages,
                pass_fds=() if to_stdout else (data,),
                env=environment,
                start_new_session=True,  # a Ctrl-C at the terminal is ours to pass on
            )
        except BaseException:
            self._close()
            raise

    @property
    def pid(self) -> int:
        """The child's PID, ours to signal until ``poll`` has returned its outcome."""
        return self._child.pid

    def poll(self) -> Outcome | None:
        """The outcome once the child has ended, else None; never waits. Ask no more after that."""
        try:
            pid, status, usage = os.wait4(self._child.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else reaped it: its cost is lost
            return self._outcome(ok=False, cpu_s=0.0)
        if pid == 0:
            return None
        self._child.returncode = os.waitstatus_to_exitcode(status)
        return self._outcome(ok=self._child.returncode == 0, cpu_s=usage.ru_utime + usage.ru_stime)

    def signal(self, number: signal.Signals) -> None:
        """SIGINT lets a record end now and write what it has."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child.pid, number)

    def terminate(self) -> None:
        """Ask the child to end at once; it still has to be polled."""
        self.signal(signal.SIGTERM)

    def _outcome(self, *, ok: bool, cpu_s: float) -> Outcome:
        if self._child.returncode is None:
            self._child.returncode = -1
        try:
            data, written = _contents(self._data, _OUTPUT_BYTES)
            messages, _ = _contents(self._messages, _MESSAGE_BYTES)
        finally:
            self._close()
        return Outcome(ok, data, messages.decode("utf-8", "replace"), written, cpu_s)

    def _close(self) -> None:
        for descriptor in (self._data, self._messages):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _contents(descriptor: int, limit: int) -> tuple[bytes, float]:
    status = os.fstat(descriptor)
    if status.st_size > limit:
        return b"", status.st_mtime
    return os.pread(descriptor, status.st_size, 0), status.st_mtime


def dump(path: Path, pid: int) -> Capture:
    """Start a snapshot of a process: stacks and locals of all threads, as JSON."""
    arguments: list[str | Path] = [
        path,
        "dump",
        "--json",
        "--locals",
        *NEVER_BLOCK,
        "--pid",
        str(pid),
    ]
    return Capture(arguments, os.memfd_create("gpuwhy-py-spy-dump"), to_stdout=True)


def record(path: Path, pid: int, hz: int, seconds: int) -> Capture:
    """Start sampling a process, waits included, for a Chrome trace of about ``seconds``."""
    data = os.memfd_create("gpuwhy-py-spy-record")
    target = Path(f"/proc/self/fd/{data}")
    arguments = _record_arguments(path, pid, hz, seconds, target, "chrometrace")
    environment = {**_ENVIRONMENT, **_LOG}
    return Capture([*arguments, "--threads"], data, to_stdout=False, environment=environment)


def record_tree(path: Path, pid: int, hz: int, seconds: int, output: Path, form: str) -> Capture:
    """Start sampling a process and all its descendants, waits included, into a file."""
    arguments = _record_arguments(path, pid, hz, seconds, output, form)
    nothing = os.memfd_create("gpuwhy-py-spy-none")
    return Capture([*arguments, "--subprocesses"], nothing, to_stdout=False)


def _record_arguments(
    path: Path, pid: int, hz: int, seconds: int, output: Path, form: str
) -> list[str | Path]:
    return [
        *(path, "record", *NEVER_BLOCK, "--idle", "--format", form, "--rate", str(hz)),
        *("--duration", str(seconds), "--pid", str(pid), "--output", output),
    ]


def stop(captures: Iterable[Capture], grace_s: float = 0.5) -> None:
    """End captures, ours only: SIGTERM, then SIGKILL for what is left after the grace."""
    left = list(captures)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for capture in left:
            capture.signal(number)
        deadline = time.monotonic() + grace_s
        while left and time.monotonic() < deadline:
            left = [capture for capture in left if capture.poll() is None]
            time.sleep(0.005)
