"""A run whose ranks are on two hosts, each seen by its own exporter alone: one alert for it."""

from __future__ import annotations

from collections import Counter

from tests.alerting import promtool, replay, two_hosts

EARLY, FIRING, ENDED = 240, 780, 1800
"""Seconds: before `for` has passed; after; and well after the job ended."""


def test_the_run_is_one_alert_and_its_lockstep_is_seen() -> None:
    series = replay.repeated(two_hosts.series("ddp_straggler", 95), 12, 20)
    scrapes = FIRING // replay.SCRAPE_S
    series = [replay.Series(s.name, s.labels, s.values[:scrapes]) for s in series]
    series = replay.ended(series, (ENDED - FIRING) // replay.SCRAPE_S)
    for one in series:
        if one.name == "gpuwhy_gpu_info":  # the job ends, its GPUs stay
            one.values = [1.0 if value is None else value for value in one.values]
    found = promtool.history(series, [EARLY, FIRING, ENDED])
    assert found[EARLY] == [] and found[ENDED] == []
    firing = Counter((a.name, a.labels["severity"]) for a in found[FIRING])
    assert set(firing.values()) == {1}, "one for the run, not one for each host"
    assert {name for name, _ in firing} == {
        "GPUHostWork",
        "GPUWaitingInCollectives",
        "GPUSawtooth",
        "GPUSawtoothInLockstep",
    }
    (lockstep,) = (a for a in found[FIRING] if a.name == "GPUSawtoothInLockstep")
    assert lockstep.labels["run"] == "ddp_straggler" and "host" not in lockstep.labels
    assert "The period is 0.29 s" in lockstep.annotations["description"]
    assert "/d/gpuwhy-lockstep?var-run=ddp_straggler" in lockstep.annotations["dashboard_url"]
