"""Right calls, wrong values: whatever a driver answers, there are observations, or none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.standin_nvml.standin import EXPORTER, HERE, build

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def lives(folder: Path, first: int, count: int) -> None:
    mine = os.getpid()
    script = folder / "script"
    script.write_text(
        f"gpus 2\nset link_count 4\nmig 1\nxid 0 79\n"
        f"process 0 {mine} 1000000 compute\nshare 0 {mine} 40 20\n"
    )
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(build(folder)),
        "STANDIN_NVML": str(script),
        "PYTHONPATH": str(EXPORTER),
    }
    done = subprocess.run(
        [sys.executable, HERE / "garbage.py", str(first), str(count)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"{count} lives\n", done.stderr


def test_some_lives_on_a_driver_that_talks_nonsense(tmp_path: Path) -> None:
    lives(tmp_path, 240, 30)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_thousands_of_lives(tmp_path: Path) -> None:
    lives(tmp_path, 1000, 5000)


def test_more_gpus_than_there_can_be_are_garbage(tmp_path: Path) -> None:
    """A loop over what a driver says would not end in a week."""
    code = (
        "import sys, time, pynvml; from pathlib import Path\n"
        "from gpuwhy.observe.nvml import NvmlSource\n"
        "pynvml.nvmlDeviceGetCount = lambda: 4294967295\n"
        "found = NvmlSource(proc=Path('/proc'), pci=Path('/none')).poll(time.time())\n"
        "print([seen['why'] for seen in found if seen['source'] == 'nvml'])\n"
    )
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(build(tmp_path)),
        "PYTHONPATH": str(EXPORTER),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert "make no sense" in done.stdout, done.stderr
