"""The job's own account of its time, one JSON object a line in ``TRUTH_FILE``.

``header``  variant, fault, rank, pid, GPUs, pace without the fault (seconds a step)
``start``   the training loop begins; ``fault_from`` is when the planted cost sets in
``step``    ``t0``, ``t`` (UTC), and ``laps``: what the host did, in order, with seconds
``gpu``     the same laps on the device, between CUDA events read once they are long past
``pause``   a checkpoint, an evaluation, a compilation: ``t0``, ``t1``
``kernels`` kernel and copy seconds a step, profiled after the job was told to stop
``end``     the job ended by itself

All ranks append to the same file; a line is never split. SIGTERM asks the job to stop.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loader_state import loader_state
from options import Options
from pace import Pace

FLUSH_S = 0.1
TAIL_STEPS, TAIL_S = 8, 5.0


class Clock:
    """Attributes time since the last call to a lap of the step; ``step`` closes the step."""

    def __init__(self, options: Options, device: Any = None) -> None:
        self.options, self.pid = options, os.getpid()
        self.path = os.environ.get("TRUTH_FILE")
        append = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self.handle = os.open(self.path, append, 0o644) if self.path else None
        self.lines: list[bytes] = []
        self.flushed = 0.0
        self.events = _device_events(device)
        self.tail: Any = None
        self.told = False
        self.listen()

    def listen(self) -> None:
        """Take SIGTERM; once more where a framework has taken it since."""
        signal.signal(signal.SIGTERM, self._on_term)

    def header(self, pace: Pace | None, **more: Any) -> None:
        """Say who this is and how fast it runs without the fault."""
        options, entry = self.options, self.options.entry
        keys = ("job", "strength", "framework", "way", "functions", "baseline", "settings")
        self._write(
            "header",
            variant=options.variant,
            **{key: entry.get(key) for key in keys},
            fault=options.fault,
            world_size=options.world_size,
            scale=options.scale,
            pid=self.pid,
            gpus=_gpus(),
            step_s=pace and pace.step_s,
            dispatch_s=pace and pace.dispatch_s,
            **more,
        )

    def start(self) -> float:
        """The loop begins now; returns the UTC second from which planted costs apply."""
        fault_from = time.time() + float(self.options.get("after_s", 0.0))
        self._write("start", fault_from=fault_from)
        self.flush()
        self.laps: list[tuple[str, float]] = []
        self.began = self.last = self.loop_began = time.time()
        if self.events:
            self.events.restart()
        return fault_from

    def lap(self, name: str) -> None:
        """The time since the last lap went to ``name``."""
        now = time.time()
        self.laps.append((name, now - self.last))
        self.last = now
        if self.events:
            self.events.lap(name)

    def step(self, step: int, batches: Any = None) -> bool:
        """Close step ``step``; true when the loop has to end."""
        laps = [[name, round(seconds, 6)] for name, seconds in self.laps]
        queue = loader_state(batches) if batches is not None else {}
        self._write("step", step=step, t0=self.began, t=self.last, laps=laps, **queue)
        if self.events:
            for line in self.events.close(step):
                self._write("gpu", **line)
        self.laps, self.began = [], self.last
        if self.last - self.flushed > FLUSH_S:
            self.flush()
        return self._is_over(step)

    @contextmanager
    def pause(self, name: str) -> Iterator[None]:
        """A pause that is no fault: checkpoint, evaluation, startup."""
        t0 = time.time()
        yield
        self._write("pause", name=name, t0=t0, t1=time.time())
        self.lap(name)

    def finish(self) -> None:
        """The job ends by itself."""
        self._write("end")
        self.flush()

    def note(self, kind: str, **fields: Any) -> None:
        """A line of another kind, written at once."""
        self._write(kind, **fields)
        self.flush()

    def flush(self) -> None:
        """Hand every complete line to the kernel in one write."""
        if self.handle is not None and self.lines:
            os.write(self.handle, b"".join(self.lines))
        self.lines, self.flushed = [], time.time()

    def _write(self, kind: str, **fields: Any) -> None:
        line = {"kind": kind, "rank": self.options.rank, "t": time.time(), **fields}
        self.lines.append(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _on_term(self, *_: object) -> None:
        if os.getpid() == self.pid:  # a forked worker inherits the handler, and goes on
            self.told = True

    def _is_over(self, step: int) -> bool:
        """Whether the loop ends here; on a GPU some steps are profiled first."""
        if self.tail is None:
            tail_steps = self._tail_steps(step)
            if tail_steps and self.events:
                return self._profile(lambda module: module.DeviceTail(tail_steps))
            if tail_steps:
                self.finish()
            return tail_steps > 0
        return self.tail.enough() and self._profile(lambda _: self.tail.stop())

    def _profile(self, do: Callable[[Any], Any]) -> bool:
        """Begin or end profiling; a profiler that fails is told of, and ends the job."""
        try:
            import device_tail

            done = do(device_tail)
        except Exception as error:
            self._write("note", error=f"{type(error).__name__}: {error}")
        else:
            if not isinstance(done, dict):
                self.tail = done
                return False
            self._write("kernels", **done)
        self.finish()
        return True

    def _tail_steps(self, step: int) -> int:
        """Steps to profile from now on; 0 while the job goes on.

        Ranks run ahead of each other by what is queued, so rank 0 names a step about a second
        ahead in a file beside the truth, and how many steps follow: all ranks count the same.
        """
        length_s = max((self.last - self.loop_began) / (step + 1), 1e-4)
        tail = min(max(round(TAIL_S / length_s), 2), TAIL_STEPS)
        if self.options.world_size == 1 or not self.path:
            return tail if self.told else 0
        agreed = Path(self.path + ".stop")
        if self.told and self.options.rank == 0 and not agreed.exists():
            fresh = agreed.with_suffix(".new")
            fresh.write_text(f"{step + min(max(round(1 / length_s), 2), 16)} {tail}")
            fresh.rename(agreed)
        if not agreed.exists():
            return 0
        last, tail = map(int, agreed.read_text().split())
        return tail if step >= last else 0


def _device_events(device: Any) -> Any:
    """CUDA events for a PyTorch job on a GPU; torch is not loaded for any other."""
    if getattr(device, "type", None) != "cuda":
        return None
    from device_events import DeviceEvents

    return DeviceEvents()


def _gpus() -> list[str]:
    """UUIDs of the GPUs that the process sees, empty without one."""
    import sys

    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return []
    count = torch.cuda.device_count()
    return [f"GPU-{torch.cuda.get_device_properties(i).uuid}" for i in range(count)]
