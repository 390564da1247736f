"""What the cost measurement makes of windows, and a short one of a real job and exporter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import cost_cores, cost_report, cost_stats, truth

ROOT = Path(__file__).resolve().parents[2]
NEW_POPEN = pytest.mark.skipif(sys.version_info < (3, 11), reason="Popen's process_group")


def run_of(
    slowdown: float, *, seed: int = 1, cycles: int = 4, drift: float = 0.0, noise: float = 0.002
) -> list[dict[str, Any]]:
    """Windows off, on, off, control, off, ...; the step is 50 ms, longer by ``drift`` a window."""
    random = np.random.default_rng(seed)
    windows: list[dict[str, Any]] = []
    for number in range(4 * cycles + 1):
        state = ("off", "on", "off", "control")[number % 4]
        step = 50_000 * (1 + drift * number) * (1 + (slowdown if state == "on" else 0))
        steps = step * (1 + random.normal(0, noise, 80))
        windows.append({"state": state, "steps_us": [round(value) for value in steps]})
    return windows


def summary(*runs: list[dict[str, Any]]) -> dict[str, Any]:
    return cost_stats.summary([{"windows": windows} for windows in runs])


@pytest.mark.parametrize("measure", ["mean", "median"])
def test_a_slowdown_is_found_and_the_control_shows_none(measure: str) -> None:
    found = summary(run_of(0.01))
    on, control = found["on"][measure], found["control"][measure]
    assert on.value == pytest.approx(0.01, abs=0.001)
    assert 0.005 < on.low < on.value < on.high < 0.015
    assert control.low < 0 < control.high
    assert found["on"]["windows"] == found["control"]["windows"] == 4
    assert found["step_s"] == pytest.approx(0.05, rel=0.001)


def test_peers_are_held_against_the_same_empty_windows() -> None:
    windows = run_of(0.01)
    for window in windows[3::4]:
        window["state"] = "py-spy"
    found = summary(windows)
    assert found["peers"] == ["py-spy"]
    assert found["py-spy"]["windows"] == 4
    assert abs(found["py-spy"]["mean"].value) < 0.001
    assert found["control"]["windows"] == 0


def test_batches_that_come_in_bursts_are_compared_by_whole_bursts() -> None:
    """Four come at once, then nothing for long: a window holds the long step or it does not."""
    step = [200_000, 50_000, 50_000, 50_000]
    windows = [
        {"state": state, "steps_us": (step * 5)[begin : begin + 18]}
        for begin, state in enumerate(["off", "on", "off"])
    ]
    [loose] = cost_stats.trials(windows)
    [whole] = cost_stats.trials(windows, 4)
    assert abs(cost_stats.slowdown([loose], "mean").value) > 0.01  # type: ignore[union-attr]
    assert cost_stats.slowdown([whole], "mean").value == pytest.approx(0)  # type: ignore[union-attr]


def test_neighbours_with_the_same_trouble_widen_the_interval() -> None:
    def trials(signs: list[int]) -> list[cost_stats.Trial]:
        tried = [np.full(5, 1 + 0.01 * sign) for sign in signs]
        return [cost_stats.Trial("on", steps, [np.ones(5)]) for steps in tried]

    apart = cost_stats.slowdown(trials([1, -1] * 4), "mean")
    together = cost_stats.slowdown(trials([1, 1, -1, -1] * 2), "mean")
    assert apart
    assert together
    assert together.high - together.low > 1.2 * (apart.high - apart.low)  # type: ignore[operator]


def test_a_steady_drift_cancels() -> None:
    found = summary(run_of(0.0, drift=0.005))
    assert found["on"]["mean"].value == pytest.approx(0.0, abs=0.0005)
    assert found["on"]["mean"].low < 0 < found["on"]["mean"].high


@pytest.mark.parametrize("units", [3, 6])
def test_the_interval_holds_the_truth_as_often_as_it_says(units: int) -> None:
    """A short run has so few: a plain percentile interval would hold it 70 and 86 % of the time."""
    random = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        trials = [
            cost_stats.Trial("on", np.full(5, np.exp(random.normal(0.002, 0.003))), [np.ones(5)])
            for _ in range(units)
        ]
        estimate = cost_stats.slowdown(trials, "mean")
        assert estimate
        assert estimate.low is not None
        assert estimate.high is not None
        held += estimate.low <= np.expm1(0.002) <= estimate.high
    assert 0.92 < held / 400 < 0.98


def test_too_few_windows_have_no_interval_and_none_no_value() -> None:
    one = summary(run_of(0.01, cycles=1)[:3])
    assert one["on"]["windows"] == 1
    assert one["on"]["mean"].low is None
    assert one["control"]["mean"] is None
    nothing = summary([])
    assert nothing["step_s"] is None
    assert nothing["on"]["mean"] is None
    few = [{"state": state, "steps_us": [1] * 4} for state in ("off", "on", "off")]
    assert cost_stats.trials(few) == []
    spoilt = [{"state": state, "steps_us": [1] * 9} for state in ("off", cost_stats.SPOILT, "off")]
    assert cost_stats.trials(spoilt) == []


def test_windows_of_several_runs_are_pooled_but_never_held_against_each_other() -> None:
    runs = [run_of(0.01, seed=seed, cycles=2) for seed in (1, 2)]
    assert summary(*runs)["on"]["windows"] == 4
    off = [{"state": "off", "steps_us": [9] * 9}]
    assert summary(off, run_of(0.0)[1:2], off)["on"]["windows"] == 0


def test_rare_long_steps_show_in_the_tail_alone() -> None:
    calm, stalls = run_of(0.0), run_of(0.0)
    for window in stalls:
        if window["state"] == "on":
            window["steps_us"][7] = 150_000
    quiet, found = summary(calm), summary(stalls)
    assert quiet["tail_inside"]
    assert not found["tail_inside"]
    assert found["on"]["tail"].value == pytest.approx(2.0, rel=0.05)
    assert found["on"]["median"].value == pytest.approx(quiet["on"]["median"].value, abs=0.0005)


@pytest.mark.parametrize(
    ("degrees", "exact"), [(2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042)]
)
def test_students_quantile(degrees: int, exact: float) -> None:
    assert cost_stats.student(degrees) == pytest.approx(exact, rel=0.008)


def test_only_steps_wholly_inside_a_window_count() -> None:
    rows = [{"t0": t, "t": t + 1} for t in (0.0, 1.0, 2.0, 3.0)]
    assert cost_stats.steps_inside(rows, 0.5, 3.0) == [1_000_000, 1_000_000]


@NEW_POPEN
def test_steps_are_timed_on_the_device_where_it_was() -> None:
    from bench.cost_measurement import step_rows

    rank = truth.Rank({}, steps=[{"t0": 1.0, "t": 2.0}])
    assert step_rows(rank) == [{"t0": 1.0, "t": 2.0}]
    rank.device = [{"t": 5.0, "laps": [["forward", 0.25], ["backward", 0.5]]}]
    assert step_rows(rank) == [{"t0": 4.25, "t": 5.0}]


def test_no_core_is_given_twice_and_no_siblings_are_parted() -> None:
    groups = [[i, i + 8] for i in range(8)]
    shares = cost_cores.split(groups)
    every = shares.job + shares.exporter + shares.bench
    assert sorted(every) == list(range(16))
    for group in groups:
        assert sum(not set(group).isdisjoint(part) for part in vars(shares).values()) == 1
    assert len(shares.job) >= 10
    two = cost_cores.split([[0], [1]])
    assert (two.job, two.exporter, two.bench) == ([0], [1], [1])
    with pytest.raises(ValueError, match="core each"):
        cost_cores.split([[0, 1]])


def test_cores_are_grouped_as_the_kernel_says(tmp_path: Path) -> None:
    for cpu, siblings in {0: "0,2", 2: "0,2", 1: "1"}.items():
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(siblings + "\n")
    assert cost_cores.physical([0, 1, 2, 3], tmp_path) == [[0, 2], [1], [3]]


def results() -> dict[str, Any]:
    windows = run_of(0.01)
    for window in windows[1::4]:
        window |= {"cores": 0.05, "pss": 90_000_000}
    windows[3] |= {"state": "py-spy record, 20 Hz, blocking", "cores": 0.02, "pss": 8_000_000}
    job = {"variant": "c01", "job": "gpt.py", "windows": windows, "ready_s": 1.5}
    job |= {"unbroken_cores": 0.049, "notes": ["NVML, 10 Hz does not run: no library"]}
    broken = {"variant": "c35", "job": "tabular.py", "error": "JobError: it ended"}
    return {"kind": "cost", "t": 0, "machine": {"cpus": 16}, "jobs": [job, broken]}


def test_the_report_stands_between_its_marks(tmp_path: Path) -> None:
    document, file = tmp_path / "cost.md", tmp_path / "cost.json"
    document.write_text(f"before\n{cost_report.BEGIN}\nold\n{cost_report.END}\nafter\n")
    file.write_text(json.dumps(results()))
    assert cost_report.write([file], document) == 0
    once = document.read_text()
    assert once.startswith(f"before\n{cost_report.BEGIN}\n")
    assert once.endswith(f"{cost_report.END}\nafter\n")
    assert "old" not in once
    assert "+1.0" in once
    assert "| c01 | 5.0 % of a core | 90 MB | 4.9 % of a core | 1.5 s |" in once
    assert "| c01 | py-spy record, 20 Hz, blocking | 1 | " in once
    assert "2.0 % of a core | 8 MB |" in once
    assert "Goal: at most 0.2 % slower, upper 95 % bound 0.5 %. By mean steps `c01` misses" in once
    assert "NVML, 10 Hz does not run: no library" in once
    assert "JobError: it ended" in once
    assert cost_report.write([file], document) == 0
    assert document.read_text() == once


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [
        (0.001, -0.001, 0.003, "reaches it"),
        (0.001, -0.009, 0.011, "is not known well enough"),
        (0.003, -0.001, 0.004, "is not known well enough"),
        (0.004, 0.003, 0.005, "misses it"),
        (0.001, None, None, "has too few windows for an interval"),
    ],
)
def test_the_goal(value: float, low: float | None, high: float | None, said: str) -> None:
    assert cost_report.goal(cost_stats.Estimate(value, low, high)) == said


def test_a_report_that_cannot_be_made_changes_nothing(tmp_path: Path) -> None:
    document, file = tmp_path / "cost.md", tmp_path / "cost.json"
    file.write_text(json.dumps(results()))
    document.write_text("no marks\n")
    assert cost_report.write([file], document) == 2
    file.write_text("{")
    assert cost_report.write([file], document) == 2
    assert document.read_text() == "no marks\n"


def test_our_document_has_the_marks() -> None:
    text = (ROOT / "docs/cost.md").read_text()
    assert text.count(cost_report.BEGIN) == text.count(cost_report.END) == 1


@NEW_POPEN
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_real_job_and_exporter(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    options = ["--turns", "2", "--seconds", "200", "--window", "1", "--settle", "4", "--no-peers"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.cost", "c01", *options, "--out", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "JOB_SCALE": "tiny", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    assert "gpt.py c01" in done.stdout
    [job] = json.loads((tmp_path / "cost.json").read_text())["jobs"]
    windows = job["windows"]
    states = [window["state"] for window in windows]
    assert set(states[::2]) == {"off"}
    assert {"on", "control"} <= set(states[1::2])
    assert any(window["steps_us"] for window in windows)
    on = [window for window in windows if window["state"] == "on"]
    assert sum(window["cores"] for window in on) > 0
    assert on[0]["pss"] > 10_000_000
    assert sum(window["cores"] for window in windows if window["state"] == "control") == 0
    assert (job["clock"], job["round"], job["notes"]) == ("host", 2, [])
