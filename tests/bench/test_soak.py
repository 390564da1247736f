"""No growth over thousands of job lives: a short run always, the whole with the long suites."""

from __future__ import annotations

import shutil

import pytest
from bench.soak_jobs import LIFE_S, PIDS, Jobs

from bench import soak


def test_each_life_is_a_job_of_its_own() -> None:
    jobs = Jobs(2)
    seen = [o for _ in range(3 * LIFE_S) for o in jobs.second()]
    tables = [o["processes"] for o in seen if o["kind"] == "processes"]
    runs = {process["run"] for table in tables for process in table}
    assert len(runs) == jobs.lives >= 6
    pids = {p["pid"]: p["run"] for table in tables for p in table if p["role"] == "rank"}
    assert len(pids) == len(set(pids.values())) == len(runs)
    assert all(0 < pid < 1000 + PIDS + 16 for pid in pids)
    times = [o["t"] for o in jobs.second()]
    assert times == sorted(times)


def test_growth_is_told() -> None:
    def marks(last: float) -> list[dict[str, float]]:
        return [
            {**dict.fromkeys(soak.ROOM, 1.0), "rss_mb": rss} for rss in (9, 50, 50, 50, last, last)
        ]

    assert soak.grown(marks(52.0), soak.ROOM) == {}
    assert soak.grown(marks(60.0), soak.ROOM) == {"rss_mb": 10.0}


def test_nothing_is_kept_of_jobs_that_are_gone(tmp_path) -> None:
    """Memory is judged by the long run: here the 15 min that are kept are not full yet."""
    marks = soak.soak(lives=180, gpus=3, folder=tmp_path)
    room = {name: room for name, room in soak.ROOM.items() if name != "rss_mb"}
    assert len(marks) == soak.MARKS
    assert marks[-1]["series"] > 500, "jobs are exposed"
    assert soak.grown(marks, room) == {}
    assert marks[-1]["rss_mb"] - marks[3]["rss_mb"] < 25


@pytest.mark.full
@pytest.mark.timeout(7200)
def test_ten_thousand_lives(tmp_path) -> None:
    assert soak.grown(soak.soak(lives=10_000, gpus=4, folder=tmp_path), soak.ROOM) == {}


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.skipif(shutil.which("cc") is None, reason="the stand-in for NVML is C")
def test_real_processes_beside_a_running_exporter(tmp_path) -> None:
    from bench.soak_live import soak_live

    assert soak.grown(soak_live(150, 4, tmp_path), soak.ROOM_LIVE) == {}
