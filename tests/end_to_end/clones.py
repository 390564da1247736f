"""Clones of the project for tests of ``./run``, each with ports of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scripts.stack import processes
from scripts.stack.shorten import shorten
from tests.stack.ports import free_port

ROOT = Path(__file__).parents[2]
SOURCES = ("scripts", "exporter", "alerting", "prometheus", "grafana", "tests/recordings")
FILES = ("run", "requirements.lock", "requirements-dev.lock")
MADE = (".run/packages", ".run/venv", ".venv")
"""What a first run makes, and takes minutes."""
PORTS = ("GPUWHY_PORT", "PROMETHEUS_PORT", "ALERTMANAGER_PORT")


def free_ports() -> dict[str, str]:
    return {name: str(free_port()) for name in PORTS}


def clone(folder: Path, *, made: Sequence[str] = MADE) -> Path:
    """What git has, and what a first run has made."""
    folder.mkdir(exist_ok=True)
    for part in SOURCES:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in FILES:
        shutil.copy(ROOT / part, folder / part)
    (folder / ".run").mkdir()
    for name in made:
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    return folder


def hasten(root: Path, factor: float) -> None:
    """Rules, scrapes and notifications of a clone with every duration shorter."""
    rules = [*(root / "alerting/rules").glob("*.yml"), *(root / "prometheus/rules").glob("*.yml")]
    others = (root / "prometheus/prometheus.yml", root / "exporter/gpuwhy/expose/alerting.py")
    for path in (*rules, *others):
        path.write_text(shorten(path.read_text(), factor))


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """The first true value, or the last."""
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


class Up:
    """A clone, and the commands in it with ports of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ports = free_ports()

    def run(
        self, *arguments: str, before: Sequence[str] = (), **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """``./run``, below the command ``before`` where there is one."""
        return subprocess.run(
            [*before, "sh", "run", *arguments],
            cwd=self.root,
            env={**os.environ, **self.ports, **variables},
            capture_output=True,
            text=True,
            timeout=200,
        )

    def url(self, name: str, path: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}{path}"

    def get(self, name: str, path: str) -> str:
        with urllib.request.urlopen(self.url(name, path), timeout=10) as answer:
            return str(answer.read().decode())

    def api(self, path: str) -> Any:
        return json.loads(self.get("PROMETHEUS_PORT", f"/api/v1/{path}"))["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        return list(self.api(f"query?query={urllib.parse.quote(expression)}")["result"])

    def pids(self) -> dict[str, int | None]:
        return {
            file.stem: processes.running(file) for file in (self.root / ".run/up").glob("*.pid")
        }
