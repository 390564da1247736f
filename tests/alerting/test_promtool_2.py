"""The rules under Prometheus 2 too: these tests once more, with the promtool of Debian 13."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.stack import packages

FOLDER = packages.RUN / "prometheus-2"
TOOL = FOLDER / "packages/usr/bin/promtool"
TESTS = ("rules", "canonical", "recorded", "two_hosts", "faults")


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_the_rules_under_prometheus_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "SUITE", "trixie")
    monkeypatch.setattr(packages, "RUN", FOLDER)
    monkeypatch.setattr(packages, "PACKAGES", FOLDER / "packages")
    try:
        if not TOOL.is_file():
            packages._unpack(["promtool"])
    except packages.PackageError as error:
        pytest.skip(f"no promtool 2: {error}")
    assert packages._version(TOOL)[0] == 2
    files = [str(Path(__file__).parent / f"test_{name}.py") for name in TESTS]
    first = {"PATH": f"{TOOL.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *files],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **first},
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
