"""Series for a Prometheus: recordings played through the pipeline and the exposition.

A scrape's text is that of the exporter; a time stamp and what Prometheus itself adds are put to
each sample: ``job``, ``instance``, ``host``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpuwhy.expose import exposition
from gpuwhy.expose.state import State
from gpuwhy.observe.playback import play

RECORDINGS = Path(__file__).parent.parent / "recordings"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
PRICE = 3.5
"""Price of a GPU-hour on every host here."""
SCRAPE_S = 5.0
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \S+)?$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Labels = dict[str, str]
Sample = tuple[str, Labels, str]
"""Name, labels, value as it is written."""


def scrapes(names: Sequence[str], seconds: float) -> Iterator[tuple[float, list[Sample]]]:
    """When, and what, each scrape of a host gives on which these recordings play side by side,
    over and over. Times are those of the first recording."""
    now = 0.0
    state = State(recorded=True, gpu_hour_price=PRICE, clock=lambda: now)
    paths = [RECORDINGS / f"{name}.gpuwhy.gz" for name in names]
    due = end = 0.0
    for observation in play(paths, loop=True):
        t = float(observation["t"])
        if observation["kind"] == "gpu" and not due:
            due, end = t + SCRAPE_S, t + seconds
        while due and due < t:
            now = due
            yield now, samples(exposition.render(state.view(), OPENMETRICS)[0].decode())
            due += SCRAPE_S
            if due > end:
                return
        state.feed([observation])


def samples(text: str) -> list[Sample]:
    """The samples of an exposition in either text format."""
    found = []
    for text_line in text.splitlines():
        match = _SAMPLE.match(text_line)
        if match and not text_line.startswith("#"):
            found.append((match[1], dict(_LABEL.findall(match[2] or "")), match[3]))
    return found


def lines(
    t: float,
    found: Sequence[Sample],
    added: Mapping[str, str],
    changed: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[str]:
    """OpenMetrics lines of one scrape; ``changed`` has new values for old ones, by label."""
    for name, labels, value in found:
        put = {**labels, **added}
        for label, values in (changed or {}).items():
            if label in put:
                put[label] = values.get(put[label], put[label])
        inside = ",".join(f'{key}="{text}"' for key, text in put.items())
        yield f"{name}{{{inside}}} {value} {t:.3f}\n"


def target(job: str, host: str, port: int) -> Labels:
    """What Prometheus adds to the samples of a target."""
    return {"job": job, "instance": f"{host}:{port}", "host": host}
