"""Whatever a file holds, it is told or refused with a message; nothing else ever happens.

The ordinary run tries some hundred inputs, ``./run check --full`` a million.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.evidence.traces import mutation, nsys_file
from tests.evidence.traces.kineto_file import busy_steps
from tests.evidence.traces.test_ncu import DETAILS, RAW
from tests.evidence.traces.test_ranks import rank_of

from gpuwhy.evidence.imports import logs
from gpuwhy.evidence.imports.text_table import LogError
from gpuwhy.evidence.terminal import Style
from gpuwhy.evidence.traces import html, ncu, text
from gpuwhy.evidence.traces.analysis import analyse
from gpuwhy.evidence.traces.read import kind_of, read_kernels, read_trace
from gpuwhy.evidence.traces.trace import TraceError

KINETO = [
    json.loads(file.text())
    for file in (busy_steps(steps=2, kernels=2, wait=500.0), rank_of(0, 300.0))
]
SMI = """timestamp, index, uuid, utilization.gpu [%], power.draw [W], memory.used [MiB]
2026/07/14 08:12:38.696, 0, GPU-1, 40 %, 300.00 W, 19818 MiB
2026/07/14 08:12:39.696, 0, GPU-1, [N/A], 300.00 W, 19818 MiB
"""
DMON = """#Date       Time        gpu    pwr     sm
#YYYYMMDD   HH:MM:SS    Idx      W      %
 20260714   08:12:38      0    631    100
"""
DSTAT = """"Dstat 0.7.4 CSV output"
"system","total cpu usage",,"dsk/total",
"time","usr","idl","read","writ"
14-07 08:12:38,90.0,10.0,1000.0,0.0
"""
PY_SPY = "<module> (train.py:80);train (train.py:40);wait (threading.py:320) 700\n"


def sqlite_bytes() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return nsys_file.steps(Path(folder) / "a.sqlite").read_bytes()


def seeds(count: int, part: int) -> Iterator[int]:
    yield from range(part * 10_000_000, part * 10_000_000 + count)


def told(path: Path, whole: bool) -> None:
    """All that ``gpuwhy trace`` does with a file; refusals are answers."""
    try:
        kind = kind_of(path)
        if kind == "timeline":
            analysis = analyse(read_trace(path))
            json.dumps(analysis.as_json(), allow_nan=False)
            for entry in analysis.ranks:
                assert not entry["accounts"] or abs(sum(entry["accounts"].values()) - 1) < 0.01
            if whole:
                html.render(analysis, [path.name])
                text.render(analysis, Style(), [path.name])
        elif kind == "kernels":
            ncu.advice(ncu.table(read_kernels([path])), Style())
        else:
            logs.diagnose([(path, kind)])
    except (TraceError, LogError) as error:
        assert str(error)


def fuzz(make: Callable[[int], bytes], count: int, part: int, suffix: str = ".json") -> None:
    folder = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=folder) as name, warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy warns where a number means nothing
        path = Path(name) / f"a{suffix}"
        for seed in seeds(count, part):
            path.write_bytes(make(seed))
            try:
                told(path, whole=seed % 20 == 0)
            except Exception as error:
                pytest.fail(f"seed {seed} of part {part}: {type(error).__name__}: {error}")


def kineto_changed(seed: int) -> bytes:
    return mutation.changed(seed, KINETO[seed % len(KINETO)])


KINETO_BYTES = [json.dumps(trace).encode() for trace in KINETO]
PACKED = [gzip.compress(data, mtime=0) for data in KINETO_BYTES]
SQLITE = sqlite_bytes()
CSV = [DETAILS.encode(), RAW.encode()]
LOGS = [part.encode() for part in (SMI, DMON, DSTAT, PY_SPY)]

PARTS: dict[str, tuple[Callable[[int], bytes], float]] = {
    "kineto values": (kineto_changed, 0.20),
    "kineto bytes": (lambda s: mutation.damaged(s, KINETO_BYTES[s % 2]), 0.45),
    "gzip": (lambda s: mutation.damaged(s, PACKED[s % 2]), 0.15),
    "sqlite": (lambda s: mutation.damaged(s, SQLITE), 0.05),
    "ncu": (lambda s: mutation.damaged(s, CSV[s % 2]), 0.10),
    "logs": (lambda s: mutation.damaged(s, LOGS[s % 4]), 0.05),
}
"""Name -> how an input is made of its seed, and its share of all inputs."""

ORDINARY, FULL = 600, 1_000_000


@pytest.mark.parametrize("name", PARTS)
def test_some_damaged_files(name: str) -> None:
    make, share = PARTS[name]
    fuzz(make, int(ORDINARY * share), list(PARTS).index(name))


@pytest.mark.full
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("name", PARTS)
def test_a_million_damaged_files(name: str) -> None:
    make, share = PARTS[name]
    fuzz(make, int(FULL * share), list(PARTS).index(name) + 100)
