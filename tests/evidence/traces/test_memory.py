"""Memory stays within bounds whatever the size of the file; told by a process of its own."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.evidence.traces.kineto_file import busy_steps

import gpuwhy

MEASURE = """
import contextlib, io, pathlib, re, sys
from gpuwhy.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    status = main(["trace", sys.argv[1]])
peak = re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]
print(status, peak)
"""
# Not getrusage: its peak is inherited from the process that forked, a large pytest.
LARGE = 48 << 20  # characters, a dozen times what is read at once
MOST_KIB = 160 << 10


def measured(path: Path) -> tuple[int, int]:
    """(exit status, peak KiB)."""
    environment = {**os.environ, "PYTHONPATH": str(Path(gpuwhy.__file__).parents[1])}
    command = [sys.executable, "-c", MEASURE, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    status, peak = done.stdout.split()
    return int(status), int(peak)


def packed(path: Path, head: str, filling: str, tail: str) -> Path:
    """A gzip of ``head``, LARGE characters of ``filling``, ``tail``: small on the disk."""
    block = (filling * (1 + (1 << 20) // len(filling))).encode()
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(head.encode())
        for _ in range(LARGE // len(block)):
            file.write(block)
        file.write(tail.encode())
    return path


@pytest.mark.parametrize(
    ("filling", "status"),
    [
        (" \n", 0),
        ('{"ph": "i", "s": "t", "name": "[memory]", "ts": 1, "args": {"Bytes": 4}},', 0),
        ('{"ph": "X", "cat": "odd", "name": "x", "ts": 1, "dur": 2},', 0),
        ("[", 2),
        ('"' + "x" * 500 + '",', 0),
    ],
    ids=["blanks", "instants", "unknown", "brackets", "texts"],
)
def test_much_that_is_not_kept(filling: str, status: int, tmp_path: Path) -> None:
    head, _, tail = busy_steps().text().rpartition('{"ph"')
    path = packed(tmp_path / "a.json.gz", head, filling, '{"ph"' + tail)
    found, peak = measured(path)
    assert found == status
    assert peak < MOST_KIB


def test_a_name_without_end(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.json.gz", '{"traceEvents": [{"name": "', "x", '"}]}')
    found, peak = measured(path)
    assert found == 2
    assert peak < 2 * MOST_KIB
