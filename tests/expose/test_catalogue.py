"""The catalogue against the conventions, the page made from it, and what is really exposed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from tests.expose.samples import RECORDINGS, replay, view

from gpuwhy.expose import catalogue, exposition
from gpuwhy.expose.catalogue import CATALOGUE, FAMILIES
from gpuwhy.expose.metric import Metric

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
METRICS = list(CATALOGUE.values())
FOREIGN_UNITS = re.compile(
    r"_(milliseconds|microseconds|ms|us|minutes|hours|percent|pct|mib|kib|gib|mb|gb|kilobytes"
    r"|megabytes|mhz|megahertz|milliwatts|mw|kelvin|fahrenheit|bits)(_|$)"
)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_follow_the_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"(gpuwhy|process)_[a-z0-9_]+", metric.name)
    assert (metric.kind == "counter") == metric.name.endswith("_total")
    assert (metric.kind == "info") == metric.name.endswith("_info")
    assert not FOREIGN_UNITS.search(metric.name), "base units only"
    assert not re.search(r"_(count|sum|bucket|created)$", metric.name), "reserved for histograms"
    assert metric.help.endswith("."), "the help is a sentence"
    assert metric.bound >= 1
    assert len(set(metric.labels)) == len(metric.labels)
    assert not set(metric.labels) & {"le", "quantile", "job", "instance", "host"}
    assert all(re.fullmatch(r"[a-z][a-z_]*", label) for label in metric.labels)


def test_no_name_stands_twice() -> None:
    names = [metric.name for family in FAMILIES.values() for metric in family.METRICS]
    assert len(names) == len(set(names)) == len(CATALOGUE)


def test_the_page_is_made_from_the_catalogue() -> None:
    assert DOCS.read_text(encoding="utf-8") == catalogue.page(), (
        "write it again: python -m gpuwhy.expose.catalogue --write docs/metrics.md"
    )


def test_check_tells_a_stale_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "metrics.md"
    assert catalogue.main(["--write", str(page)]) == 0
    assert catalogue.main(["--check", str(page)]) == 0
    page.write_text(page.read_text().replace("watts", "volts"))
    assert catalogue.main(["--check", str(page)]) == 1
    assert "not up to date" in capsys.readouterr().err
    assert catalogue.main(["--what"]) == 2


def exposed_classic(text: str) -> dict[str, tuple[str, set[frozenset[str]]]]:
    """Type and sets of label names by the name of the sample."""
    found: dict[str, tuple[str, set[frozenset[str]]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            _, sets = found.setdefault(sample.name, (family.type, set()))
            sets.add(frozenset(sample.labels))
    return found


def assert_in_catalogue(text: str) -> set[str]:
    """Everything exposed is in the catalogue with its type and labels; the names exposed."""
    found = exposed_classic(text)
    for name, (kind, label_sets) in found.items():
        metric = CATALOGUE[name]
        assert kind == ("gauge" if metric.kind == "info" else metric.kind), name
        assert label_sets == {frozenset(metric.labels)}, name
    return set(found)


def test_everything_known_exposes_the_whole_catalogue_and_nothing_else() -> None:
    body, _, found = exposition.render(view(), "")
    assert not found.failures
    assert assert_in_catalogue(body.decode()) == set(CATALOGUE)


def test_openmetrics_exposes_the_same() -> None:
    body, content_type, _ = exposition.render(view(), "application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    names = set()
    for family in openmetrics.text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            metric = CATALOGUE[sample.name]
            assert family.type == metric.kind, sample.name
            assert family.unit == metric.unit or metric.kind == "info", sample.name
            assert not sample.name.endswith("_created")
            names.add(sample.name)
    assert names == set(CATALOGUE)


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.gpuwhy.gz")), ids=lambda p: p.name)
def test_recordings_expose_nothing_outside_the_catalogue(path: Path) -> None:
    state = replay(path.name.removesuffix(".gpuwhy.gz"))
    body, _, found = exposition.render(state.view(), "")
    assert not found.failures and not found.dropped
    names = assert_in_catalogue(body.decode())
    assert {"gpuwhy_gpu_time_seconds_total", "gpuwhy_verdict_active"} <= names
