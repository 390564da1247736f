"""Watching this host from a command: the observer process, its end, and progress on a terminal."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import TextIO

from gpuwhy.evidence.terminal import printable
from gpuwhy.observe import supervisor
from gpuwhy.observe.observation import Observation
from gpuwhy.pipeline import Pipeline
from gpuwhy.settings import Settings

NOTHING_AFTER_S = 10.0  # with no GPU and no job in sight by then there is nothing to wait for
GRACE_S = 6.0  # beyond the watermark of 2 to 3 s, for a source that lags

Clock = Callable[[], float]


def watch(settings: Settings, pipeline: Pipeline, for_s: float) -> Sight:
    """Feed the pipeline for ``for_s`` seconds from the first observation on, or until Ctrl-C."""
    sight = Sight()
    progress = Progress(sys.stderr, for_s)
    with ending_on_sigterm(), progress, observing(settings) as batches:
        try:
            feed(batches, pipeline, for_s, sight, progress)
        except KeyboardInterrupt:
            pipeline.finish()
    return sight


def feed(
    batches: Iterable[list[Observation]],
    pipeline: Pipeline,
    for_s: float,
    sight: Sight,
    progress: Progress,
    clock: Clock = time.monotonic,
) -> None:
    """Feed batches until the seconds watched are entered, with a bound on the wait for them.

    ``clock`` is one that nobody sets: where the host's is set back or forth meanwhile, the seconds
    that it tells are not those that were watched.
    """
    begun = clock()
    attached: float | None = None
    for batch in batches:
        pipeline.feed(batch)
        sight.add(batch)
        now = clock()
        if attached is None and not sight.empty:
            attached = now
        watched_s = 0.0 if attached is None else now - attached
        progress.show(watched_s, sight)
        if sight.since is None:
            if now > begun + NOTHING_AFTER_S:
                break
            continue
        entered = pipeline.latest is not None and pipeline.latest.t + 1 >= sight.since + for_s
        if entered and watched_s >= for_s:
            return
        if watched_s > for_s + GRACE_S:
            break
    pipeline.finish()


class Sight:
    """What is in sight, read off the observations themselves."""

    def __init__(self) -> None:
        self.since: float | None = None  # time of the first observation of a GPU or a job
        self._gpus: dict[str, str] = {}  # uuid -> name to show
        self._busy: dict[str, float] = {}
        self._runs: set[str] = set()
        self.refused: dict[str, str] = {}
        """Source -> why it sees nothing, and what mends that; its last word."""

    def add(self, observations: Iterable[Observation]) -> None:
        """Take note of GPUs, of what they do and of the runs."""
        for seen in observations:
            kind = seen["kind"]
            if kind == "gpu_info":
                self._gpus[seen["uuid"]] = str(seen.get("gpu", seen["uuid"]))
            elif kind == "gpm" and "graphics" in seen:
                self._busy[seen["uuid"]] = seen["graphics"]
            elif kind == "processes":
                ranks = [one for one in seen["processes"] if one.get("role") == "rank"]
                self._runs = {one.get("run", "") for one in ranks}
            elif kind == "source" and "pid" not in seen and "uuid" not in seen:
                self.refused.pop(seen["source"], None)
                if not seen.get("up", True):
                    self.refused[seen["source"]] = "; ".join(
                        seen[part] for part in ("why", "remedy") if seen.get(part)
                    )
            if self.since is None and not self.empty:
                self.since = float(seen["t"])

    @property
    def empty(self) -> bool:
        """Neither a GPU nor a job has been seen."""
        return not self._gpus and not self._runs

    def __str__(self) -> str:
        if self.empty:
            return "looking for GPUs and jobs"
        busy = [
            f"GPU {self._gpus[uuid]} {share * 100:.0f} %"
            for uuid, share in self._busy.items()
            if uuid in self._gpus
        ]
        jobs = f"{len(self._runs)} job{'' if len(self._runs) == 1 else 's'}"
        return ", ".join([jobs, *busy]) + (" busy" if busy else "")


def in_words(refused: Mapping[str, str]) -> str:
    """A line for each reason, behind the sources that gave it."""
    by_reason: dict[str, list[str]] = {}
    for name, said in sorted(refused.items()):
        by_reason.setdefault(said, []).append(name)
    return "".join(f"\n{', '.join(names)}: {said}" for said, names in by_reason.items())


class Progress:
    """One line on a terminal that says what is in sight while the watching goes on."""

    def __init__(self, stream: TextIO, for_s: float | None, word: str = "watching") -> None:
        self._stream = stream
        self._for_s = for_s
        self._word = word
        self._on = stream.isatty()
        self._line = ""

    def show(self, watched_s: float, sight: Sight | str) -> None:
        """Draw the line anew."""
        watched_s = max(0.0, watched_s)
        if self._for_s is None:
            self._draw(f"{self._word}: {watched_s:.0f} s, {sight}")
        elif watched_s <= self._for_s:
            self._draw(f"{self._word}: {watched_s:.0f} of {self._for_s:.0f} s, {sight}")
        else:
            self._draw(f"{self._word}: waiting for the last samples, {sight}")

    def _draw(self, line: str) -> None:
        if self._on and line != self._line:
            self._stream.write(f"\r\x1b[K{printable(line)[:78]}")
            self._stream.flush()
            self._line = line

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._draw("")


def observing(settings: Settings) -> AbstractContextManager[Iterator[list[Observation]]]:
    """Batches of what is observed on this host, at least two a second, looking closely."""
    return supervisor.observe({"pace": "close", "max_overhead": settings.max_overhead})


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Within it SIGTERM ends the watching as Ctrl-C does: what was seen is kept."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
