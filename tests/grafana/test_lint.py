"""The rules of Grafana's dashboard-linter, and this project's own on words and units."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from grafana.source.build import DASHBOARDS, FOLDER
from tests.grafana.prometheus import Prometheus
from tests.grafana.promql import COUNTING, caller, labels, names, parse, selectors
from tests.grafana.variables import fill

Dashboard = dict[str, Any]
UNITS = {
    *("none", "string", "percentunit", "s", "bytes", "Bps", "watt", "celsius", "hertz"),
    "dateTimeAsIso",
}
"""Those in use of the units that Grafana and its linter know."""
_QUESTIONS = {
    *("What", "Which", "Where", "Who", "Whose", "Why", "How"),
    *("Is", "Are", "Do", "Does", "On", "Recorded?"),
}
"""First words of titles that are questions; other titles are nouns."""
WITH_UNIT = ("stat", "table", "timeseries", "bargauge", "state-timeline")
VALUES = {
    **dict.fromkeys(("host", "rank"), ".*"),
    **dict.fromkeys(("run", "gpu"), "x"),
    "datasource": "prometheus",
    "__from": "0",
}


def panels(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    """All panels but the titles of rows."""
    return (panel for panel in dashboard["panels"] if panel["type"] != "row")


@pytest.fixture(params=DASHBOARDS)
def dashboard(request: pytest.FixtureRequest, dashboards: dict[str, Dashboard]) -> Dashboard:
    """Each dashboard in turn."""
    return dashboards[request.param]


def test_exclusions_have_a_reason() -> None:
    excluded = yaml.safe_load((FOLDER / ".lint").read_text(encoding="utf-8"))["exclusions"]
    assert set(excluded) == {
        f"{kind}-{what}-rule" for kind in ("template", "target") for what in ("job", "instance")
    }
    assert all(rule["reason"] for rule in excluded.values())


def test_template_datasource_rule(dashboard: Dashboard) -> None:
    sources = [v for v in dashboard["templating"]["list"] if v["type"] == "datasource"]
    assert [(v["name"], v["label"], v["query"]) for v in sources] == [
        ("datasource", "Data source", "prometheus")
    ]


def test_variables_are_read_again_with_the_time_range(dashboard: Dashboard) -> None:
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            assert variable["refresh"] == 2, variable["name"]
            assert variable["label"], variable["name"]
            assert re.match(r"(label_values|query_result)\(.+\)$", variable["query"]["query"])


def test_panel_datasource_rule(dashboard: Dashboard) -> None:
    for panel in panels(dashboard):
        for part in (panel, *panel["targets"]):
            assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_panel_title_description_rule(dashboard: Dashboard) -> None:
    titles = [panel["title"] for panel in panels(dashboard)]
    assert len(set(titles)) == len(titles)
    for panel in panels(dashboard):
        title, description = panel["title"], panel["description"]
        assert 3 <= len(title) <= 50, title
        assert title.endswith("?") == (title.split()[0] in _QUESTIONS), title
        sentences = re.split(r"[.:;?] ", description)
        assert len(sentences) >= 2, f"{title}: how to read it, and the usual misreading"
        assert len(description) >= 70, title
        assert description.endswith("."), title


def test_panel_units_rule(dashboard: Dashboard) -> None:
    for panel in panels(dashboard):
        assert panel["type"] in WITH_UNIT, panel["title"]
        field = panel["fieldConfig"]
        overridden = [
            prop["value"]
            for override in field["overrides"]
            for prop in override["properties"]
            if prop["id"] == "unit"
        ]
        assert {field["defaults"]["unit"], *overridden} <= UNITS, panel["title"]


def test_shares_are_bounded(dashboard: Dashboard) -> None:
    for panel in panels(dashboard):
        field = panel["fieldConfig"]["defaults"]
        if field["unit"] == "percentunit" and panel["type"] in ("timeseries", "stat"):
            assert field["min"] == 0 and 1 <= field["max"] <= 1.05, panel["title"]


def test_what_is_missing_is_said(dashboard: Dashboard) -> None:
    for panel in panels(dashboard):
        said = panel["fieldConfig"]["defaults"]["noValue"]
        assert said and said not in ("0", "No data"), panel["title"]


def test_panel_no_targets_rule(dashboard: Dashboard) -> None:
    for panel in panels(dashboard):
        refs = [target["refId"] for target in panel["targets"]]
        assert refs and len(set(refs)) == len(refs), panel["title"]


def test_legends_name_gpu_and_rank(dashboard: Dashboard) -> None:
    for panel in panels(dashboard):
        for target in panel["targets"]:
            if panel["type"] == "timeseries":
                legend = target["legendFormat"]
                assert legend and legend != "__auto", panel["title"]
                assert ("{{rank}}" in legend) <= ("{{gpu}}" in legend or "{{run}}" in legend)


def test_links_keep_time_and_variables(dashboard: Dashboard) -> None:
    (link,) = dashboard["links"]
    assert link["keepTime"] and link["includeVars"] and link["tags"] == dashboard["tags"]
    for url in re.findall(r"'url': '([^']+)'", repr(dashboard["panels"])):
        assert url.endswith("&${__url_time_range}"), url
        uid = re.match(r"/d/([\w-]+)\?var-", url)
        assert uid and uid[1] in {build()["uid"] for build in DASHBOARDS.values()}, url


def test_ranks_that_lose_the_same_stand_in_the_order_of_their_numbers(
    dashboard: Dashboard,
) -> None:
    """Labels are texts, of which 10 comes before 2: they are made numbers, then sorted stably."""
    for panel in panels(dashboard):
        steps = panel.get("transformations", [])
        columns = [s["options"]["renameByName"] for s in steps if s["id"] == "organize"]
        if panel["type"] == "table" and any("rank" in renamed for renamed in columns):
            by = [s["options"]["sort"][0]["field"] for s in steps if s["id"] == "sortBy"]
            if by:
                assert by[0] == "Rank" and len(by) == 2, panel["title"]
                (made,) = [s["options"] for s in steps if s["id"] == "convertFieldType"]
                kind = {"targetField": "Rank", "destinationType": "number"}
                assert made["conversions"] == [kind]


def test_alerts_are_annotations(dashboard: Dashboard) -> None:
    begin, end, before = dashboard["annotations"]["list"]
    assert begin["enable"] and 'ALERTS{alertstate="firing",' in begin["expr"]
    assert end["enable"] and end["iconColor"] != begin["iconColor"]
    assert before["enable"] and before["titleFormat"] != begin["titleFormat"]


def test_no_sentence_lives_in_a_label(dashboard: Dashboard) -> None:
    for panel in panels(dashboard):
        for target in panel["targets"]:
            for value in re.findall(r'label_replace\(.*?, "\w+", "([^"]*)"', target["expr"]):
                assert len(value.split()) <= 1, value


def filled(target: dict[str, Any]) -> str:
    """A target's query for the parser; the rate interval is told by its unusual length."""
    return fill(target["expr"], VALUES, range_s=1800, step_s=RATE_S - 5)


RATE_S = 1234


def test_target_rate_interval_and_counter_rules(
    dashboard: Dashboard, prometheus: Prometheus
) -> None:
    for panel in panels(dashboard):
        for target in panel["targets"]:
            where = f"{panel['title']}: {target['expr']}"
            for selector, above in selectors(parse(prometheus, filled(target))):
                function = caller(above)
                only_labels = any(node.get("op") == "group" for node in above)
                if any(name.endswith("_total") for name in names(selector)) and not only_labels:
                    assert function in COUNTING, where
                if function in ("rate", "irate"):
                    assert selector["range"] == RATE_S * 1000, where


def test_every_target_selects_by_a_variable(dashboard: Dashboard, prometheus: Prometheus) -> None:
    """In place of the linter's rules on job and instance."""
    for panel in panels(dashboard):
        for target in panel["targets"]:
            for selector, _ in selectors(parse(prometheus, filled(target))):
                by = labels(selector)
                chosen = by.keys() & {"host", "run"}
                assert chosen, f"{panel['title']}: {selector}"
