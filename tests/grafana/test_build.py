"""The committed files are what the builders make, and load anywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from grafana.source import build
from grafana.source.dashboard import DATASOURCE_UID

UIDS = {
    "why": "gpuwhy-why",
    "one-gpu": "gpuwhy-gpu",
    "fleet": "gpuwhy-fleet",
    "lockstep": "gpuwhy-lockstep",
    "input-pipeline": "gpuwhy-input",
    "monitor": "gpuwhy-monitor",
}
"""Fixed: links in notifications name them."""


def test_building_again_leaves_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["--check"]) == 0, capsys.readouterr().err


def test_a_difference_is_found_and_mended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    assert build.main(["--check"]) == 1
    assert "why.json" in capsys.readouterr().err
    assert build.main([]) == 0
    assert build.main(["--check"]) == 0
    file = tmp_path / "fleet.json"
    file.write_text(file.read_text().replace("Fleet", "fleet"))
    assert build.main(["--check"]) == 1
    assert build.main(["--wrong"]) == 2


def test_no_other_file_is_there() -> None:
    assert {file.stem for file in build.FOLDER.glob("*.json")} == set(build.DASHBOARDS)


@pytest.mark.parametrize("name", UIDS)
def test_it_can_be_provisioned(name: str) -> None:
    text = (build.FOLDER / f"{name}.json").read_text(encoding="utf-8")
    dashboard = json.loads(text)
    assert dashboard["uid"] == UIDS[name]
    assert dashboard["editable"] is False
    assert "id" not in dashboard, "Grafana gives the id"
    assert "__inputs" not in dashboard and "__requires" not in dashboard
    assert "${DS_" not in text
    source = dashboard["templating"]["list"][0]
    assert (source["type"], source["current"]["value"]) == ("datasource", DATASOURCE_UID)


def test_panels_have_numbers_of_their_own_and_do_not_overlap(
    dashboards: dict[str, dict[str, Any]],
) -> None:
    for dashboard in dashboards.values():
        panels = dashboard["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        taken: set[tuple[int, int]] = set()
        for panel in panels:
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, f"{panel['title']} lies over another panel"
            taken |= cells
