"""Reports in NVIDIA's own formats, turned into open ones by the tool that wrote them.

The tools run on a copy's path in a folder of their own, so nothing is left beside the report.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpuwhy.evidence.traces.trace import TraceError

ROOT = Path("/")
PLACES = (
    "opt/nvidia/nsight-compute/*",
    "opt/nvidia/nsight-systems/*/bin",
    "opt/nvidia/nsight-systems-cli/*/bin",
    "usr/local/cuda*/bin",
)
"""Where NVIDIA's packages put their tools."""
DEADLINE_S = 900.0
"""Longest that a tool may take: a report of gigabytes takes minutes."""


@contextmanager
def exported(report: Path) -> Iterator[Path]:
    """The SQLite export of an ``.nsys-rep``, for as long as it is used.

    Raises TraceError where nsys is not installed, with the command that exports it elsewhere.
    """
    _check(report)
    elsewhere = f"nsys export --type sqlite --output {report.stem}.sqlite {report.name}"
    tool = _tool("nsys", report, elsewhere)
    with tempfile.TemporaryDirectory(prefix="gpuwhy-nsys-") as folder:
        target = Path(folder) / "report.sqlite"
        command = [tool, "export", "--type", "sqlite", "--output", str(target), str(report)]
        _run(command, report, elsewhere)
        if not target.exists():
            raise TraceError(f"nsys exported nothing of {report}: run {elsewhere} to see why")
        yield target


def ncu_csv_of(report: Path) -> str:
    """The raw page of an ``.ncu-rep`` as CSV (the details page has no stalls); raises TraceError as
    ``exported`` does."""
    _check(report)
    elsewhere = f"ncu --import {report.name} --csv --page raw > {report.stem}.csv"
    tool = _tool("ncu", report, elsewhere)
    return _run([tool, "--import", str(report), "--csv", "--page", "raw"], report, elsewhere)


def _check(report: Path) -> None:
    try:
        with report.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise TraceError(f"cannot read {report}: {error.strerror or error}") from error
    if empty:
        raise TraceError(f"{report} is empty: no report was written to it")


def _tool(name: str, report: Path, elsewhere: str) -> str:
    found = shutil.which(name) or _beside(name)
    if found is None:
        raise TraceError(
            f"{report} needs {name} to be read, and it is not installed here. Where it is, run\n"
            f"  {elsewhere}\nand give gpuwhy trace the file that it writes"
        )
    return found


def _beside(name: str) -> str | None:
    """The newest one where NVIDIA's packages put it, which is not always on the PATH."""
    found = [path for place in PLACES for path in ROOT.glob(f"{place}/{name}")]
    runs = [path for path in found if os.access(path, os.X_OK) and path.is_file()]
    return str(max(runs, key=_numbers)) if runs else None


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


def _run(command: list[str], report: Path, elsewhere: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=DEADLINE_S,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TraceError(f"{command[0]} took longer than {DEADLINE_S:.0f} s on {report}") from None
    except OSError as error:
        raise TraceError(f"cannot run {command[0]}: {error.strerror}") from error
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        why = lines[-1] if lines else f"exit status {done.returncode}"
        raise TraceError(
            f"{report} could not be converted ({why}): its version may be newer than the tool. "
            f"Where the tool that wrote it is installed: {elsewhere}"
        )
    return done.stdout
