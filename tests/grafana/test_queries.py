"""Every query of every panel on a real Prometheus, on hosts of every kind: it gives data, or the
panel says why there is none; no query fails, and no series is doubled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from grafana.source import palette
from grafana.source.build import DASHBOARDS
from grafana.source.queries import MOST_LINES
from tests.grafana import recorded
from tests.grafana.prometheus import Prometheus
from tests.grafana.test_lint import panels
from tests.grafana.variables import choose, fill

HOSTS = ("recorded", "both", "everything", "crowd", "unseen", "dcgm", "mig")
WITH_DCGM = ("both", "dcgm", "mig")
NOTHING = {("input-pipeline", "dcgm"), ("one-gpu", "unseen"), ("fleet", "unseen")}
"""Pages that have nothing to show on such a host, and say so."""
RANGES = {"5 minutes": (300.0, 5.0), "7 days": (7 * 86400.0, 600.0)}
"""Length of the range and step, in seconds."""

Dashboard = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What one target of a panel gives."""

    panel: dict[str, Any]
    ref: str
    query: str
    series: list[dict[str, Any]]


def answers(
    dashboard: Dashboard, prometheus: Prometheus, host: str, length: str = "5 minutes", **more: str
) -> Iterator[Answer]:
    """The answers for a host, other variables chosen as Grafana does."""
    range_s, step_s = RANGES[length]
    end = float(recorded.END)
    values = choose(dashboard, prometheus, end, range_s, {"host": host, **more})
    for panel in panels(dashboard):
        for target in panel["targets"]:
            query = fill(target["expr"], values, range_s=range_s, step_s=step_s)
            if target["instant"]:
                series = prometheus.at(query, end)
            else:
                series = prometheus.over(query, end - range_s, end, step_s)
            yield Answer(panel, target["refId"], query, series)


def of(found: list[Answer], title: str, ref: str = "A") -> list[dict[str, Any]]:
    """The series of one target."""
    return next(a.series for a in found if a.panel["title"] == title and a.ref == ref)


def needs(host: str) -> None:
    """Skip what needs dcgm-exporter's outputs where they are not at hand."""
    if host in WITH_DCGM and not recorded.DCGM.is_dir():
        pytest.skip(f"dcgm-exporter's real outputs are not beside the project ({recorded.DCGM})")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", DASHBOARDS)
def test_queries_are_answered(
    dashboards: dict[str, Dashboard], prometheus: Prometheus, name: str, host: str
) -> None:
    needs(host)
    found = list(answers(dashboards[name], prometheus, host))
    if (name, host) not in NOTHING:
        assert any(answer.series for answer in found)
    for answer in found:
        labels = [tuple(sorted(s["metric"].items())) for s in answer.series]
        assert len(set(labels)) == len(labels), answer.query


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_week_is_answered(
    dashboards: dict[str, Dashboard], prometheus: Prometheus, name: str
) -> None:
    short = {
        (a.panel["title"], a.ref)
        for a in answers(dashboards[name], prometheus, "recorded")
        if a.series
    }
    week = {
        (a.panel["title"], a.ref)
        for a in answers(dashboards[name], prometheus, "recorded", "7 days")
        if a.series
    }
    assert short <= week


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_target_shows_something_somewhere(
    dashboards: dict[str, Dashboard], prometheus: Prometheus, name: str
) -> None:
    shown: set[tuple[str, str]] = set()
    asked: set[tuple[str, str]] = set()
    for host in HOSTS:
        if host in WITH_DCGM and not recorded.DCGM.is_dir():
            continue
        for answer in answers(dashboards[name], prometheus, host):
            asked.add((answer.panel["title"], answer.ref))
            if answer.series:
                shown.add((answer.panel["title"], answer.ref))
    if asked != shown and not recorded.DCGM.is_dir():
        pytest.skip(f"only hosts with dcgm-exporter may show {sorted(asked - shown)}")
    assert asked == shown


DCGM_TELLS = {
    "why": (
        "Is the GPU busy, and does it work?",
        "How much power, and what is the limit?",
        "How hot, and where does the card slow down?",
        "Is device memory being read and written?",
        "What travels over PCIe and NVLink?",
    ),
    "one-gpu": ("Busy", "Temperature", "Memory in use", "What happens together?"),
    "fleet": (
        "GPUs in sight",
        "Which hosts stand out?",
        "How busy is the fleet, and does it work?",
    ),
    "lockstep": ("Do they draw the power of work?",),
    "monitor": ("Exporters that answer", "Which exporters answered, when?", "GPUs by rules"),
}
"""Panels that dcgm-exporter alone fills, by its real output of an L4."""


@pytest.mark.parametrize("name", DASHBOARDS)
def test_with_dcgm_exporter_alone(
    dashboards: dict[str, Dashboard], prometheus: Prometheus, name: str
) -> None:
    needs("dcgm")
    more = {"gpu": "GPU-dcgm"} if name == "one-gpu" else {}
    found = list(answers(dashboards[name], prometheus, "dcgm", **more))
    for title in DCGM_TELLS.get(name, ()):
        assert of(found, title), title
    shown = {answer.panel["title"] for answer in found if answer.series}
    for answer in found:
        title, said = answer.panel["title"], answer.panel["fieldConfig"]["defaults"]["noValue"]
        if title not in shown:
            assert any(words in said for words in STATED), title


def alarming(answer: Answer) -> bool:
    """Whether a single value, or what stands where there is none, is in the colour of alarm."""
    steps = answer.panel["fieldConfig"]["defaults"].get("thresholds", {"steps": []})["steps"]
    values = [float(s["value"][1]) for s in answer.series if "value" in s] or [-math.inf]
    reached = [
        [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
        for value in values
    ]
    return any(colors[-1:] == [palette.BAD] for colors in reached)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_what_needs_gpuwhy_is_never_red(
    dashboards: dict[str, Dashboard], prometheus: Prometheus, name: str
) -> None:
    needs("dcgm")
    more = {"gpu": "GPU-dcgm"} if name == "one-gpu" else {}
    for answer in answers(dashboards[name], prometheus, "dcgm", **more):
        if answer.panel["type"] in ("stat", "table", "bargauge"):
            assert not alarming(answer), answer.panel["title"]


def test_a_great_loss_is_red(dashboards: dict[str, Dashboard], prometheus: Prometheus) -> None:
    found = answers(dashboards["why"], prometheus, "recorded", run="data_slow")
    assert any(alarming(a) for a in found if a.panel["title"] == "How much is lost?")


STATED = ("needs gpuwhy", "not told", "rules are not loaded", "no price set")
"""How a panel says that there is nothing to show, and what is missing."""


def test_both_exporters_make_one_curve_for_a_gpu(
    dashboards: dict[str, Dashboard], prometheus: Prometheus
) -> None:
    needs("both")
    found = list(answers(dashboards["why"], prometheus, "both"))
    for title in DCGM_TELLS["why"][:4]:
        assert len(of(found, title)) == 1, title
    (curve,) = of(found, "How much power, and what is the limit?")
    assert (curve["metric"]["gpu"], curve["metric"]["rank"]) == ("0", "–")
    last = float(curve["values"][-1][1])
    assert last > 500, "the recorded H200's, not the L4's 16 W"


def test_under_mig_an_instance_is_one_gpu(
    dashboards: dict[str, Dashboard], prometheus: Prometheus
) -> None:
    needs("mig")
    found = list(answers(dashboards["why"], prometheus, "mig"))
    (busy,) = of(found, "Is the GPU busy, and does it work?")
    assert busy["metric"]["uuid"] == "MIG-7" and busy["metric"]["mig"] == "1/0"
    assert float(busy["values"][-1][1]) == pytest.approx(0.9), "gpuwhy's own, not 0 of DCGM"


def test_a_crowd_is_drawn_by_its_bounds(
    dashboards: dict[str, Dashboard], prometheus: Prometheus
) -> None:
    found = list(answers(dashboards["why"], prometheus, "crowd"))
    title = "How much power, and what is the limit?"
    assert of(found, title) == []
    crowd = of(found, title, "B")
    assert {s["metric"]["of"] for s in crowd} == {"lowest", "median", "highest"}
    assert max(len(a.series) for a in found if a.panel["type"] != "table") <= MOST_LINES


def test_a_run_whose_gpu_is_not_in_sight(
    dashboards: dict[str, Dashboard], prometheus: Prometheus
) -> None:
    found = list(answers(dashboards["why"], prometheus, "unseen"))
    titles = ("What are the GPUs waiting for?", "What does the host do?", "Are batches ready?")
    assert all(of(found, title) for title in titles)
    assert not of(found, "Is the GPU busy, and does it work?")


@pytest.mark.parametrize("length", RANGES)
@pytest.mark.parametrize("name", DASHBOARDS)
def test_no_panel_of_a_fleet_has_a_line_for_each_gpu(
    dashboards: dict[str, Dashboard], prometheus: Prometheus, name: str, length: str
) -> None:
    everywhere = list(answers(dashboards[name], prometheus, ".*", length))
    limit = 15 if name == "fleet" else MOST_LINES
    for answer in everywhere:
        if answer.panel["type"] not in ("table", "state-timeline"):
            assert len(answer.series) <= limit, answer.panel["title"]
