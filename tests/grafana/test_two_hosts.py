"""A run whose ranks are on two hosts, each seen by its own exporter alone: its pages are whole."""

from __future__ import annotations

from typing import Any

import pytest
from tests.alerting.two_hosts import HOSTS
from tests.grafana.prometheus import Prometheus
from tests.grafana.test_queries import Answer, answers, of

Dashboard = dict[str, Any]


@pytest.fixture(scope="module")
def lockstep(dashboards: dict[str, Dashboard], prometheus: Prometheus) -> list[Answer]:
    return list(answers(dashboards["lockstep"], prometheus, ".*", run="two-hosts"))


def test_every_panel_shows_both_hosts(lockstep: list[Answer]) -> None:
    shown = {answer.panel["title"] for answer in lockstep if answer.series}
    blank = {answer.panel["title"] for answer in lockstep} - shown
    assert blank == set()
    for answer in lockstep:
        hosts = {s["metric"]["host"] for s in answer.series if "host" in s["metric"]}
        if hosts and (answer.panel["title"], answer.ref) not in OF_WAITING:
            assert hosts == set(HOSTS), answer.panel["title"]


OF_WAITING = {("Who waits for whom?", "B"), ("Which ranks wait in collectives?", "A")}
"""Told of a rank that may wait: the late one has no peer on its host to compare with."""


def test_all_ranks_are_there(lockstep: list[Answer]) -> None:
    title = "Are all ranks there?"
    seen, whole = (of(lockstep, title, ref)[0]["value"][1] for ref in "AB")
    assert (float(seen), float(whole)) == (2, 2)


def test_the_phase_is_that_of_both(lockstep: list[Answer]) -> None:
    (together,) = of(lockstep, "Are they in step?")
    assert 0.8 < float(together["value"][1]) <= 1.0


def test_the_cause_is_that_of_the_rank_that_loses_most(
    dashboards: dict[str, Dashboard], prometheus: Prometheus
) -> None:
    """What each exporter sees of its own rank and NCCL of all."""
    page = list(answers(dashboards["why"], prometheus, ".*", run="two-hosts"))
    (row,) = of(page, "What are the GPUs waiting for?")
    assert row["metric"]["answer"] == "host/straggler"
    rows = of(page, "Which rank, which function?")
    assert {(r["metric"]["host"], r["metric"]["cause"]) for r in rows} == {
        (HOSTS[0], "comm"),
        (HOSTS[1], "host"),
    }
