"""Make the traces that tests and docs/traces.md use, on a machine with NVIDIA GPUs.

    python3 bench/traces/make_traces.py OUT [JOB ...]

writes OUT/traces.tar.gz: a Kineto trace of each job (flow arrows left out, so that they are small),
the two ranks' traces where there are two GPUs, ``kernels.csv`` where ncu can read the counters, and
``manifest.json`` with versions and each job's step time without the profiler. Needs torch; takes
about two minutes. Without a GPU it runs all the same, to be debugged: the traces then hold no GPU
events.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, schedule
from torch.profiler import profile as torch_profile

from jobs import JOBS

WARM_UP, TIMED, ACTIVE = 10, 20, 4
FLOWS = ("ac2g", "fwdbwd", "async")
NCU = (
    "ncu", "--target-processes", "all", "--clock-control", "none", "--launch-skip", "20",
    "--launch-count", "12", "--section", "SpeedOfLight", "--section", "Occupancy", "--section",
    "LaunchStats", "--section", "WarpStateStats", "--csv", "--page", "details",
)  # fmt: skip

Step = Callable[[int], None]


def synchronize(cuda: bool) -> None:
    """Wait for the GPU."""
    if cuda:
        torch.cuda.synchronize()


def timed(step: Step, cuda: bool) -> float:
    """Seconds of a step without the profiler, after the warm-up."""
    for number in range(WARM_UP):
        step(number)
    synchronize(cuda)
    begun = time.perf_counter()
    for number in range(TIMED):
        step(number)
    synchronize(cuda)
    return (time.perf_counter() - begun) / TIMED


def profile(step: Step, path: str, cuda: bool, *, stacks: bool) -> None:
    """Profile ACTIVE steps into PATH.gz; beside it PATH.time, the step's time without profiler."""
    seconds = timed(step, cuda)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with torch_profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=3, active=ACTIVE, repeat=1),
        with_stack=stacks,
    ) as profiler:
        for number in range(1 + 3 + ACTIVE):
            step(number)
            profiler.step()
        synchronize(cuda)
    profiler.export_chrome_trace(path)
    trim(Path(path))
    Path(f"{path}.time").write_text(str(seconds))


def trim(path: Path) -> None:
    """Leave out the arrows, which say what the correlations say, and pack the file."""
    trace = json.loads(path.read_text())
    trace["traceEvents"] = [e for e in trace["traceEvents"] if e.get("cat") not in FLOWS]
    with gzip.GzipFile(f"{path}.gz", "wb", 9, mtime=0) as packed:
        packed.write(json.dumps(trace, separators=(",", ":")).encode())
    path.unlink()


def one_job(name: str, out: Path, cuda: bool) -> None:
    """A trace of one job."""
    job = JOBS[name](torch.device("cuda" if cuda else "cpu"))
    profile(job.step, str(out / f"{name}.json"), cuda, stacks=job.stacks)
    job.close()


def by_ncu(out: Path) -> str:
    """``kernels.csv``; what became of it."""
    if shutil.which("ncu") is None:
        return "ncu is not installed"
    target = out / "kernels.csv"
    command = [*NCU, "--log-file", str(target), sys.executable, __file__, "--under-ncu"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    if done.returncode or not target.exists():
        return (done.stderr or done.stdout)[-500:]
    return "ok"


def under_ncu() -> None:
    """What ncu runs."""
    job = JOBS["kernels"](torch.device("cuda"))
    for number in range(10):
        job.step(number)
    torch.cuda.synchronize()


def guarded(what: Callable[[], object]) -> str:
    """One part fails, the others go on."""
    begun = time.perf_counter()
    try:
        answer = what()
    except Exception:
        return traceback.format_exc()[-1500:]
    text = answer if isinstance(answer, str) else "ok"
    return f"{text} ({time.perf_counter() - begun:.1f} s)"


def main(arguments: list[str]) -> None:
    """Every job in a process of its own: one trace holds nothing of another."""
    if arguments == ["--under-ncu"]:
        under_ncu()
        return
    if arguments[0] == "--job":
        one_job(arguments[1], Path(arguments[2]), torch.cuda.is_available())
        return
    out, chosen = Path(arguments[0]), arguments[1:]
    cuda = torch.cuda.is_available()
    manifest: dict[str, Any] = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "gpu": torch.cuda.get_device_name() if cuda else None,
        "gpus": torch.cuda.device_count() if cuda else 0,
        "python": sys.version.split()[0],
        "became": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for name in [n for n in JOBS if n != "kernels" and (not chosen or n in chosen)]:
            manifest["became"][name] = guarded(lambda name=name: _in_a_process(name, work))
            print(name, manifest["became"][name], flush=True)
        if not chosen or "two_ranks" in chosen:
            manifest["became"]["two_ranks"] = guarded(lambda: _two_ranks(work, cuda))
            print("two_ranks", manifest["became"]["two_ranks"], flush=True)
        if cuda and (not chosen or "kernels" in chosen):
            manifest["became"]["kernels"] = guarded(lambda: by_ncu(work))
            print("kernels", manifest["became"]["kernels"], flush=True)
        times = {path.name.split(".")[0]: float(path.read_text()) for path in work.glob("*.time")}
        manifest["step_seconds_without_profiler"] = times
        (work / "manifest.json").write_text(json.dumps(manifest, indent=1))
        out.mkdir(parents=True, exist_ok=True)
        with tarfile.open(out / "traces.tar.gz", "w:gz") as tar:
            for path in sorted(work.iterdir()):
                if path.suffix != ".time":
                    tar.add(path, path.name)
                    print(path.name, path.stat().st_size, flush=True)


def _in_a_process(name: str, work: Path) -> str:
    command = [sys.executable, __file__, "--job", name, str(work)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return "ok" if done.returncode == 0 else done.stderr[-1500:]


def _two_ranks(work: Path, cuda: bool) -> str:
    if cuda and torch.cuda.device_count() < 2:
        return "one GPU only"
    import two_ranks

    two_ranks.run(profile, str(work), cuda)
    return "ok"


if __name__ == "__main__":
    main(sys.argv[1:])
