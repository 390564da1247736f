"""Series as Prometheus would have scraped them: recordings played through pipeline and exporter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuwhy.expose import exposition
from gpuwhy.expose.state import State
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.playback import play

RECORDINGS = Path(__file__).parents[1] / "recordings"
SCRAPE_S = 5
"""The scrape interval of prometheus.yml."""
TARGET = {"host": "recorded", "instance": "exporter:9877", "job": "gpuwhy"}
Key = tuple[str, tuple[tuple[str, str], ...]]
Edit = Callable[[Observation, float], Iterable[Observation]]
"""What is observed instead of an observation, so many seconds into the replay."""


@dataclass
class Series:
    """A scraped series: its value at each scrape, None where it had no sample."""

    name: str
    labels: Mapping[str, str]
    values: list[float | None] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """What tells it from others."""
        return (self.name, tuple(sorted(self.labels.items())))


def recording(name: str) -> Path:
    """The path of a recording."""
    return RECORDINGS / f"{name}.gpuwhy.gz"


def as_it_is(observation: Observation, _: float) -> Iterable[Observation]:
    """No edit."""
    return [observation]


def replay(
    names: Sequence[str],
    seconds: float,
    edit: Edit = as_it_is,
    step: float = SCRAPE_S,
    **state: Any,
) -> list[Series]:
    """So many seconds of the recordings, looping, scraped every ``step`` seconds.

    ``state`` are options of the exporter's state.
    """
    observations = play([recording(name) for name in names], None, loop=True)
    return _Scraping(seconds, edit, step, state).run(observations)


class _Scraping:
    """An exporter fed with observations and scraped at even steps of their time."""

    def __init__(self, seconds: float, edit: Edit, step: float, options: Mapping[str, Any]) -> None:
        self._seconds, self._edit, self._step = seconds, edit, step
        self._now = self._start = 0.0
        self._scrapes = 0
        self._found: dict[Key, Series] = {}
        self._state = State(recorded=True, clock=lambda: self._now, **options)

    def run(self, observations: Iterable[Observation]) -> list[Series]:
        for observation in observations:
            if not self._start:
                if observation["kind"] in ("ring", "stack"):
                    continue  # they reach back before what is played
                self._start = float(observation["t"])
            self._now = max(self._now, float(observation["t"]))
            since = self._now - self._start
            if since > self._seconds:
                break
            self._state.feed(list(self._edit(observation, since)))
            while since >= self._scrapes * self._step:
                self._scrape()
        for series in self._found.values():
            series.values += [None] * (self._scrapes - len(series.values))
        return [*self._found.values(), Series("up", TARGET, [1.0] * self._scrapes)]

    def _scrape(self) -> None:
        """The time of the rules' tests begins at 0: so do time stamps among the values."""
        _, _, collected = exposition.render(self._state.view(), "")
        self._state.tallies.add(collected.dropped, collected.failures)
        for metric, samples in collected.samples.items():
            shift = self._start if metric.name.endswith("_timestamp_seconds") else 0.0
            for values, value in samples.items():
                labels = {k: v for k, v in zip(metric.labels, values, strict=True) if v}
                made = Series(metric.name, labels | TARGET)
                series = self._found.setdefault(made.key, made)
                series.values += [None] * (self._scrapes - len(series.values)) + [value - shift]
        self._scrapes += 1


def repeated(series: Iterable[Series], first: int, times: int) -> list[Series]:
    """The scrapes from ``first`` on so many times more; counters count on."""
    result = []
    for one in series:
        block = one.values[first:]
        known = [value for value in one.values[first - 1 :] if value is not None]
        counts = one.name.endswith("_total") and known
        grown = known[-1] - known[0] if counts else 0.0
        values = list(one.values)
        for n in range(1, times + 1):
            values += [None if v is None else v + n * grown for v in block]
        result.append(Series(one.name, one.labels, values))
    return result


def lasting(series: Iterable[Series], scrapes: int) -> list[Series]:
    """The last scrape so many times more: what is no more counts no more."""
    return [Series(one.name, one.labels, one.values + one.values[-1:] * scrapes) for one in series]


def renamed(series: Iterable[Series], labels: Mapping[str, str]) -> list[Series]:
    """The same series with other values of those labels that they have."""
    return [
        Series(one.name, {k: labels.get(k, v) for k, v in one.labels.items()}, list(one.values))
        for one in series
    ]


def joined(first: Sequence[Series], second: Sequence[Series]) -> list[Series]:
    """One after the other: a job that is mended, or one that begins to fail."""
    length = max((len(one.values) for one in first), default=0)
    result = {one.key: Series(one.name, one.labels, list(one.values)) for one in first}
    for one in second:
        series = result.setdefault(one.key, Series(one.name, one.labels, [None] * length))
        series.values += one.values
    total = max(len(one.values) for one in result.values())
    for series in result.values():
        series.values += [None] * (total - len(series.values))
    return list(result.values())


def ended(series: Iterable[Series], scrapes: int) -> list[Series]:
    """Followed by so many scrapes in which only ``up`` is there."""
    return [
        Series(one.name, one.labels, one.values + [1.0 if one.name == "up" else None] * scrapes)
        for one in series
    ]
