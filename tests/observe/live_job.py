"""Starting training_job.py, reading its truth, and watching it with a StackSource."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.stacks import StackSource, Target

JOB = Path(__file__).with_name("training_job.py")
START_S = 60.0


class LiveJob:
    """A context manager: the job runs inside it, and has made a few steps when it is entered."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.truth = folder / "truth.jsonl"
        self._command = [sys.executable, str(JOB), str(self.truth), *options]

    def __enter__(self) -> LiveJob:
        self.truth.parent.chmod(0o777)  # the job may become another user
        with self.truth.with_name("job.log").open("w") as log:
            self.child = subprocess.Popen(self._command, stdout=log, stderr=log)
        self.process = psutil.Process(self.child.pid)
        wait_for(self._is_running_steps, START_S)
        return self

    def __exit__(self, *_: object) -> None:
        family = [*self.process.children(), self.process] if self.process.is_running() else []
        for process in family:
            process.kill()
        self.child.wait()

    def _is_running_steps(self) -> bool:
        assert self.child.poll() is None, self.truth.with_name("job.log").read_text()
        return len(self.steps()) >= 3

    @property
    def pid(self) -> int:
        return self.child.pid

    def steps(self) -> list[dict[str, Any]]:
        """One for each step that is done: step, and when it was asked for, came, was done."""
        return _lines(self.truth)

    def items(self, worker: int) -> list[dict[str, Any]]:
        """One for each item that the worker made: index, and when it was begun and ended."""
        return _lines(self.truth.with_name(f"{self.truth.name}.{worker}"))

    def targets(self) -> list[Target]:
        return [
            Target(self.pid, self.process.create_time(), "rank", self.pid),
            *(
                Target(child.pid, child.create_time(), "worker", self.pid)
                for child in self.process.children()
            ),
        ]


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    whole = path.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def wait_for(condition: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"did not happen within {seconds} s"
        time.sleep(0.02)


def watch(
    source: StackSource, seconds: float, until: Callable[[list[Observation]], object] | None = None
) -> list[Observation]:
    """Poll for some seconds as the observer does, or until what has been seen is enough."""
    seen: list[Observation] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (until and until(seen)):
        seen += source.poll(time.time())
        time.sleep(source.period_s)
    return seen


def of_kind(seen: list[Observation], kind: str, pid: int | None = None) -> list[Observation]:
    return [o for o in seen if o["kind"] == kind and (pid is None or o.get("pid") == pid)]
