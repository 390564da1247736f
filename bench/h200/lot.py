"""A lot: slots one after the other, each recorded, checked and packed before the deadline."""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
import subprocess
import tarfile
import tempfile
import time
from argparse import Namespace
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.h200 import table
from bench.h200.job import Job, JobError
from bench.h200.packing import Place, Variants
from bench.h200.processes import end, spawn
from bench.h200.slot import STOP_S, Slot

SLOT_OVERHEAD_S = 35.0
"""What a slot takes beside its recording, as a guess for whether another one fits."""
MOST_FAILURES = 2
"""Recordings that may fail in a row before the machine's time is better saved."""
CHECK_S, LIVE_S, LARGEST = 60.0, 60.0, 4_000_000


class Lot:
    """The run: options, deadline, results."""

    def __init__(self, options: Namespace, variants: Variants) -> None:
        self.options, self.variants = options, variants
        self.deadline = time.monotonic() + float(options.limit)
        self.folder = Path(tempfile.mkdtemp(prefix="lot-"))
        self.tar = Path(options.out) / f"{options.name}.tar"
        self.tar.parent.mkdir(parents=True, exist_ok=True)
        self.tar.unlink(missing_ok=True)
        self.slots: list[Slot] = []
        self.checker = ThreadPoolExecutor(1)
        self.checks: list[Future[None]] = []
        self.failures = 0

    def left(self) -> float:
        """Seconds before the deadline."""
        return self.deadline - time.monotonic()

    def run(self, plan: list[list[Place]]) -> None:
        """All slots that fit; the next one loads its libraries while this one ends."""
        current = self._load(0, plan)
        while current:
            try:
                self._watch(current)
            except Exception as error:  # one slot must not end the lot
                self._fail(current, f"{type(error).__name__}: {error}")
            current.ask_to_stop()
            following = self._load(current.result["slot"] + 1, plan)
            current.stop(self.left())
            self.checks.append(self.checker.submit(self._check, current))
            current = following

    def close(self) -> None:
        """End every job, wait for the checks, print and pack the table."""
        for slot in self.slots:
            if "notes" not in slot.result["places"][-1]:
                slot.stop(0.0)
                self.checks.append(self.checker.submit(self._check, slot))
        for check in self.checks:
            if error := check.exception():
                say(f"check: {error!r}")
        self.checker.shutdown()
        lines = [row for slot in self.slots for row in table.rows(slot.result, slot.folder)]
        path = self.folder / "table.txt"
        path.write_text(table.text(lines) + "\n")
        say(path.read_text())
        self._pack(path, path.name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def recorded(self) -> int:
        """Slots with a recording and without an error."""
        good = (s for s in self.slots if s.result.get("recording_bytes"))
        return sum("error" not in slot.result for slot in good)

    def _load(self, number: int, plan: list[list[Place]]) -> Slot | None:
        if number >= len(plan):
            return None
        names = " ".join(place.variant for place in plan[number])
        if self.failures >= MOST_FAILURES:
            say(f"slot {number} ({names}) and all after it skipped: recording fails")
            return None
        if self.left() < self.options.seconds + SLOT_OVERHEAD_S:
            say(f"slot {number} ({names}) and all after it skipped: no time left")
            return None
        say(f"slot {number}: {names}, {self.left():.0f} s left")
        slot = Slot(number, plan[number], self.variants, self.folder)
        self.slots.append(slot)
        slot.load()
        return slot

    def _fail(self, slot: Slot, why: str) -> None:
        slot.result["error"] = why
        say(f"slot {slot.result['slot']}: {why}")

    def _watch(self, slot: Slot) -> None:
        result = slot.result
        ready = slot.open(self.options.settle, self.left() - self.options.seconds)
        for place in result["places"]:
            if "error" in place:
                say(f"  {place['error']}")
        if not ready:
            raise JobError("no job of this slot runs")
        recording = slot.folder / f"{slot.names}.gpuwhy.gz"
        result["recording"], result["t0"] = recording.name, time.time()
        try:
            self._record(ready, recording)
            self.failures = 0
        except JobError:
            self.failures += 1
            raise
        finally:
            result["t1"] = time.time()
            if recording.exists():
                result["recording_bytes"] = recording.stat().st_size
        if {job.variant for job in ready} & set(self.options.live.split(",")):
            result["live_t0"] = time.time()
            result["live"] = table.answer_of(self._output(self.options.diagnose_live, "", LIVE_S))
            result["live_t1"] = time.time()

    def _record(self, jobs: list[Job], recording: Path) -> None:
        """Run the recorder, and what has to happen meanwhile; raises ``JobError``."""
        seconds = min(self.options.seconds, max(self.left() - STOP_S - 5, 1))
        words = {"file": str(recording), "seconds": f"{seconds:.0f}"}
        log = recording.with_suffix(".log")
        recorder = spawn(shlex.split(self.options.record.format(**words)), {}, log)
        began, kills = time.monotonic(), [j for j in jobs if "kill_rank" in j.launch]
        try:
            while recorder.poll() is None:
                passed = time.monotonic() - began
                for job in [j for j in kills if passed > j.launch.get("kill_after_s", 20)]:
                    job.kill_rank(job.launch["kill_rank"])
                    kills.remove(job)
                if passed > seconds + 20 or self.left() < STOP_S:
                    raise JobError(f"the recorder did not end; it said {_tail(log)}")
                time.sleep(0.2)
        finally:
            end([recorder.pid], [recorder])
        if recorder.returncode:
            raise JobError(f"the recorder ended with {recorder.returncode}: {_tail(log)}")

    def _output(self, template: str, file: str, seconds: float) -> str:
        """What a command prints; what it complains of too, where it fails."""
        command = shlex.split(template.format(file=file))
        limit = max(min(seconds, self.left()), 1)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=limit, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            return f"{type(error).__name__}: {error}"
        return done.stdout if done.returncode == 0 else done.stdout + done.stderr

    def _check(self, slot: Slot) -> None:
        """In the background: diagnose the recording, print the rows, pack the slot."""
        result, folder = slot.result, slot.folder
        recording = folder / result.get("recording", "none")
        if recording.exists():
            output = self._output(self.options.diagnose, str(recording), CHECK_S)
            result["verdict"] = table.answer_of(output)
        say(table.text(table.rows(result, folder)))
        (folder / "result.json").write_text(json.dumps(result, indent=1))
        for path in sorted(folder.iterdir()):
            if path.suffix == ".jsonl":
                packed = path.with_suffix(".jsonl.gz")
                packed.write_bytes(gzip.compress(path.read_bytes()))
                self._pack(packed, f"{folder.name}/{packed.name}")
            elif path.suffix in (".gz", ".json", ".log"):
                self._pack(path, f"{folder.name}/{path.name}")

    def _pack(self, path: Path, name: str) -> None:
        if path.stat().st_size > LARGEST:
            say(f"  {name} is {path.stat().st_size} bytes: left out")
            return
        with tarfile.open(self.tar, "a") as archive:
            archive.add(path, name)


def _tail(log: Path) -> str:
    return " | ".join(log.read_text(errors="replace").strip().splitlines()[-3:])


def say(text: Any) -> None:
    """To standard output, at once, with the time."""
    print(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}", flush=True)
