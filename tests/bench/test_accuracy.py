"""The accuracy bench judges as its page says, and the page is what it found."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.truth import Rank

from bench import (
    accuracy,
    accuracy_degraded,
    accuracy_jobs,
    accuracy_judge,
    accuracy_signals,
    accuracy_stats,
    accuracy_times,
    live,
    truth,
)

ROOT = Path(__file__).resolve().parents[2]


def job(fault: str) -> accuracy_jobs.Job:
    steps = [{"t0": 100.0 + i * 0.1, "t": 100.1 + i * 0.1, "laps": []} for i in range(400)]
    header = {"fault": fault, "step_s": 0.05, "pid": 1, "rank": 0, "functions": None}
    return accuracy_jobs.Job("x", Rank(header, fault_from=100.0, steps=steps), held_back=False)


def answer(*causes: tuple[str, float]) -> dict[str, object]:
    found = [{"cause": name, "lost_ratio": share, "function": None} for name, share in causes]
    return {"cause": causes[0][0] if causes else "none", "causes": found, "accounts": {}}


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (answer(("data", 0.5)), "right"),
        (answer(("host", 0.5)), "wrong"),
        (answer(), "wrong"),
        (answer(("data", 0.4), ("launch", 0.2)), "wrong"),
        (answer(("data", 0.4), ("launch", 0.12)), "wrong"),
        ({"cause": "unknown", "causes": []}, "abstained"),
        (None, "abstained"),
    ],
)
def test_a_window_of_a_job_that_loses_half_to_data(given: dict[str, object], outcome: str) -> None:
    assert accuracy_judge.judge(job("data"), given, 110.0, 130.0) == outcome


def test_a_cause_named_on_a_healthy_job_is_wrong() -> None:
    assert accuracy_judge.judge(job("none"), answer(("data", 0.3)), 110.0, 130.0) == "wrong"
    assert accuracy_judge.judge(job("none"), answer(), 110.0, 130.0) == "right"


def test_no_recording_lacks_its_truth_nor_is_too_large() -> None:
    total = 0
    for recording, found in accuracy_jobs.jobs():
        assert found, recording.name
        assert recording.stat().st_size <= 300_000
        total += recording.stat().st_size
    assert total <= 20_000_000


@pytest.mark.full
@pytest.mark.timeout(1800)  # replays every recording sixteen times
def test_the_page_is_what_the_bench_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["accuracy", "--write", str(tmp_path / "page.md")])
    assert accuracy.main() == 0
    assert (tmp_path / "page.md").read_text() == (ROOT / "docs" / "accuracy.md").read_text()


def test_the_page_of_live_answers_is_what_was_kept() -> None:
    assert live.page() == (ROOT / "docs" / "live.md").read_text()


@pytest.mark.parametrize(("right", "total", "low"), [(13, 13, 0.794), (12, 13, 0.684), (0, 4, 0.0)])
def test_what_a_number_of_jobs_can_prove(right: int, total: int, low: float) -> None:
    assert accuracy_stats.lower_bound(right, total) == pytest.approx(low, abs=0.001)


@pytest.mark.parametrize(("events", "most"), [(0, 3.0), (1, 4.74), (10, 16.96)])
def test_the_bound_of_rare_events(events: int, most: float) -> None:
    assert accuracy_stats.upper_bound(events) == pytest.approx(most, abs=0.01)


def test_an_answer_counts_once_it_stays_right() -> None:
    assert accuracy_times._steady([False, True, False, *[True] * 9]) == 3
    assert accuracy_times._steady([True, False] * 8) is None
    assert accuracy_times._steady([False, False, True]) == 2


def test_every_sight_takes_something_away_and_names_what() -> None:
    kinds = [{"kind": k} for k in ("gpm", "stack", "cgroup", "gpu_processes", "processes")]
    kinds += [{"kind": "ring", "ring": r} for r in ("power", "utilization")]
    kinds += [{"kind": "gpu", "utilization": 0.5, "power_w": 100.0}]
    for sight in accuracy_degraded.sights():
        left = list(accuracy_degraded.seen(sight, kinds))
        assert left != kinds, sight.name
        assert {"kind": "processes"} in left, sight.name
        assert sight.signals


def test_the_period_of_a_jobs_own_account() -> None:
    laps = [["data_wait", 0.2], ["forward", 0.2]]
    device = [{"t": 100.4 + i * 0.4, "laps": laps} for i in range(60)]
    rank = Rank({"fault": "data"}, device=device)
    work = accuracy_signals.activity(rank, 101.0, 121.0)
    assert work is not None
    assert float(work.mean()) == pytest.approx(0.5, abs=0.01)
    assert accuracy_signals._period(work) == pytest.approx(0.4, rel=0.01)
    assert accuracy_signals._off(1.2, 0.4) == pytest.approx(0.0, abs=1e-9)
    assert accuracy_signals._off(0.5, 0.4) > 0.1


def test_the_pace_without_the_fault_is_that_of_the_warm_healthy_job() -> None:
    steps = [{"t0": 100.0 + i * 0.12, "t": 100.12 + i * 0.12, "laps": []} for i in range(200)]
    healthy = Rank({"fault": "none", "step_s": 0.10}, steps=steps)
    ill = Rank({"fault": "data", "step_s": 0.11})
    assert truth.pace_as(ill, healthy) == pytest.approx(0.11 * 1.2)
    assert truth.pace_as(Rank({"fault": "data", "step_s": None}), healthy) is None
