"""Metrics, recorded series and fields of DCGM that panels ask for exist, with their labels."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import yaml
from tests.grafana.prometheus import RULES, Prometheus
from tests.grafana.promql import labels, names, parse, selectors
from tests.grafana.test_lint import filled, panels

from gpuwhy.expose.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]
OF_TARGETS = {"host", "instance", "job"}
OF_PROMETHEUS = {"up", "scrape_duration_seconds", "ALERTS"}
OF_RANKS = {"uuid", "gpu", "mig", "run", "rank", "account", "reason"}


def recorded() -> set[str]:
    """Series of the recording rules."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["record"] for group in groups for rule in group["rules"]}


def collected() -> set[str]:
    """Fields that dcgm-exporter is asked for."""
    text = (ROOT / "prometheus/dcgm-counters.csv").read_text(encoding="utf-8")
    rows = csv.reader(line for line in text.splitlines() if line and line[0] != "#")
    return {row[0].strip() for row in rows}


def test_names_exist(dashboards: dict[str, dict[str, Any]], prometheus: Prometheus) -> None:
    rules, fields = recorded(), collected()
    for dashboard in dashboards.values():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                for selector, _ in selectors(parse(prometheus, filled(target))):
                    for name in names(selector):
                        where = f"{panel['title']}: {name}"
                        assert (
                            name in CATALOGUE
                            or name in rules
                            or name in fields
                            or name in OF_PROMETHEUS
                        ), where
                        if name in CATALOGUE:
                            known = {*CATALOGUE[name].labels, *OF_TARGETS}
                            assert labels(selector).keys() <= known, where
                        elif name in rules:
                            assert labels(selector).keys() <= OF_RANKS | OF_TARGETS, where


def test_variables_and_annotations_ask_for_what_is_there(
    dashboards: dict[str, dict[str, Any]], prometheus: Prometheus
) -> None:
    rules = recorded()
    for dashboard in dashboards.values():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] != "query":
                continue
            text = variable["query"]["query"]
            inside = text[text.index("(") + 1 : -1]
            if text.startswith("label_values"):
                inside = inside.rpartition(",")[0]
            query = filled({"expr": inside})
            for selector, _ in selectors(parse(prometheus, query)):
                assert names(selector), text
                assert all(name in CATALOGUE or name in rules for name in names(selector)), text
        for alerts in dashboard["annotations"]["list"]:
            parse(prometheus, filled(alerts))
