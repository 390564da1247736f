"""Where something changes: the ranks that are worth a closer look for a while."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from gpuwhy.observe.observation import Observation

RECENT_S = 5.0
BEFORE_S = 15.0
"""The mean activity of the last RECENT_S is compared with that of BEFORE_S before them."""
STEP_OF_ACTIVITY = 0.2
"""A change of mean activity (0 to 1) that is news: above the noise of jobs with long steps."""
CHANGE_OF_PACE = 0.3
"""Relative change of the step rate that is news."""
REST_S = 40.0
"""After a change the next one is news again: a job that swings all the time is no news."""


@dataclass(slots=True)
class _Pace:
    """The step counter of one rank, by its name, and the rate at which it last advanced."""

    name: tuple[Any, ...]
    t: float
    value: int
    rate: float | None = None


class Changes:
    """Feed it everything that is observed; it says in which ranks something changes."""

    def __init__(self) -> None:
        self._activity: dict[str, deque[tuple[float, float]]] = {}  # uuid -> (t, ratio)
        self._holders: dict[str, frozenset[int]] = {}
        self._families: dict[int, frozenset[int]] = {}  # rank -> its workers
        self._paces: dict[int, _Pace] = {}
        self._since: dict[int, float] = {}

    def see(self, observation: Observation) -> set[int]:
        """PIDs of the ranks in which this observation shows that something has changed."""
        kind, now = observation["kind"], float(observation["t"])
        pids: Iterable[int] = ()
        if kind == "gpm" and "graphics" in observation:
            pids = self._see_activity(observation["uuid"], now, float(observation["graphics"]))
        elif kind == "gpu_processes":
            holders = frozenset(p["pid"] for p in observation["processes"])
            self._holders[observation["uuid"]] = holders
        elif kind == "processes":
            pids = self._see_jobs(observation["processes"])
        elif kind == "locals":
            pids = self._see_steps(observation["pid"], now, observation["values"])
        news = {p for p in pids if p in self._families and self._is_news(p, now)}
        self._since.update(dict.fromkeys(news, now))
        return news

    def _is_news(self, pid: int, now: float) -> bool:
        return not 0.0 <= now - self._since.get(pid, now - REST_S) < REST_S

    def _see_activity(self, uuid: str, now: float, ratio: float) -> Iterable[int]:
        samples = self._activity.setdefault(uuid, deque())
        samples.append((now, ratio))
        while samples and samples[0][0] < now - RECENT_S - BEFORE_S:
            samples.popleft()
        recent = [value for t, value in samples if t > now - RECENT_S]
        before = [value for t, value in samples if t <= now - RECENT_S]
        enough = len(before) >= len(recent) > 3
        changed = enough and abs(fmean(recent) - fmean(before)) > STEP_OF_ACTIVITY
        return self._holders.get(uuid, ()) if changed else ()

    def _see_jobs(self, processes: Iterable[Mapping[str, Any]]) -> Iterable[int]:
        families: dict[int, set[int]] = {}
        for process in processes:
            if process.get("role") in ("rank", "worker"):
                families.setdefault(process["rank_pid"], set()).add(process["pid"])
        before = self._families
        self._families = {pid: frozenset(members) for pid, members in families.items()}
        self._since = {pid: t for pid, t in self._since.items() if pid in families}
        self._paces = {pid: pace for pid, pace in self._paces.items() if pid in families}
        return {pid for pid, family in self._families.items() if before.get(pid) != family}

    def _see_steps(self, pid: int, now: float, values: list[list[Any]]) -> Iterable[int]:
        """The innermost counter gives the rate."""
        counters = {tuple(value[:3]): int(value[3]) for value in values}
        known = self._paces.get(pid)
        if known is None or known.name not in counters or now <= known.t:
            for name, value in counters.items():
                self._paces[pid] = _Pace(name, now, value)
                break
            return ()
        value = counters[known.name]
        rate, before = (value - known.value) / (now - known.t), known.rate
        self._paces[pid] = _Pace(known.name, now, value, rate)
        changed = before is not None and before > 0 and abs(rate - before) > CHANGE_OF_PACE * before
        return (pid,) if changed and rate >= 0 else ()  # less: the next epoch has begun
