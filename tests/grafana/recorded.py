"""Hosts as a Prometheus would have scraped them, as OpenMetrics text with time stamps.

Recordings are played through the pipeline and the exposition; dcgm-exporter's part is its own
output; what recordings cannot show (a host on which everything is known, MIG, a crowd of GPUs) is
a view of the exporter made by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import yaml
from tests.alerting import promtool, two_hosts
from tests.alerting.replay import SCRAPE_S, Edit, Series, as_it_is, replay
from tests.expose import samples

from gpuwhy.expose import exposition
from gpuwhy.expose.view import View
from gpuwhy.observe.observation import Observation
from gpuwhy.signals.row import Second

END = 1_700_000_400
"""When all series end, Unix s: a multiple of every step that Grafana takes for a week or less."""
SECONDS = 330
"""How long they are: a little more than the look-back of Prometheus."""
SCRAPES = SECONDS // SCRAPE_S
PRICE = 3.5
"""Of a GPU-hour, where it is set."""
DCGM = Path(__file__).parents[3] / "shared/public-data/dcgm-exporter"
"""Real outputs of dcgm-exporter beside the project; absent elsewhere."""

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \S+)?$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def target(job: str, host: str, port: int) -> dict[str, str]:
    """What Prometheus adds to the samples of a target."""
    return {"job": job, "instance": f"{host}:{port}", "host": host}


def played(names: Sequence[str], host: str, edit: Edit = as_it_is) -> Iterator[Series]:
    """A host on which these recordings play side by side."""
    for series in replay(names, SECONDS, edit):
        labels = {**series.labels, **target("gpuwhy", host, 9877)}
        yield Series(series.name, labels, series.values[-SCRAPES:])
    yield Series("gpuwhy_gpu_hour_price", target("gpuwhy", host, 9877), [PRICE] * SCRAPES)


def without_stacks(o: Observation, _: float) -> Iterable[Observation]:
    """What is observed where py-spy may not look."""
    return [] if o["kind"] in ("stack", "locals") else [o]


def over_two_hosts(name: str, run: str) -> Iterator[Series]:
    """A recorded job of two ranks, each on a host of its own; what one exporter tells is known a
    scrape later than what the other one does."""
    for series in two_hosts.series(name, SECONDS, run=run, ras=True):
        values = series.values
        if series.labels["host"] == two_hosts.HOSTS[1]:
            values = values[:-1]
        yield Series(series.name, series.labels, values[-SCRAPES:])


def firing(alert: str, **where: str) -> Series:
    """An alert that fires in the last minute, with the labels that the rules give it."""
    return Series("ALERTS", _labels(alert, where), [1] * 12)


def ended(alert: str, **where: str) -> Series:
    """One that fired at the beginning: by Prometheus' look-back it ends just before all does."""
    return Series("ALERTS", _labels(alert, where), [1, *[None] * SCRAPES])


def _labels(alert: str, where: Mapping[str, str]) -> dict[str, str]:
    rules = [
        rule
        for path in promtool.RULES
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    ]
    labels = next(rule["labels"] for rule in rules if rule.get("alert") == alert)
    return {"alertname": alert, "alertstate": "firing", **labels, **where}


def answered(text: str, added: Mapping[str, str]) -> Iterator[Series]:
    """An exporter that gives this exposition at each scrape; counters grow by their value."""
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match and not line.startswith("#"):
            labels = {**dict(_LABEL.findall(match[2] or "")), **added}
            value, grows = float(match[3]), match[1].endswith("_total")
            yield Series(match[1], labels, [value * (1 + grows * i) for i in range(SCRAPES)])
    yield Series("up", added, [1.0] * SCRAPES)
    yield Series("scrape_duration_seconds", added, [0.01] * SCRAPES)


def viewed(view: View, host: str) -> Iterator[Series]:
    """A host whose exporter gives this view at each scrape."""
    text, _, _ = exposition.render(view, "")
    yield from answered(text.decode(), target("gpuwhy", host, 9877))


def everything() -> View:
    """A host on which every source and field is known."""
    known = samples.view()
    return replace(known, about=replace(known.about, gpu_hour_price=PRICE))


def mig(uuid: str, parent: str, instance: str) -> View:
    """A host with one MIG instance: the driver tells no utilisation and has no ring of it."""
    gpu = samples.gpu(
        uuid=uuid, mig=instance, utilization=None, memory_utilization=None, busy_source="gpm"
    )
    return _of_gpus([gpu], {"parent_uuid": parent, "mig": instance}, {"utilization_ring"})


def crowd(count: int) -> View:
    """A host with many GPUs, each with a rank of one run."""
    return _of_gpus([samples.gpu(uuid=f"GPU-crowd-{i}", gpu=i) for i in range(count)], {}, set())


def unseen() -> View:
    """A host with a rank whose GPU is not in sight."""
    whole = samples.view()
    row = samples.GpuRow(None, (samples.rank(),), frozenset(samples.SOURCES))
    on, verdicts = (None, samples.RUN, 0), whole.verdicts or {}
    return replace(
        whole,
        second=samples.second(rows=[row]),
        recent=tuple(Second(t, (row,), {}) for t in range(samples.T - 5, samples.T + 1)),
        accounts=samples.Accounts(),
        seen={on: samples.T + 1.0},
        gpus={},
        facts={},
        verdicts={
            **verdicts,
            "gpus": [{**entry, "uuid": None, "gpu": None} for entry in verdicts["gpus"]],
        },
    )


def _of_gpus(gpus: Sequence[samples.GpuSignals], info: Mapping[str, str], blind: set[str]) -> View:
    whole = samples.view()
    ranks = [samples.rank(rank=i) for i in range(len(gpus))]
    rows = tuple(
        samples.GpuRow(gpu, (rank,), frozenset(samples.SOURCES) - blind)
        for gpu, rank in zip(gpus, ranks, strict=True)
    )
    on = [(gpu.uuid, samples.RUN, i) for i, gpu in enumerate(gpus)]
    entry = whole.verdicts["gpus"][0] if whole.verdicts else {}
    return replace(
        whole,
        second=samples.second(rows=rows),
        recent=tuple(Second(t, rows, {}) for t in range(samples.T - 5, samples.T + 1)),
        accounts=samples.Accounts(
            {(u, r, a, ""): 5.0 for u, r, _ in on for a in ("data", "compute")},
            {(u, r, i, a, ""): 5.0 for u, r, i in on for a in ("data", "compute")},
            {u: 10.0 for u, _, _ in on},
            dict.fromkeys(on, 10.0),
        ),
        seen=dict.fromkeys(on, samples.T + 1.0),
        gpus={g.uuid: samples.Seen(samples.T + 1.0, str(g.gpu), g.mig or "") for g in gpus},
        facts={
            "gpu_info": {
                g.uuid: {"t": samples.T, "kind": "gpu_info", **_card(g), **info} for g in gpus
            }
        },
        verdicts={
            **(whole.verdicts or {}),
            "gpus": [
                {**entry, "uuid": g.uuid, "gpu": g.gpu, "mig": g.mig, "rank": i}
                for i, g in enumerate(gpus)
            ],
        },
    )


def _card(gpu: samples.GpuSignals) -> dict[str, object]:
    return {"uuid": gpu.uuid, "gpu": gpu.gpu, "name": gpu.name, "architecture": "Hopper"}


def dcgm(name: str, host: str, changed: Mapping[str, str] | None = None) -> Iterator[Series]:
    """A host with dcgm-exporter: one of the real outputs, some label values replaced."""
    text = (DCGM / name).read_text(encoding="utf-8")
    for old, new in (changed or {}).items():
        text = text.replace(f'"{old}"', f'"{new}"')
    # The scrape configuration drops the host name that the exporter's container has.
    text = re.sub(r',?Hostname="[^"]*"', "", text)
    yield from _once(answered(text, target("dcgm-exporter", host, 9400)))


def _once(series: Iterable[Series]) -> Iterator[Series]:
    """The recorded outputs hold each sample twice: one of each."""
    found = {(s.name, *sorted(s.labels.items())): s for s in series}
    return iter(found.values())


def openmetrics(series: Iterable[Series]) -> Iterator[str]:
    """Lines for ``promtool tsdb create-blocks-from openmetrics``."""
    for one in series:
        labels = ",".join(f'{key}="{value}"' for key, value in one.labels.items() if value)
        first = END - (len(one.values) - 1) * SCRAPE_S
        for number, value in enumerate(one.values):
            if value is not None:
                yield f"{one.name}{{{labels}}} {value!r} {first + number * SCRAPE_S}\n"
    yield "# EOF\n"
