"""SIGTERM ends a profile as Ctrl-C does: what was seen is written, and no sampler stays behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

PROFILE = (sys.executable, "-m", "gpuwhy", "profile")


def test_sigterm_leaves_the_file_and_no_sampler(tmp_path: Path) -> None:
    job = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.1)"])
    target = tmp_path / "job.svg"
    profile = subprocess.Popen(
        [*PROFILE, "--pid", str(job.pid), "--for", "60s", str(target)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        samplers = _samplers(profile)
        if not samplers:
            pytest.skip(f"py-spy may not sample here: {profile.communicate()[1]}")
        time.sleep(2)
        profile.send_signal(signal.SIGTERM)
        _, said = profile.communicate(timeout=30)
        assert profile.returncode == 0, said
        assert target.exists()
        assert not psutil.wait_procs(samplers, timeout=10)[1]
    finally:
        for process in (profile, job):
            process.kill()
            process.wait()


def _samplers(profile: subprocess.Popen[str]) -> list[psutil.Process]:
    until = time.monotonic() + 30
    while profile.poll() is None and time.monotonic() < until:
        children = psutil.Process(profile.pid).children(recursive=True)
        if found := [child for child in children if "py-spy" in child.name()]:
            return found
        time.sleep(0.1)
    return []
