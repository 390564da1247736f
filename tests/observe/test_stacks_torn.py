"""Torn stacks: what py-spy reads from interpreters that were not stopped."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.observe.live_job import of_kind, watch

from gpuwhy.observe.observation import Frame
from gpuwhy.observe.stacks import StackSource, Target
from gpuwhy.observe.stacks_budget import Pace
from gpuwhy.observe.stacks_torn import has_thread_root, is_impossible, is_torn, own_part

LIB = "/usr/lib/python3.12"
MAIN: list[Frame] = [["step", "/job/train.py", 3], ["<module>", "/job/train.py", 30]]
CALLING = """
import sys
def leaf(n): return n + 1
def mid(n): return leaf(n) + leaf(n)
def deep(n): return mid(n) if n == 0 else deep(n - 1) + mid(n)
def loop():
    while True: deep(12)
loop()
"""


@pytest.mark.parametrize(
    "root",
    [
        ["<module>", "/job/train.py", 1],
        ["Thread._bootstrap", f"{LIB}/threading.py", 1],
        ["_bootstrap", f"{LIB}/threading.py", 1],
        ["_run_module_as_main", "<frozen runpy>", 198],
        ["BaseProcess._bootstrap", f"{LIB}/multiprocessing/process.py", 314],
    ],
)
def test_roots(root: Frame) -> None:
    assert has_thread_root([["wait", f"{LIB}/threading.py", 1], root])


def test_a_stack_that_lost_its_root() -> None:
    assert is_torn(MAIN[:1], rooted=True)
    assert not is_torn(MAIN, rooted=True)
    assert not is_torn([["backward", "/job/ops.py", 9]], rooted=False), "a thread made by C++"


@pytest.mark.parametrize(
    "frame",
    [["", "/job/a.py", 1], ["a", "", 1], ["a\x00b", "/a.py", 1], ["a", "/\x01", 1],
     ["a", "/a.py", -5], ["a", "/a.py", 2**31 - 1]],
)  # fmt: skip
def test_impossible_frames(frame: Frame) -> None:
    assert is_impossible([frame, *MAIN])
    assert is_torn([frame, *MAIN], rooted=True)


@pytest.mark.parametrize(
    "file", ["/job/训练　一/train.py", "/job/a\u00a0b.py", "/job/👩\u200d💻.py", "tra\nin '1\".py"]
)
def test_whatever_a_file_may_be_called_is_no_torn_stack(file: str) -> None:
    assert not is_torn([["step", file, 3], ["<module>", file, 30]], rooted=True)


def test_what_a_fork_left_is_cut() -> None:
    worker: Frame = ["_worker_loop", "/x/site-packages/torch/utils/data/_utils/worker.py", 349]
    start: Frame = ["BaseProcess._bootstrap", f"{LIB}/multiprocessing/process.py", 314]
    run: Frame = ["BaseProcess.run", f"{LIB}/multiprocessing/process.py", 108]
    decode: Frame = ["decode", "/job/data.py", 5]
    assert own_part([decode, worker, run, start, *MAIN]) == [decode, worker]
    assert own_part([decode, run, start, *MAIN]) == [decode, run, start]
    assert own_part(MAIN) == MAIN


def _interpreters() -> list[str]:
    """This Python, and those beside it that py-spy can read too."""
    found = [str(p) for p in Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python3")]
    found += [p for v in range(8, 15) if (p := shutil.which(f"python3.{v}"))]
    by_version = {}
    for path in found:
        version = subprocess.run([path, "-V"], capture_output=True, text=True, check=False).stdout
        by_version[".".join(version.split()[-1].split(".")[:2]) if version else ""] = path
    wanted = ("3.8", "3.9", "3.10", "3.12", "3.13", "3.14")
    return [sys.executable, *(by_version[v] for v in wanted if v in by_version)]


def test_calling_programs_of_every_python_at_hand() -> None:
    """A program that does nothing but call: the worst case. No stack without its root comes out,
    what was dropped is counted, and the time is still accounted for."""
    children = [subprocess.Popen([path, "-c", CALLING]) for path in _interpreters()]
    source = StackSource(Pace(rest_hz=50, fine_hz=50, chunk_s=1.0, share_per_rank=1.0))
    try:
        time.sleep(1.0)
        starts = [psutil.Process(child.pid).create_time() for child in children]
        source.set_targets(
            [Target(c.pid, t, "rank", c.pid) for c, t in zip(children, starts, strict=True)]
        )
        seen = watch(source, 4.5)
    finally:
        source.close()
        for child in children:
            child.kill()
            child.wait()
    for child in children:
        stacks = [o for o in of_kind(seen, "stack", child.pid) if o["dt"] > 0]
        assert stacks
        assert all(o["frames"][-1][0] == "<module>" for o in stacks)
        span = max(o["t"] + o["dt"] for o in stacks) - min(o["t"] for o in stacks)
        assert sum(o["dt"] for o in stacks) > 0.8 * span
    if any("3.8" in str(c.args) or "3.9" in str(c.args) for c in children):
        assert source.tally.torn > 0
