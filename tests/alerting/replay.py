"""Series as Prometheus would have scraped them: recordings played through pipeline and exporter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuwhy.expose import exposition
from gpuwhy.expose.state import State
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.playback import play

RECORDINGS = Path(__file__).parents[1] / "recordings"
SCRAPE_S = 5
TARGET = {"host": "recorded", "instance": "exporter:9877", "job": "gpuwhy"}
LABELS = tuple[tuple[str, str], ...]
Edit = Callable[[Observation, float], Iterable[Observation]]
"""What is observed instead of an observation, so many seconds into the replay."""


@dataclass
class Series:
    """A scraped series: its value at each scrape, None where it had no sample."""

    name: str
    labels: Mapping[str, str]
    values: list[float | None] = field(default_factory=list)


def recording(name: str) -> Path:
    """The path of a recording."""
    return RECORDINGS / f"{name}.gpuwhy.gz"


def as_it_is(observation: Observation, _: float) -> Iterable[Observation]:
    """No edit."""
    return [observation]


def replay(names: Sequence[str], seconds: float, edit: Edit = as_it_is) -> list[Series]:
    """So many seconds of the recordings, looping, scraped every ``SCRAPE_S``."""
    return scraped(play([recording(name) for name in names], None, loop=True), seconds, edit)


def scraped(
    observations: Iterable[Observation], seconds: float, edit: Edit = as_it_is
) -> list[Series]:
    """The series of an exporter fed with these, by name and labels."""
    found: dict[tuple[str, LABELS], Series] = {}
    now = [0.0]
    state = State(recorded=True, clock=lambda: now[0])
    start: float | None = None
    scrapes = 0
    for observation in observations:
        if start is None and observation["kind"] in ("ring", "stack"):
            continue  # they reach back before what is played
        start = float(observation["t"]) if start is None else start
        now[0] = max(now[0], float(observation["t"]))
        if now[0] - start > seconds:
            break
        state.feed(list(edit(observation, now[0] - start)))
        if now[0] >= start + scrapes * SCRAPE_S:
            _scrape(state, found, scrapes)
            scrapes += 1
    for series in found.values():
        series.values += [None] * (scrapes - len(series.values))
    return [*found.values(), Series("up", TARGET, [1.0] * scrapes)]


def _scrape(state: State, found: dict[tuple[str, LABELS], Series], before: int) -> None:
    _, _, collected = exposition.render(state.view(), "")
    for metric, samples in collected.samples.items():
        for values, value in samples.items():
            labels = {k: v for k, v in zip(metric.labels, values, strict=True) if v} | TARGET
            key = (metric.name, tuple(sorted(labels.items())))
            series = found.setdefault(key, Series(metric.name, labels))
            series.values += [None] * (before - len(series.values)) + [value]


def renamed(series: Iterable[Series], labels: Mapping[str, str]) -> list[Series]:
    """The same series with other values of those labels that they have."""
    return [
        Series(one.name, {k: labels.get(k, v) for k, v in one.labels.items()}, list(one.values))
        for one in series
    ]


def joined(first: Sequence[Series], second: Sequence[Series]) -> list[Series]:
    """One after the other: a job that is mended, or one that begins to fail."""
    length = max((len(one.values) for one in first), default=0)
    found = {(one.name, tuple(sorted(one.labels.items()))): one for one in first}
    result = {key: Series(one.name, one.labels, list(one.values)) for key, one in found.items()}
    for one in second:
        key = (one.name, tuple(sorted(one.labels.items())))
        series = result.setdefault(key, Series(one.name, one.labels, [None] * length))
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
