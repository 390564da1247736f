"""A running ``gpuwhy serve`` on a stand-in driver, beside a job, with a py-spy that can be swapped.

The exporter runs by an interpreter of its own (a virtual environment that links to the packages of
this one), since py-spy is looked for beside the interpreter. All else is the shipped program.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from prometheus_client.parser import text_string_to_metric_families

EXPORTER = Path(__file__).parents[2] / "exporter"
PATIENCE_S = 90.0
HEALTHY = "gpus 2\n"
PY_SPY = Path(sys.executable).with_name("py-spy")

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def make_python(folder: Path) -> Path:
    """An interpreter with all packages of this one but py-spy; ``py-spy`` beside it is a link."""
    bin_folder = folder / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").symlink_to(Path(sys.executable).resolve())
    home = Path(sys.executable).resolve().parent
    (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    site = folder / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    site.mkdir(parents=True)
    for packages in (Path(p) for p in sys.path if p.endswith(("site-packages", "dist-packages"))):
        for entry in packages.iterdir():
            target = site / entry.name
            if not entry.name.startswith("py_spy") and not target.exists():
                target.symlink_to(entry)
    (bin_folder / "py-spy").symlink_to(PY_SPY)
    return bin_folder / "python"


class Rig:
    """One exporter; ``end`` it. ``driver`` is the folder of the stand-in library."""

    def __init__(
        self,
        folder: Path,
        driver: Path,
        *arguments: object,
        environment: Mapping[str, str] | None = None,
        command: Sequence[object] = (),
        log: Any = None,
    ) -> None:
        self.folder = folder
        self.python = make_python(folder / "venv")
        self.sampler = self.python.with_name("py-spy")
        self._script = folder / "script"
        self.script("")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("GPUWHY_")},
            "PYTHONPATH": str(EXPORTER),
            "LD_LIBRARY_PATH": str(driver),
            "STANDIN_NVML": str(self._script),
            **(environment or {}),
        }
        self.log = folder / "log"
        listen = ("--web.listen-address", f"127.0.0.1:{self.port}")
        with self.log.open("w") as own:
            self.process = subprocess.Popen(
                [*map(str, command), str(self.python), "-m", "gpuwhy", "serve", *listen,
                 *map(str, arguments)],
                env=self.environment, stdout=subprocess.DEVNULL, stderr=log or own, cwd="/",
            )  # fmt: skip
        self._jobs: list[subprocess.Popen[bytes]] = []

    # What is broken

    def script(self, text: str) -> None:
        """What the stand-in driver says from now on, beside two GPUs."""
        fresh = self._script.with_suffix(".new")
        fresh.write_text(HEALTHY + text + "\n")
        fresh.replace(self._script)

    def put_sampler(self, text: str | None) -> None:
        """A shell script in place of py-spy; None takes it away, "" puts the real one back."""
        self.sampler.unlink(missing_ok=True)
        if text == "":
            self.sampler.symlink_to(PY_SPY)
        elif text is not None:
            fresh = self.sampler.with_suffix(".new")
            fresh.write_text(
                f'#!/bin/sh\n[ "$1" = --version ] && exec {PY_SPY} --version\n{text}\n'
            )
            fresh.chmod(0o755)
            fresh.replace(self.sampler)

    def start(self, *arguments: object) -> subprocess.Popen[bytes]:
        """A job of ours (tests/faults/job.py), with what it is to do; killed at the end."""
        job = Path(__file__).with_name("job.py")
        process = subprocess.Popen(
            [sys.executable, str(job), *map(str, arguments)], cwd="/", stdout=subprocess.PIPE
        )
        self._jobs.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    # What is seen

    def get(self, path: str, **headers: str) -> str:
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            return str(response.read().decode())

    def series(self) -> Series:
        """Every sample of /metrics, each held against what must never be exported."""
        found: Series = {}
        for family in text_string_to_metric_families(self.get("/metrics")):
            for sample in family.samples:
                key = (sample.name, tuple(sorted(sample.labels.items())))
                assert key not in found, f"{key} stands twice"
                assert sample.value == sample.value, f"{key} is NaN"
                assert abs(sample.value) < 2.0**62, f"{key} is {sample.value}: a sentinel"
                found[key] = sample.value
        return found

    def value(self, name: str, **labels: str) -> float | None:
        """The first sample of a name that has these labels."""
        for (own, given), value in self.series().items():
            if own == name and labels.items() <= dict(given).items():
                return value
        return None

    def up(self, source: str) -> bool:
        return self.value("gpuwhy_source_up", source=source) == 1.0

    def second(self) -> float:
        return self.value("gpuwhy_last_second_timestamp_seconds") or 0.0

    def entries(self) -> list[dict[str, Any]]:
        return list(json.loads(self.get("/api/v1/verdicts?window=10s"))["gpus"])

    def processes(self) -> dict[int, dict[str, Any]]:
        listed = json.loads(self.get("/api/v1/processes"))["processes"]
        return {int(process["pid"]): process for process in listed}

    def says(self, *words: str) -> bool:
        """Whether the page holds these words: the sentence that a person reads."""
        shown = html.unescape(self.get("/"))
        return all(word in shown for word in words)

    def wait(self, what: Callable[[], object], why: str) -> None:
        """Until it holds; the exporter must live and answer meanwhile."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            assert self.process.poll() is None, f"the exporter ended: {self.tail()}"
            try:
                if what():
                    return
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > give_up - PATIENCE_S / 2:
                    raise
            assert time.monotonic() < give_up, f"{why}: not seen. {self.tail()}"
            time.sleep(0.3)

    def goes_on(self) -> None:
        """Seconds are completed, and the host's counters move."""
        begun = self.second()
        self.wait(lambda: self.second() >= begun + 2, "seconds go on")
        assert self.up("host")

    def observer(self) -> psutil.Process:
        """The process that observes; waited for while there is none."""
        give_up = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up:
            for child in psutil.Process(self.process.pid).children():
                with contextlib.suppress(psutil.Error):  # it may end as it is looked at
                    if "gpuwhy.observe" in child.cmdline():
                        return child
            time.sleep(0.2)
        raise AssertionError(f"nobody observes: {self.tail()}")

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-2500:] if self.log.exists() else ""

    def end(self) -> None:
        """End everything; the exporter must do so cleanly and leave nothing behind."""
        for job in self._jobs:
            job.kill()
            job.wait()
        if self.process.poll() is None:
            below = psutil.Process(self.process.pid).children(recursive=True)
            self.process.send_signal(signal.SIGTERM)
            try:
                status = self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
            assert status == 0, self.tail()
            assert not psutil.wait_procs(below, timeout=20)[1]
        shutil.rmtree(self.folder / "venv")
