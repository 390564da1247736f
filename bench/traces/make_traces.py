"""Make the traces and recordings that tests and docs/traces.md use, on a machine with a GPU.

    PYTHONPATH=exporter python3 bench/traces/make_traces.py OUT [--budget 165] [--only PART ...]

Each job of ``jobs.py`` runs in a process of its own (``play.py``); those of the story are watched
by ``gpuwhy record`` meanwhile, and all are profiled at their end. Then two ranks, Nsight Compute,
Nsight Systems, and gpuwhy itself on all that was made. OUT/traces.tar.gz holds it, OUT/table.txt
the answers beside the jobs' own truth. What does not fit into the budget (seconds) is left out and
said to be. Without a GPU it runs all the same, to be debugged: traces then hold no GPU events.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from answers import late_lines, lines
from names import PLANTED, STORY
from nvidia_tools import by_ncu, by_nsys, run

HERE = Path(__file__).parent
RECORD_S = 12
START_S, STOP_S = 60.0, 30.0
MARKS = (".go", ".running", ".stop", ".profiled")
LAST_S = 20.0
"""Seconds kept for reading what was made."""


class Budget:
    """Seconds that are left of all."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def left(self, kept: float = LAST_S) -> float:
        return self.end - time.monotonic() - kept


class Player:
    """Plays the jobs one after the other on the GPU; the next one imports torch meanwhile."""

    def __init__(self, work: Path, budget: Budget) -> None:
        self.work, self.budget = work, budget
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def prepare(self, name: str) -> None:
        """Start the process, which waits for its turn."""
        if name in self.processes:
            return
        log = (self.work / f"{name}.log").open("wb")
        command = [sys.executable, str(HERE / "play.py"), name, str(self.work)]
        self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def play(self, name: str, following: str | None) -> str:
        """Until it has been profiled."""
        self.prepare(name)
        self.mark(name, "go")
        self.until(name, "running", START_S)
        became = self.record(name) if name in STORY else "not recorded"
        self.mark(name, "stop")
        if following is not None:
            self.prepare(following)
        self.until(name, "profiled", STOP_S)
        return became

    def record(self, name: str) -> str:
        """``gpuwhy record`` beside the running job."""
        file = self.work / f"{name}.gpuwhy.gz"
        begun = time.monotonic()
        status, text = run(gpuwhy("record", file, "--for", f"{RECORD_S}s"), RECORD_S + 25)
        return f"record: {status}, {time.monotonic() - begun:.1f} s, {text.strip()[-200:]}"

    def mark(self, name: str, what: str) -> None:
        (self.work / f"{name}.{what}").touch()

    def until(self, name: str, what: str, seconds: float) -> None:
        """Wait for a mark; raises TimeoutError or ChildProcessError with the log's end."""
        end = time.monotonic() + min(seconds, max(1.0, self.budget.left()))
        while not (self.work / f"{name}.{what}").exists():
            log = (self.work / f"{name}.log").read_text(errors="replace")[-600:]
            if self.processes[name].poll() is not None:
                raise ChildProcessError(f"{name} ended before it was {what}: {log}")
            if time.monotonic() > end:
                raise TimeoutError(f"{name} is not {what}: {log}")
            time.sleep(0.02)

    def close(self) -> None:
        """Wait for the files to be written."""
        for name, process in self.processes.items():
            for mark in ("go", "stop"):
                self.mark(name, mark)
            try:
                process.wait(max(1.0, self.budget.left()))
            except subprocess.TimeoutExpired:
                process.kill()


def gpuwhy(*arguments: object) -> list[str]:
    """A command of gpuwhy."""
    return [sys.executable, "-m", "gpuwhy.cli", *map(str, arguments)]


def answered(budget: Budget, arguments: Sequence[object]) -> tuple[int, str]:
    """What gpuwhy answers."""
    return run(gpuwhy(*arguments), budget.left(kept=3.0))


def guarded(what: Callable[[], object]) -> str:
    """One part fails, the others go on."""
    begun = time.monotonic()
    try:
        answer = str(what())
    except Exception as error:
        trace = traceback.format_exc().strip().splitlines()[-3:]
        answer = f"FAILED {type(error).__name__}: {error} ({' | '.join(trace)})"
    return f"{answer} ({time.monotonic() - begun:.1f} s)"


def two_ranks(work: Path, budget: Budget) -> str:
    """Two ranks, over NCCL or, with one GPU, gloo."""
    command = [sys.executable, str(HERE / "two_ranks.py"), str(work)]
    status, text = run(command, min(45.0, budget.left()))
    return "ok" if not status else f"status {status}: {text[-1200:]}"


def versions() -> dict[str, Any]:
    """Of what made the files; asked for in a process of its own, which then lets the GPU go."""
    ask = (
        "import json, sys, torch; cuda = torch.cuda.is_available(); print(json.dumps({"
        "'torch': torch.__version__, 'cuda': torch.version.cuda, 'python': sys.version.split()[0],"
        "'gpu': torch.cuda.get_device_name() if cuda else None,"
        "'gpus': torch.cuda.device_count()}))"
    )
    status, text = run([sys.executable, "-c", ask], 60)
    told = next((line for line in text.splitlines() if line.startswith("{")), None)
    return dict(json.loads(told)) if told and not status else {"failed": text}


def make(
    work: Path, budget: Budget, pool: Executor, became: dict[str, str], only: Sequence[str]
) -> Iterator[str]:
    """Make all files, or those of the parts named; what became of each part goes into ``became``,
    the answers are yielded."""
    played = [name for name in PLANTED if name in (only or PLANTED)]

    def part(name: str, least_s: float, what: Callable[[], object]) -> None:
        if only and name not in only:
            return
        left = budget.left()
        became[name] = guarded(what) if left > least_s else f"left out: {left:.0f} s left"
        print(f"{name:16} {became[name]}", flush=True)

    player = Player(work, budget)
    for name, following in zip(played, [*played[1:], None], strict=False):
        part(name, 10, partial(player.play, name, following))
    player.close()
    ask = partial(answered, budget)
    early = [pool.submit(guarded, line) for line in lines(work, ask)]
    part("ncu", 15, lambda: by_ncu(work, min(70.0, budget.left())))
    part("two_ranks", 12, lambda: two_ranks(work, budget))
    late = [pool.submit(guarded, line) for line in late_lines(work, ask)]
    part("nsys", 12, lambda: by_nsys(work, min(60.0, budget.left())))
    yield from (line.result() for line in (*early, *late))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--budget", type=float, default=165.0, help="seconds for all of it")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="such as nsys")
    options = parser.parse_args()
    budget = Budget(options.budget)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(HERE.parents[1] / "exporter"), os.environ.get("PYTHONPATH", "")]
    )
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(6) as pool:
        work, became = Path(folder), dict[str, str]()
        asked, table = pool.submit(versions), ""
        try:
            for line in make(work, budget, pool, became, options.only):
                print(line, flush=True)
                table += f"{line}\n"
        finally:
            manifest = json.dumps(asked.result() | {"became": became}, indent=1)
            (work / "manifest.json").write_text(manifest)
            (options.out / "table.txt").write_text(f"{manifest}\n{table}")
            pack(work, options.out / "traces.tar.gz")


def pack(work: Path, target: Path) -> None:
    """All that was made, but for the marks by which the processes told each other."""
    with tarfile.open(target, "w:gz") as tar:
        for path in sorted(work.iterdir()):
            if path.suffix not in MARKS:
                tar.add(path, path.name)


if __name__ == "__main__":
    main()
