"""The rule files: fresh, complete, on metrics that exist, each with its runbook."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from alerting.source import build, thresholds
from scripts.stack import packages
from tests.alerting import promtool

from gpuwhy.expose.catalogue import CATALOGUE
from gpuwhy.observe.observation import SOURCES

ROOT = Path(__file__).parents[2]
DASHBOARDS = ROOT / "grafana/dashboards"
RUNBOOKS = ROOT / "alerting/runbooks"
FAMILIES = ROOT / "exporter/gpuwhy/expose/families"
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation", "How to check"]
METRIC = re.compile(r"(?<![:\w])gpuwhy_\w+")
RECORDED = re.compile(r"(?<![\w:])[a-z_]+:[a-z_]+:[a-z_]+")
DCGM = re.compile(r"DCGM_\w+")


def rules() -> list[dict[str, object]]:
    return [
        rule
        for path in promtool.RULES
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    ]


def alerts() -> list[dict[str, object]]:
    return [rule for rule in rules() if "alert" in rule]


def test_building_again_leaves_no_difference() -> None:
    done = subprocess.run([sys.executable, "-m", "alerting.source.build", "--check"], cwd=ROOT)
    assert done.returncode == 0


def test_a_changed_rule_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, text in build.files(thresholds.load()).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text.replace("0.15", "0.16"))
    monkeypatch.setattr(build, "ROOT", tmp_path)
    assert build.main(["--check"]) == 1
    assert build.main([]) == 0
    assert build.main(["--check"]) == 0


def test_promtool_finds_nothing_to_say() -> None:
    tool = packages.programs("promtool")["promtool"]
    done = subprocess.run(
        [tool, "check", "rules", "--lint=all", "--lint-fatal", *promtool.RULES],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_at_least_twenty_alerts_each_complete() -> None:
    assert len(promtool.alert_names()) >= 20
    for rule in alerts():
        assert set(rule) == {"alert", "expr", "for", "keep_firing_for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info", "none")  # type: ignore[index]
        assert list(rule["annotations"]) == [  # type: ignore[call-overload]
            "summary",
            "description",
            "runbook_url",
            "dashboard_url",
        ]


def test_every_metric_is_in_the_catalogue_and_every_recorded_series_is_recorded() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    for rule in rules():
        text = str(rule["expr"]) + str(rule.get("annotations", ""))
        assert set(METRIC.findall(text)) <= set(CATALOGUE), rule
        assert set(RECORDED.findall(text)) <= recorded, rule


def test_every_field_of_dcgm_is_collected() -> None:
    listed = (ROOT / "prometheus/dcgm-counters.csv").read_text()
    collected = set(re.findall(r"^(DCGM_\w+)\s*,\s*(?:gauge|counter|label)\s*,\s*\S", listed, re.M))
    used = {name for rule in rules() for name in DCGM.findall(str(rule["expr"]))}
    assert used - {"DCGM_FI_DEV_FB_TOTAL"} <= collected  # made of its parts where it is absent


LONGEST = {
    "gpu": "127",
    "xid": "1023",
    "source": max(SOURCES, key=len),
    "family": max((path.stem for path in FAMILIES.glob("*.py")), key=len),
    "integration": "mattermost",
}
"""Widest values of the labels that a summary shows whole; whatever has no bound must be cut."""


def widest(summary: str) -> str:
    """A summary filled in at its widest: cut texts as long as they may be, shares of 100 %."""
    looked_up = re.sub(r"{{ with printf `.*?{{ end }}{{ end }}", "100%", summary)
    cut = re.sub(r'{{ printf "%\.(\d+)s" .*? }}', lambda m: "x" * int(m[1]), looked_up)
    counted = cut.replace("{{ $value }}", "1023")
    return re.sub(r"{{ \$labels\.(\w+) }}", lambda m: LONGEST[m[1]], counted)


@pytest.mark.parametrize("summary", sorted({str(a["annotations"]["summary"]) for a in alerts()}))  # type: ignore[index]
def test_summaries_fit_a_phone_whatever_the_names(summary: str) -> None:
    filled = widest(summary)
    assert "{{" not in filled
    assert len(filled) < 60, filled


def test_function_and_line_are_no_labels() -> None:
    for rule in alerts():
        assert not {"function", "file", "line"} & set(rule["labels"])  # type: ignore[call-overload]
        assert "gpuwhy_verdict_function_info" not in str(rule["expr"])


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert sorted(p.stem for p in RUNBOOKS.glob("*.md")) == sorted(promtool.alert_names())
    for path in RUNBOOKS.glob("*.md"):
        text = path.read_text()
        assert text.startswith(f"# {path.stem}\n")
        assert re.findall(r"^## (.+)$", text, re.M) == SECTIONS, path
        assert all(part.strip() for part in re.split(r"^## .+$", text, flags=re.M)), path


LOOKS = ("long idle gaps", "dense tiny kernels", "a slow loader included", "at a lowered clock")


def test_where_no_cause_is_named_the_runbook_tells_the_four_looks() -> None:
    """But where nothing runs: idle is the only look there."""
    general = {str(a["alert"]) for a in alerts() if a["labels"].get("scope") == "general"}  # type: ignore[attr-defined]
    for name in general - {"GPUAllocatedButIdle", "GPUMemoryFullWithoutWork"}:
        text = (RUNBOOKS / f"{name}.md").read_text()
        assert [look for look in LOOKS if look not in text] == [], name


def test_runbooks_name_metrics_that_exist() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    for path in RUNBOOKS.glob("*.md"):
        text = path.read_text()
        assert set(METRIC.findall(text)) <= set(CATALOGUE), path
        assert set(RECORDED.findall(text)) <= recorded, path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("window: 5m", "window: soon"), "window"),
        (("cause_ratio: 0.15", "cause_ratio: -1"), "cause_ratio"),
        (("cause_ratio: 0.15", "cause_ration: 0.15"), "cause_ratio"),
        (("critical_xids: [46", "critical_xids: [x"), "critical_xids"),
        (("runbook_base_url: https:", "runbook_base_url: "), "runbook_base_url"),
    ],
)
def test_bad_thresholds_are_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    text = thresholds.FILE.read_text()
    assert change[0] in text
    file = tmp_path / "thresholds.yml"
    file.write_text(text.replace(*change))
    with pytest.raises(thresholds.ThresholdError, match=message):
        thresholds.load(file)


def test_runbooks_are_linked_in_the_repository_that_the_project_names() -> None:
    (repository,) = re.findall(r'^Repository = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)
    assert thresholds.load().runbook_base_url == f"{repository}/blob/main/alerting/runbooks"
    links = {f"{repository}/blob/main/{path.relative_to(ROOT)}" for path in RUNBOOKS.glob("*.md")}
    assert {alert["annotations"]["runbook_url"] for alert in alerts()} == links


def test_links_lead_where_they_are_set_to_lead(tmp_path: Path) -> None:
    text = thresholds.FILE.read_text()
    text = re.sub(r"(?m)^runbook_base_url: .*", "runbook_base_url: https://wiki.example/gpu/", text)
    file = tmp_path / "thresholds.yml"
    file.write_text(text)
    made = build.files(thresholds.load(file))[Path("alerting/rules/causes.yml")]
    assert "runbook_url: https://wiki.example/gpu/GPUDataStarved.md" in made


def test_every_threshold_has_its_reason() -> None:
    for line in thresholds.FILE.read_text().splitlines():
        key = re.match(r"(\w+):", line)
        if key and key[1] not in ("critical_xids", "runbook_base_url", "grafana_base_url"):
            comment = line.partition("#")[2]
            assert len(comment.split()) >= 3, line


def test_dashboards_that_notifications_lead_to_exist() -> None:
    """With the variables that the links fill in."""
    dashboards = {
        found["uid"]: {variable["name"] for variable in found["templating"]["list"]}
        for found in map(json.loads, (p.read_text() for p in DASHBOARDS.glob("*.json")))
    }
    links = {str(rule["annotations"]["dashboard_url"]) for rule in alerts()}  # type: ignore[index]
    assert links
    for link in links:
        uid = re.search(r"/d/([\w-]+)", link)
        assert uid, link
        assert set(re.findall(r"[?&]var-(\w+)=", link)) <= dashboards[uid[1]], link
