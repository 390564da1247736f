"""Alerts as marks on the time axes: each page asks for its own, and Prometheus answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from tests.grafana import recorded
from tests.grafana.prometheus import Prometheus
from tests.grafana.variables import choose, fill

Dashboard = dict[str, Any]
GPU = "recorded-data_slow-0"
MARKED = {
    "why": {"GPUDataStarved", "GPUXidCritical"},
    "lockstep": {"GPUDataStarved", "GPUXidCritical"},
    "input-pipeline": {"GPUDataStarved", "GPUXidCritical"},
    "one-gpu": {"GPUDataStarved", "GPUXidCritical"},
    "fleet": {"TrainingStalled", "GPUXidCritical", "GPUDataStarved", "GPUHeldByCPUQuota"},
    "monitor": set(),
}
"""On the pages of host ``recorded``, its run ``data_slow`` and its GPU."""
ENDED = "GPUCopyBound"
"""On the same run, just before the end."""
BEGIN, END, BEFORE = 0, 1, 2


def marks(
    dashboard: Dashboard, prometheus: Prometheus, range_s: float, which: int = BEGIN, **given: str
) -> list[dict[str, Any]]:
    """The series that become marks: where alerts begin, where they end, or at the left edge."""
    end = float(recorded.END)
    begin_ms = f"{1000 * (end - range_s):.0f}"
    values = {**choose(dashboard, prometheus, end, range_s, given), "__from": begin_ms}
    alerts = dashboard["annotations"]["list"][which]
    step_s = max(15.0, range_s / 1000)
    query = fill(alerts["expr"], values, range_s=range_s, step_s=step_s)
    return prometheus.over(query, end - range_s, end, step_s)


def written(text: str, labels: Mapping[str, str]) -> str:
    """The text of a mark as Grafana fills it in."""
    return re.sub(r"{{(\w+)}}", lambda match: labels.get(match[1], ""), text)


@pytest.mark.parametrize("range_s", [300.0, 86400.0], ids=["5 minutes", "a day"])
@pytest.mark.parametrize("name", MARKED)
def test_each_page_marks_its_own_alerts(
    dashboards: dict[str, Dashboard], prometheus: Prometheus, name: str, range_s: float
) -> None:
    given = {"host": "recorded", "run": "data_slow", "gpu": GPU}
    found = marks(dashboards[name], prometheus, range_s, **given)
    assert {s["metric"]["alertname"] for s in found} - {ENDED} == MARKED[name]
    assert all(len(s["values"]) == 1 for s in found), "a point: a long mark colours the panel"


@pytest.mark.parametrize("name", MARKED)
def test_the_end_of_an_alert_is_marked(
    dashboards: dict[str, Dashboard], prometheus: Prometheus, name: str
) -> None:
    given = {"host": "recorded", "run": "data_slow", "gpu": GPU}
    found = marks(dashboards[name], prometheus, 300.0, END, **given)
    assert [s["metric"]["alertname"] for s in found] == ([ENDED] if name != "monitor" else [])
    for series in found:
        assert len(series["values"]) == 1
        alerts = dashboards[name]["annotations"]["list"][END]
        assert written(alerts["titleFormat"], series["metric"]) == f"{ENDED} ended"


@pytest.mark.parametrize("name", MARKED)
def test_an_alert_that_fires_since_before_the_range_is_marked_at_its_left_edge(
    dashboards: dict[str, Dashboard], prometheus: Prometheus, name: str
) -> None:
    given = {"host": "recorded", "run": "data_slow", "gpu": GPU}
    found = marks(dashboards[name], prometheus, 30.0, BEFORE, **given)
    assert {s["metric"]["alertname"] for s in found} == MARKED[name]
    for series in found:
        ((at, _),) = series["values"]
        assert recorded.END - 30 < at <= recorded.END - 15, "within the first step of the axis"
    begun = marks(dashboards[name], prometheus, 30.0, BEGIN, **given)
    assert begun == [], "none is marked twice"
    begun_within = marks(dashboards[name], prometheus, 300.0, BEFORE, **given)
    assert {s["metric"]["alertname"] for s in begun_within} <= {ENDED}


@pytest.mark.parametrize("name", ["why", "one-gpu", "fleet"])
def test_a_loss_is_one_mark_at_its_worst_severity(
    dashboards: dict[str, Dashboard], prometheus: Prometheus, name: str
) -> None:
    """Not one for each severity whose rule holds: overlapping marks colour the panels."""
    given = {"host": "recorded", "run": "data_slow", "gpu": GPU}
    found = [s["metric"] for s in marks(dashboards[name], prometheus, 300.0, **given)]
    starved = [labels["severity"] for labels in found if labels["alertname"] == "GPUDataStarved"]
    assert starved == ["critical"]


def test_the_monitor_marks_what_it_misses(
    dashboards: dict[str, Dashboard], prometheus: Prometheus
) -> None:
    (missing,) = marks(dashboards["monitor"], prometheus, 300.0, host="both")
    assert missing["metric"]["source"] == "stacks"


@pytest.mark.parametrize("name", MARKED)
def test_a_mark_says_which_alert_and_of_whom(
    dashboards: dict[str, Dashboard], prometheus: Prometheus, name: str
) -> None:
    alerts = dashboards[name]["annotations"]["list"][BEGIN]
    host = "both" if name == "monitor" else "recorded"
    given = {"host": host, "run": "data_slow", "gpu": GPU}
    for series in marks(dashboards[name], prometheus, 300.0, **given):
        labels = series["metric"]
        said = written(alerts["textFormat"], labels)
        assert labels["severity"] in said
        assert any(labels.get(key, "-") in said for key in ("run", "gpu", "host"))
        assert written(alerts["titleFormat"], labels) == labels["alertname"]


def test_without_a_run_only_the_chosen_host_is_marked(
    dashboards: dict[str, Dashboard], prometheus: Prometheus
) -> None:
    """As with dcgm-exporter alone: alerts of other hosts have no run either."""
    assert marks(dashboards["why"], prometheus, 300.0, host="dcgm", run="", gpu="GPU-dcgm") == []
