"""The accuracy bench judges as its page says, and the page is what it found."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.truth import Rank

from bench import accuracy, live

ROOT = Path(__file__).resolve().parents[2]


def job(fault: str) -> accuracy.Job:
    steps = [{"t0": 100.0 + i * 0.1, "t": 100.1 + i * 0.1, "laps": []} for i in range(400)]
    header = {"fault": fault, "step_s": 0.05, "pid": 1, "rank": 0, "functions": None}
    return accuracy.Job("x", Rank(header, fault_from=100.0, steps=steps), held_back=False)


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
        (answer(("data", 0.4), ("launch", 0.12)), "right"),
        ({"cause": "unknown", "causes": []}, "abstained"),
        (None, "abstained"),
    ],
)
def test_a_window_of_a_job_that_loses_half_to_data(given: dict[str, object], outcome: str) -> None:
    assert accuracy._judge(job("data"), given, 110.0, 130.0) == outcome


def test_a_cause_named_on_a_healthy_job_is_wrong() -> None:
    assert accuracy._judge(job("none"), answer(("data", 0.3)), 110.0, 130.0) == "wrong"
    assert accuracy._judge(job("none"), answer(), 110.0, 130.0) == "right"


def test_no_recording_lacks_its_truth_nor_is_too_large() -> None:
    total = 0
    for recording, found in accuracy.jobs():
        assert found, recording.name
        assert recording.stat().st_size <= 300_000
        total += recording.stat().st_size
    assert total <= 20_000_000


@pytest.mark.full
def test_the_page_is_what_the_bench_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["accuracy", "--write", str(tmp_path / "page.md")])
    assert accuracy.main() == 0
    assert (tmp_path / "page.md").read_text() == (ROOT / "docs" / "accuracy.md").read_text()


def test_the_page_of_live_answers_is_what_was_kept() -> None:
    assert live.page() == (ROOT / "docs" / "live.md").read_text()
