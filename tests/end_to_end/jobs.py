"""Training jobs of others for the stack in containers to watch: of root in a control group with a
quota, of another user below a closed home, and of another container below a quota.

They are started by a shell that ends at once, so that they are nobody's children: below a test
process that has PyTorch loaded itself they would count as its own.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.stack import processes
from tests.end_to_end.engine import Engine

JOB = Path(__file__).with_name("job.py")
NOBODY = 65534
PYTHON = "/usr/bin/python3"
"""Debian's, as in the container: one that another user may run too."""
WORK = ("2", "5", "20")
"""Workers, and milliseconds for an item and for a step."""
QUOTAS = {"of-root": 0.9, "of-a-container": 0.7}
RUNS = {"of-root", "of-another", "of-a-container"}
DETACHED = '"$@" >/dev/null 2>"$0" & echo $!'


@contextlib.contextmanager
def jobs(engine: Engine) -> Iterator[None]:
    """All three, until the end."""
    told = subprocess.run([PYTHON, "--version"], capture_output=True, text=True, check=False)
    if not told.stdout.startswith(f"Python {sys.version_info[0]}.{sys.version_info[1]}."):
        pytest.skip(f"{PYTHON} is not the tests' Python: it cannot load their torch")
    with contextlib.ExitStack() as ended:
        folder = Path(ended.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        site = ended.enter_context(_readable(_site(), folder / "site"))
        for run, user in (("of-root", 0), ("of-another", NOBODY)):
            python = _closed(folder / run, user)
            pid = ended.enter_context(job(run, folder / run, python, user, site))
            if run in QUOTAS:
                group = ended.enter_context(_group(run, QUOTAS[run]))
                (group / "cgroup.procs").write_text(str(pid))
        run = "of-a-container"
        group = ended.enter_context(_group(run, QUOTAS[run]))
        ended.enter_context(_contained(engine, run, group, site))
        yield


@contextlib.contextmanager
def job(
    run: str, folder: Path, python: Path, user: int | None = None, site: Path | None = None
) -> Iterator[int]:
    """A job whose files are in the folder, with the PyTorch of ``site``; its PID."""
    command = [python, folder / "job.py", folder / "truth.jsonl", *WORK]
    shutil.copy(JOB, folder)
    started = subprocess.run(
        ["setsid", "sh", "-c", DETACHED, folder / "log", *command],
        env={"GPUWHY_RUN": run, "PYTHONPATH": str(site or _site()), "PATH": os.environ["PATH"]},
        cwd="/",
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        stdout=subprocess.PIPE,
        check=True,
    )
    pid = int(started.stdout)
    since = processes.start_time(pid)
    try:
        yield pid
    finally:
        if since and processes.start_time(pid) == since:
            os.kill(pid, signal.SIGKILL)


def _site() -> Path:
    """Where the tests' PyTorch is; it is not imported, see above."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        pytest.skip("no PyTorch: there is no job to watch")
    return Path(found.origin).parents[1]


@contextlib.contextmanager
def _readable(site: Path, here: Path) -> Iterator[Path]:
    """The same packages where other users may read them: a clone is often below a closed home."""
    if all(folder.stat().st_mode & 0o001 for folder in (site, *site.parents)):
        yield site
        return
    here.mkdir()
    subprocess.run(["mount", "--bind", site, here], check=True)
    try:
        yield here
    finally:
        subprocess.run(["umount", "--lazy", here], check=True)


def _closed(folder: Path, user: int) -> Path:
    """A folder that is closed to others, with an interpreter of its own; the interpreter."""
    folder.mkdir(mode=0o700)
    python = Path(shutil.copy(Path(PYTHON).resolve(), folder / "python"))
    for path in (python, folder):
        os.chown(path, user, user)
    return python


def group_name(run: str) -> str:
    """The control group of a run, at the top."""
    return f"gpuwhy-test-{os.getpid()}-{run}"


@contextlib.contextmanager
def _group(name: str, cores: float) -> Iterator[Path]:
    """A control group of our own with a CPU quota, in version 1 or 2."""
    old = Path("/sys/fs/cgroup/cpu")
    top = old if old.is_dir() else Path("/sys/fs/cgroup")
    group = top / group_name(name)
    if top is not old:
        (top / "cgroup.subtree_control").write_text("+cpu")
    group.mkdir()
    try:
        microseconds = int(cores * 100_000)
        if top is old:
            (group / "cpu.cfs_quota_us").write_text(str(microseconds))
        else:
            (group / "cpu.max").write_text(f"{microseconds} 100000")
        yield group
    finally:
        for hierarchy in (top, *(top.parent.iterdir() if top is old else ())):
            _remove(hierarchy, group.name)


def _remove(hierarchy: Path, name: str) -> None:
    """A group and what the engine has made below it, the deepest first."""
    group = hierarchy / name
    for folder in sorted((p for p in group.rglob("*") if p.is_dir()), reverse=True):
        _empty(folder, hierarchy)
    if group.is_dir():
        _empty(group, hierarchy)


def _empty(group: Path, hierarchy: Path) -> None:
    """Remove a group; what still runs in it is moved out, and may end meanwhile."""
    for _ in range(20):
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (hierarchy / "cgroup.procs").write_text(pid)
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.2)


@contextlib.contextmanager
def _contained(engine: Engine, run: str, parent: Path, site: Path) -> Iterator[None]:
    """A job in a container whose limit is set above it, as for a pod."""
    engine.docker(
        *("run", "-d", "--name", run, "--shm-size=256m", f"--cgroup-parent=/{parent.name}"),
        *(f"--env=GPUWHY_RUN={run}", "--env=PYTHONPATH=/site"),
        *(f"--volume={site}:/site:ro", f"--volume={JOB}:/job.py:ro"),
        "docker.io/library/python:3.12-slim-bookworm",
        *("python", "/job.py", "/tmp/truth.jsonl", *WORK),
    )
    try:
        yield
    finally:
        engine.docker("rm", "-f", run)
