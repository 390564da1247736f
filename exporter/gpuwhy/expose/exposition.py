"""The exposition: the families collected one by one, isolated, bounded, and written as text.

Complete before anything is served. A family that fails, or for which no time is left, is left out,
counted and logged; the others are served.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from gpuwhy.expose.catalogue import FAMILIES
from gpuwhy.expose.families import exporter
from gpuwhy.expose.limits import LABEL_LENGTH
from gpuwhy.expose.metric import Metric, Sample, Samples
from gpuwhy.expose.view import View

log = logging.getLogger(__name__)

SCOPES: Mapping[str, tuple[str, ...]] = {
    "GPU": ("uuid",),
    "GPU and run": ("uuid", "run", "rank"),
    "run": ("run",),
    "source": ("source",),
    "port": ("device", "port"),
    "family": ("family", "kind"),
    "host": (),
}
"""The labels that tell one of a scope from another: ``Metric.bound`` is per their values."""


@dataclass(slots=True)
class Collected:
    """What one scrape found: samples by metric, and what was left out, by family."""

    samples: dict[Metric, dict[tuple[str, ...], float]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    durations: dict[str, float] = field(default_factory=dict)

    @property
    def series(self) -> int:
        """Number of samples."""
        return sum(map(len, self.samples.values()))


def collect(
    view: View,
    deadline: float = math.inf,
    families: Mapping[str, ModuleType] = FAMILIES,
    clock: Callable[[], float] = time.monotonic,
) -> Collected:
    """Collect every family but the exporter's own, which is told of the others at the end."""
    found = Collected()
    for name, family in families.items():
        if family is exporter:
            continue
        started = clock()
        if started >= deadline:
            found.failures[name] += 1
            log.warning("no time left to collect a family", extra={"family": name})
            continue
        _collect_one(name, partial(family.collect, view), found)
        found.durations[name] = clock() - started
    return found


def _collect_one(name: str, samples: Callable[[], Samples], found: Collected) -> None:
    """All of a family or nothing of it."""
    try:
        complete = _bounded(samples())
    except Exception:  # whatever it is, the other families are served
        found.failures[name] += 1
        log.exception("a metric family failed and is left out", extra={"family": name})
        return
    kept, dropped = complete
    found.samples.update(kept)
    if dropped:
        found.dropped[name] += dropped
        log.warning("series left out", extra={"family": name, "series": dropped})


def _bounded(
    samples: Iterable[Sample],
) -> tuple[dict[Metric, dict[tuple[str, ...], float]], int]:
    """Samples by metric, without values that are not known and beyond no metric's bound."""
    kept: dict[Metric, dict[tuple[str, ...], float]] = {}
    counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
    dropped = 0
    for metric, values, value in samples:
        if value is None or not math.isfinite(value):
            continue
        labels = tuple(map(label_value, values))
        series = kept.setdefault(metric, {})
        if labels not in series:
            scope = (metric.name, _scope(metric, labels))
            counts[scope] += 1
            if counts[scope] > metric.bound:
                dropped += 1
                continue
        series[labels] = float(value)
    return kept, dropped


def _scope(metric: Metric, labels: tuple[str, ...]) -> tuple[str, ...]:
    wanted = SCOPES[metric.scope]
    return tuple(value for name, value in zip(metric.labels, labels, strict=True) if name in wanted)


def label_value(text: str) -> str:
    """Any text as a label value: valid UTF-8, printable, of bounded length."""
    if len(text) > LABEL_LENGTH:
        text = text[: LABEL_LENGTH - 1] + "…"
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def render(view: View, accept: str, deadline: float = math.inf) -> tuple[bytes, str, Collected]:
    """The exposition in the format that ``accept`` asks for, its content type, and what was found.

    ``deadline`` is a time of ``time.monotonic``.
    """
    found = collect(view, deadline)
    about = replace(
        view.about,
        dropped=_added(view.about.dropped, found.dropped),
        failures=_added(view.about.failures, found.failures),
    )
    told = replace(view, about=about)
    own = partial(exporter.collect, told, found.durations, found.series)
    _collect_one("exporter", own, found)
    encoder, content_type = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Ready(found.samples))
    return encoder(registry), content_type, found


def _added(before: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return dict(Counter(before) + Counter(more))


class _Ready(Collector):
    """Hands samples that are already there to the client library's encoder."""

    def __init__(self, samples: Mapping[Metric, Mapping[tuple[str, ...], float]]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Family]:
        for metric, series in self._samples.items():
            yield _family(metric, series)


def _family(metric: Metric, series: Mapping[tuple[str, ...], float]) -> Family:
    if metric.kind == "info":
        info = InfoMetricFamily(metric.name.removesuffix("_info"), metric.help)
        for labels in series:
            info.add_metric([], dict(zip(metric.labels, labels, strict=True)))
        return info
    if metric.kind == "counter":
        family: CounterMetricFamily | GaugeMetricFamily = CounterMetricFamily(
            metric.name.removesuffix("_total"), metric.help, labels=metric.labels, unit=metric.unit
        )
    else:
        family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels, unit=metric.unit)
    for labels, value in series.items():
        family.add_metric(labels, value)
    return family
