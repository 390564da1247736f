"""Build the stand-in libnvidia-ml.so.1 and run an NvmlSource on it in a process of its own.

nvidia-ml-py loads the library by name through the dynamic loader, so LD_LIBRARY_PATH is all that
tells the stand-in from the driver's; the code under test is the shipped one.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXPORTER = HERE.parents[1] / "exporter"


def build(folder: Path) -> Path:
    """Compile the library into ``folder``; returns the folder."""
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    name = "libnvidia-ml.so.1"
    command = ["cc", *flags, f"-Wl,-soname,{name}", HERE / "nvml.c", "-o", folder / name, "-lm"]
    subprocess.run(command, check=True)
    return folder


class HangsError(Exception):
    """The poll did not come back in time."""


class StandIn:
    """A running source. ``script`` changes what the library says, also while a poll hangs."""

    def __init__(
        self, library: Path, folder: Path, script: str = "", proc: str = "/proc", pci: str = "/none"
    ) -> None:
        self.file, self.log = folder / "script", folder / "calls"
        self.script(script)
        self.now = time.time()
        environment = os.environ | {
            "LD_LIBRARY_PATH": str(library),
            "STANDIN_NVML": str(self.file),
            "STANDIN_NVML_LOG": str(self.log),
            "PYTHONPATH": str(EXPORTER),
        }
        self.process = subprocess.Popen(
            [sys.executable, HERE / "runner.py", proc, pci],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self.deadline_s = 0.0
        self.restart_wanted = False

    def script(self, text: str) -> None:
        """Replace the script at one blow: the library reads it at every call."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(text + "\n")
        fresh.replace(self.file)

    def ask(self, line: str, timeout_s: float = 20.0) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer(timeout_s)

    def answer(self, timeout_s: float = 20.0) -> Any:
        """The answer to the last question."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], timeout_s)[0]:
            raise HangsError
        line = self.process.stdout.readline()
        assert line, f"the source died with status {self.process.wait()}"
        return json.loads(line)

    def poll(self, after_s: float = 0.5, timeout_s: float = 20.0) -> list[dict[str, Any]]:
        """One poll, ``after_s`` later by the clock that the source is given."""
        self.now += after_s
        answer = self.ask(str(self.now), timeout_s)
        self.deadline_s, self.restart_wanted = answer["deadline_s"], answer["restart_wanted"]
        return answer["observations"]

    def polls(self, count: int, sleep_s: float = 0.0, after_s: float = 0.5) -> list[dict[str, Any]]:
        """Several polls, as one list."""
        out = []
        for _ in range(count):
            out += self.poll(after_s)
            time.sleep(sleep_s)
        return out

    def calls(self, name: str) -> int:
        """How often the library's function was called."""
        return self.log.read_text().split().count(name) if self.log.exists() else 0

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def of(observations: list[dict[str, Any]], kind: str, **fields: Any) -> list[dict[str, Any]]:
    """The observations of a kind whose fields have these values."""
    return [
        o
        for o in observations
        if o["kind"] == kind and all(o.get(name) == value for name, value in fields.items())
    ]


def states(observations: list[dict[str, Any]], uuid: str | None = None) -> dict[str, Any]:
    """The last ``source`` observation by source, of one GPU or as a whole."""
    return {o["source"]: o for o in of(observations, "source") if o.get("uuid") == uuid}
