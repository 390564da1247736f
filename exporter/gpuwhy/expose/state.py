"""What the exporter holds: fed by one thread, read by any number of scrapes without waiting.

The feeding thread publishes a new snapshot after each complete second, verdicts included; a scrape
takes the last one and never touches what the feeding thread writes. Verdicts over other windows,
and the history, are drawn by whoever asks, from entries that nobody changes any more.
"""

from __future__ import annotations

import logging
import platform
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gpuwhy
from gpuwhy.expose.facts import Facts, fresh
from gpuwhy.expose.limits import (
    GPUS,
    LINGER_S,
    OPEN_S,
    RANKS_WITHOUT_GPU,
    RECENT_S,
    RUNS_PER_GPU,
    STALE_S,
    VERDICT_S,
    WINDOW_S,
)
from gpuwhy.expose.view import Accounts, RunOn, Seen, Self, View
from gpuwhy.ledger.entry import Entry
from gpuwhy.ledger.verdict import verdict
from gpuwhy.observe.observation import Observation
from gpuwhy.pipeline import Pipeline
from gpuwhy.signals.row import Second

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Tallies:
    """Counts that outlive a scrape, guarded by ``lock``."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    dropped: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    notifications: int = 0

    def add(self, dropped: Counter[str], failures: Counter[str]) -> None:
        """Add what one scrape left out."""
        with self.lock:
            self.dropped.update(dropped)
            self.failures.update(failures)

    def failed(self, what: str) -> None:
        """Count one failure."""
        with self.lock:
            self.failures[what] += 1

    def notified(self, count: int) -> None:
        """Count notifications that were received."""
        with self.lock:
            self.notifications += count


class State:
    """The pipeline, the facts beside it, and the snapshot that scrapes read."""

    def __init__(
        self,
        *,
        recorded: bool = False,
        gpu_hour_price: float | None = None,
        overhead_limit: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.pipeline = Pipeline(open_s=OPEN_S)
        self.tallies = Tallies()
        self.clock = clock
        self._facts = Facts()
        self._recent: deque[Second] = deque(maxlen=RECENT_S)
        self._seen: dict[RunOn, float] = {}
        self._gpus: dict[str, Seen] = {}
        self._known: dict[str, Seen] = {}
        self._lock = threading.Lock()  # of what the feeding thread writes
        self._judged_at: int | None = None
        self._drawing = threading.Lock()
        self._drawn: dict[float | None, tuple[int | None, dict[str, Any]]] = {}
        self._about = Self(
            version=gpuwhy.__version__,
            python=platform.python_version(),
            recorded=recorded,
            window_s=WINDOW_S,
            gpu_hour_price=gpu_hour_price,
            overhead_limit=overhead_limit,
        )
        self._snapshot = View(now=0.0, about=self._about)

    def feed(self, observations: Sequence[Observation]) -> None:
        """Take a batch in; publish a new snapshot if it completed a second or told of a source."""
        with self._lock:
            self._facts.add(observations)
            seconds = self.pipeline.feed(observations)
            for second in seconds:
                self._note(second)
        if seconds:
            self._snapshot = self._publish()
        elif any(o.get("kind") == "source" for o in observations):
            self._snapshot = replace(self._snapshot, facts=self._facts.copy())

    def finish(self) -> None:
        """Complete what is left at the end of a recording."""
        with self._lock:
            for second in self.pipeline.finish():
                self._note(second)
        self._judged_at = None
        self._snapshot = self._publish()

    def view(self) -> View:
        """The last snapshot as it stands now: without what has become stale."""
        now, snapshot = self.clock(), self._snapshot
        second = snapshot.second
        current = second is not None and now - (second.t + 1) <= STALE_S
        return replace(
            snapshot,
            now=now,
            second=second if current else None,
            verdicts=snapshot.verdicts if current else None,
            seen={on: t for on, t in snapshot.seen.items() if now - t <= LINGER_S},
            gpus={uuid: gpu for uuid, gpu in snapshot.gpus.items() if now - gpu.t <= LINGER_S},
            facts=fresh(snapshot.facts, now),
            about=self._about_now(),
        )

    def verdicts(self, window_s: float | None) -> dict[str, Any]:
        """The object of ``gpuwhy diagnose --json``; over all that is kept where no window is.

        Drawn once a second for each window, however many ask.
        """
        with self._drawing:
            with self._lock:
                last, stretch = self._last_t(), self.pipeline.book.stretch(window_s)
            drawn = self._drawn.get(window_s)
            if drawn is None or drawn[0] != last:
                kept = {window: one for window, one in self._drawn.items() if one[0] == last}
                drawn = last, verdict(list(stretch))
                self._drawn = {**kept, window_s: drawn}
            return drawn[1]

    def entries(self, since: float = 0.0) -> Iterable[Entry]:
        """The seconds kept, as they were entered, from this UTC second on; each read once."""
        with self._lock:
            return self.pipeline.book.recent.since(since)

    def _last_t(self) -> int | None:
        return self._recent[-1].t if self._recent else None

    def _about_now(self) -> Self:
        with self.tallies.lock:
            return replace(
                self._about,
                dropped=dict(self.tallies.dropped),
                failures=dict(self.tallies.failures),
                notifications=self.tallies.notifications,
            )

    def _note(self, second: Second) -> None:
        """Remember who was there in this second, and forget who has long been gone."""
        last = self._last_t()
        if last is not None and second.t < last:  # the clock was set back
            self._recent.clear()
            self._seen, self._gpus = {}, {}
        self._recent.append(second)
        end = second.t + 1.0
        for row in second.rows:
            uuid = row.gpu.uuid if row.gpu else None
            if row.gpu is not None:
                seen = Seen(end, _text(row.gpu.gpu), row.gpu.mig or "")
                self._gpus[row.gpu.uuid] = self._known[row.gpu.uuid] = seen
            for signals in row.runs:
                self._seen[(uuid, signals.run, signals.rank)] = end
        self._seen = {on: t for on, t in self._seen.items() if end - t <= LINGER_S}
        self._gpus = {uuid: gpu for uuid, gpu in self._gpus.items() if end - gpu.t <= LINGER_S}
        self._known = _bounded_gpus(self._known)

    def _publish(self) -> View:
        """Only the feeding thread comes here, and only it writes: it needs no lock to read."""
        book, last = self.pipeline.book, self._recent[-1] if self._recent else None
        gpus = _bounded_gpus(self._gpus)
        seen = _bounded_runs(self._seen, gpus)
        return View(
            now=self.clock(),
            second=last,
            recent=tuple(self._recent),
            accounts=Accounts(
                dict(book.device), dict(book.run), dict(book.observed), dict(book.held)
            ),
            seen=seen,
            gpus=gpus,
            known=dict(self._known),
            facts=self._facts.copy(),
            verdicts=self._judged(last.t) if last else None,
            last_t=last.t if last else None,
            left_out=len(self._seen) - len(seen) + len(self._gpus) - len(gpus),
            about=self._about,
        )

    def _judged(self, now: int) -> Mapping[str, Any] | None:
        """The verdicts over the window, drawn anew every ``VERDICT_S``: of a minute, one second
        tells little. A failure of theirs leaves the rest of the view whole."""
        if self._judged_at is not None and 0 < now - self._judged_at < VERDICT_S:
            return self._snapshot.verdicts
        self._judged_at = now
        try:
            return self.pipeline.verdicts(WINDOW_S)
        except Exception:
            log.exception("no verdict could be drawn")
            self.tallies.failed("verdict")
            return None


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _bounded_gpus(gpus: dict[str, Seen]) -> dict[str, Seen]:
    latest = sorted(gpus.items(), key=lambda item: -item[1].t)[:GPUS]
    return dict(sorted(latest))


def _bounded_runs(seen: dict[RunOn, float], gpus: dict[str, Seen]) -> dict[RunOn, float]:
    """The ranks seen last, so many for each GPU: a job that restarts under new names all the time
    must not grow the exposition."""
    kept: dict[RunOn, float] = {}
    counts: Counter[str | None] = Counter()
    for on, t in sorted(seen.items(), key=lambda item: (-item[1], str(item[0]))):
        uuid = on[0]
        most = RANKS_WITHOUT_GPU if uuid is None else RUNS_PER_GPU
        if counts[uuid] < most and (uuid is None or uuid in gpus):
            counts[uuid] += 1
            kept[on] = t
    return kept
