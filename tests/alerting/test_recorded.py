"""The alerts of causes on the recorded H200 jobs, by the real rules in the real promtool.

The recordings are played through pipeline and exporter as the GPUs of one host. Then each series is
repeated: minute by minute the rules see what a scrape of such a host would show.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from scripts.stack import expect
from scripts.stack.receiver import Arrived
from tests.alerting import promtool, replay
from tests.alerting.promtool import Fired

FAULTS = {
    "copy_bound": {"GPUCopyBound", "GPUHostWork"},  # what traffic does not explain, as information
    "cpu_quota": {"GPUHeldByCPUQuota", "GPUSawtooth"},
    "data_slow": {"GPUDataStarved", "GPUSawtooth"},
    "ddp_straggler": {
        "GPUHostWork",
        "GPUWaitingInCollectives",
        "GPUSawtooth",
        "GPUSawtoothInLockstep",
    },
    "item_sync": {"GPUHostWork", "GPUSawtooth"},
    "power_cap": {"GPUAtDefaultPowerLimit"},
    "shared_victim-834": {"GPUShared"},
    "shared_victim-835": {"GPUShared"},
    "tiny_kernels": {"GPULaunchBound"},
}
"""Everything that fires, by run; nothing does for a run that is not here."""

HEALTHY = {"healthy", "hf_edge", "ddp_healthy"}
RECORDINGS = sorted({run.partition("-")[0] for run in FAULTS} | HEALTHY)
EARLY, FIRING, MENDED = 240, 780, 1800
"""Seconds: before `for` has passed; after; and well after each job ended or was mended."""


@pytest.fixture(scope="module")
def story() -> dict[int, list[Fired]]:
    """Thirteen minutes of every recording, then ``data_slow`` mended and the others gone."""
    scrapes = FIRING // replay.SCRAPE_S
    faulty = replay.repeated(replay.replay(RECORDINGS, 95), 12, 20)
    faulty = [replay.Series(s.name, s.labels, s.values[:scrapes]) for s in faulty]
    healthy = replay.repeated(replay.replay(["healthy"], 95), 12, 30)
    of_run = (s.labels for s in faulty if s.labels.get("run") == "data_slow")
    place = next(labels for labels in of_run if "gpu" in labels)
    mended = replay.renamed(healthy, {k: place[k] for k in ("run", "gpu", "uuid")})
    whole = replay.joined(faulty, mended)
    for one in whole:
        if one.name == "gpuwhy_gpu_info":  # the jobs end, their GPUs stay
            one.values = [1.0 if value is None else value for value in one.values]
    return promtool.history(whole, [EARLY, FIRING, MENDED])


def of_runs(alerts: Sequence[Fired]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for alert in alerts:
        found.setdefault(alert.labels.get("run", ""), set()).add(alert.name)
    return found


def test_silence_until_it_has_lasted(story: dict[int, list[Fired]]) -> None:
    assert of_runs(story[EARLY]) == {}


def test_the_causes_fire_and_nothing_else_does(story: dict[int, list[Fired]]) -> None:
    assert of_runs(story[FIRING]) == FAULTS


def test_they_resolve_when_mended_or_gone(story: dict[int, list[Fired]]) -> None:
    assert of_runs(story[MENDED]) == {}


@pytest.mark.parametrize("name", RECORDINGS)
def test_what_they_say_is_what_is_expected(name: str, story: dict[int, list[Fired]]) -> None:
    expected = expect.load(replay.recording(name))
    sent = [
        Arrived("firing", alert.labels, alert.annotations)
        for alert in story[FIRING]
        if alert.labels.get("run") in expected.runs and alert.labels["severity"] != "none"
    ]
    assert expect.wanting([expected], sent) == []


def test_severity_is_by_cost(story: dict[int, list[Fired]]) -> None:
    """All here lose between a quarter of a GPU and one: warning, and info below it."""
    severities = {
        alert.labels["severity"] for alert in story[FIRING] if alert.labels.get("cause") == "data"
    }
    assert severities == {"info", "warning"}


def test_a_short_recovery_does_not_resolve_and_fire_again(tmp_path: Path) -> None:
    """Four and a half minutes after it was mended the share is below the threshold: only
    ``keep_firing_for`` still holds the alert."""
    lost = replay.repeated(replay.replay(["data_slow"], 95), 12, 17)
    lost = [replay.Series(s.name, s.labels, s.values[: FIRING // replay.SCRAPE_S]) for s in lost]
    place = next(s.labels for s in lost if {"run", "uuid"} <= s.labels.keys())
    mended = replay.repeated(replay.replay(["healthy"], 95), 12, 8)
    whole = replay.joined(
        lost, replay.renamed(mended, {k: place[k] for k in ("run", "gpu", "uuid")})
    )
    hasty = []
    for path in promtool.RULES:
        hasty.append(tmp_path / path.name)
        hasty[-1].write_text(re.sub(r"\n +keep_firing_for: .*", "", path.read_text()))
    at = FIRING + 270
    for rules, expected in ((promtool.RULES, True), (hasty, False)):
        fired = promtool.history(whole, [at], rules)[at]
        assert ("GPUDataStarved" in {alert.name for alert in fired}) == expected


def test_what_costs_half_a_host_wakes_somebody() -> None:
    """Ten ranks of one run, each as the recorded one: more than four GPUs are lost."""
    rank = replay.repeated(replay.replay(["data_slow"], 95), 12, 10)
    ranks = [
        one
        for n in range(10)
        for one in replay.renamed(rank, {"uuid": f"GPU-{n}", "gpu": str(n), "rank": str(n)})
        if n == 0 or "uuid" in one.labels
    ]
    fired = promtool.history(ranks, [600])[600]
    found = [alert for alert in fired if alert.name == "GPUDataStarved"]
    assert {alert.labels["severity"] for alert in found} == {"critical", "warning", "info"}
    assert "GPUs (of 10)" in found[0].annotations["description"]


def test_summaries_fit_a_phone_and_texts_are_whole(story: dict[int, list[Fired]]) -> None:
    assert story[FIRING]
    for alert in story[FIRING]:
        assert len(alert.annotations["summary"]) < 60, alert
        for text in alert.annotations.values():
            assert text.strip()
            assert "error expanding template" not in text
            assert "no value" not in text
            assert "%!" not in text  # of a printf that was given another type
        assert alert.annotations["runbook_url"].endswith(f"/{alert.name}.md")
        assert "/d/gpuwhy-" in alert.annotations["dashboard_url"]
        assert "&to=now" in alert.annotations["dashboard_url"]
