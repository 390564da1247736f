"""Reports of NVIDIA's own profilers, of the same small programs; what became of each, in words."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
SECTIONS = ("SpeedOfLight", "Occupancy", "LaunchStats", "WarpStateStats")
LARGEST = 8 << 20
"""Bytes of a report that is brought back."""
ELSEWHERE = "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys"
"""Nsight Compute comes with the part of Nsight Systems that records."""


def run(command: Sequence[str], seconds: float) -> tuple[int, str]:
    """(exit status, output) of a command and all that it started; 124 where it took too long."""
    with tempfile.TemporaryFile() as out:  # a pipe would be held open by what stays behind
        process = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
        status, note = 124, f"\nended after {seconds:.0f} s"
        try:
            status, note = process.wait(timeout=max(1.0, seconds)), ""
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        out.seek(0)
        return status, out.read().decode("utf-8", "replace") + note


def by_ncu(out: Path, seconds: float) -> str:
    """``kernels.ncu-rep``, and of it ``kernels.csv`` (details) and ``kernels_raw.csv``."""
    if shutil.which("ncu") is None:
        return "ncu is not installed"
    report = out / "kernels.ncu-rep"
    asked = [option for section in SECTIONS for option in ("--section", section)]
    status, text = run(
        ["ncu", "--target-processes", "all", "--clock-control", "none", "--launch-skip", "20",
         "--launch-count", "12", *asked, "--force-overwrite", "--export", str(report),
         sys.executable, str(HERE / "run_kernels.py")],
        seconds,
    )  # fmt: skip
    (out / "ncu.log").write_text(text[-20_000:])
    if status or not report.exists():
        return f"status {status}: {text.strip()[-400:]}"
    for page, name in (("details", "kernels.csv"), ("raw", "kernels_raw.csv")):
        status, text = run(["ncu", "--import", str(report), "--csv", "--page", page], 30)
        (out / name).write_text(text)
    return f"ok, {report.stat().st_size} bytes"


def by_nsys(out: Path, seconds: float) -> str:
    """Whatever an ``nsys`` of this machine writes: the report, or its parts."""
    found = shutil.which("nsys") or next((str(p) for p in Path("/").glob(ELSEWHERE[1:])), None)
    if found is None:
        return "nsys is not installed"
    folder = out / "nsys"
    folder.mkdir()
    status, text = run(
        [found, "profile", "--trace=cuda,nvtx,osrt", "--sample=none", "--cpuctxsw=none",
         "--output", str(folder / "report"), sys.executable, str(HERE / "run_kernels.py")],
        seconds,
    )  # fmt: skip
    about = [run([found, *asked], 10)[1] for asked in (("--version",), ("status", "-e"))]
    log = [*about, f"profile: {status}\n{text[-6000:]}"]
    for made in sorted(folder.iterdir()):
        sqlite = folder / f"{made.name}.sqlite"
        told = run([found, "export", "--type", "sqlite", "--output", str(sqlite), str(made)], 15)
        log.append(f"export of {made.name}: {told[0]}\n{told[1][-2000:]}")
    (out / "nsys.log").write_text("\n".join(log))
    return (
        ", ".join(_packed(path) for path in sorted(folder.iterdir())) or f"nothing: {text[-300:]}"
    )


def _packed(path: Path) -> str:
    """Gzip a file in its place, unless it is too large to be brought back."""
    data = gzip.compress(path.read_bytes(), 6)
    size = path.stat().st_size
    path.unlink()
    if len(data) > LARGEST:
        return f"{path.name} ({size} bytes, left out)"
    path.with_name(f"{path.name}.gz").write_bytes(data)
    return f"{path.name} ({size} bytes)"
