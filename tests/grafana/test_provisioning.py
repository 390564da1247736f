"""What Grafana is given at its start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from grafana.source.dashboard import DATASOURCE_UID

ROOT = Path(__file__).parents[2]


def load(name: str) -> dict[str, Any]:
    text = (ROOT / "grafana/provisioning" / name / "gpuwhy.yml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def test_the_data_source_has_the_uid_that_dashboards_name() -> None:
    (source,) = load("datasources")["datasources"]
    assert source["uid"] == DATASOURCE_UID
    assert source["type"] == "prometheus"
    assert source["editable"] is False


def test_its_interval_is_that_of_the_scrapes() -> None:
    (source,) = load("datasources")["datasources"]
    prometheus = yaml.safe_load((ROOT / "prometheus/prometheus.yml").read_text(encoding="utf-8"))
    assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]


def test_dashboards_are_files_that_cannot_be_changed_in_grafana() -> None:
    (provider,) = load("dashboards")["providers"]
    assert provider["type"] == "file"
    assert provider["allowUiUpdates"] is False
    assert provider["disableDeletion"] is True
