"""Accounts of a whole GPU, its clock, its steps, and the verdict drawn from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.evidence.traces.kineto_file import KinetoFile, busy_steps

from gpuwhy.evidence.traces import kineto, launch, streams
from gpuwhy.evidence.traces.analysis import Analysis, analyse
from gpuwhy.evidence.traces.gpu import gpus_of

LISTED = ["gpu", "uuid", "mig", "run", "rank", "cause", "causes", "accounts", "cannot_see"]


def analysis_of(folder: Path, *files: KinetoFile) -> Analysis:
    return analyse([kineto.read(file.write(folder / f"{i}.json")) for i, file in enumerate(files)])


def test_a_loop_that_waits_for_its_loader(tmp_path: Path) -> None:
    entry = analysis_of(tmp_path, busy_steps(wait=1_000.0)).ranks[0]
    assert list(entry)[: len(LISTED)] == LISTED
    assert entry["cause"] == "data"
    cause = entry["causes"][0]
    assert cause["lost_ratio"] == pytest.approx(1_020 / 2_020, abs=0.02)
    assert cause["evidence"][0]["source"] == "trace"
    assert "num_workers" in cause["next_action"] or "workers" in cause["next_action"]
    assert sum(entry["accounts"].values()) == pytest.approx(1.0, abs=0.001)


def test_a_loop_that_keeps_the_gpu_busy(tmp_path: Path) -> None:
    entry = analysis_of(tmp_path, busy_steps()).ranks[0]
    assert entry["cause"] == "none"
    assert entry["causes"] == []
    assert entry["accounts"]["compute"] > 0.95


def test_tiny_kernels(tmp_path: Path) -> None:
    made = KinetoFile()
    for number in range(4):
        made.step(number, 1_000 + number * 1_000, 1_000)
        for i in range(20):
            at = 1_000 + number * 1_000 + i * 50
            made.launch(at, at + 10, 3, operator="aten::mul")
    analysis = analysis_of(tmp_path, made)
    entry = analysis.ranks[0]
    assert entry["cause"] == "launch"
    assert entry["accounts"]["launch"] > 0.9
    assert "aten::mul" in entry["causes"][0]["next_action"]
    assert "CUDA Graphs" in entry["causes"][0]["next_action"]
    values = {e["text"]: e["value"] for e in entry["causes"][0]["evidence"]}
    assert values["kernels shorter than 5 us"] == 1.0
    assert values["launches that found the queue empty"] == 1.0


def test_copies_that_nothing_hides(tmp_path: Path) -> None:
    made = KinetoFile()
    name = "Memcpy HtoD (Pageable -> Device)"
    for number in range(3):
        at = 1_000.0 + number * 1_000
        made.step(number, at, 1_000)
        made.launch(at + 5, at + 10, 500, cat="gpu_memcpy", name=name, bytes=1 << 20)
        made.launch(at + 20, at + 510, 490)
    analysis = analysis_of(tmp_path, made)
    entry = analysis.ranks[0]
    assert (entry["cause"], entry["causes"][0]["reason"]) == ("copy", "host-to-device")
    assert "pin_memory" in entry["causes"][0]["next_action"]
    row = next(t for t in analysis.tables if t.key == "copies").rows[0]
    assert (row["way"], row["memory"], row["copies"]) == ("host to device", "pageable", 3)
    assert row["bytes"] == 3 << 20
    assert row["overlap_ratio"] == 0.0
    assert row["bandwidth"] == pytest.approx((1 << 20) / 500e-6, rel=0.01)


def test_the_gpus_clock_ahead_of_the_hosts(tmp_path: Path) -> None:
    made = busy_steps(wait=1_000.0)
    truth = analysis_of(tmp_path, made).ranks[0]["accounts"]
    for event in made.events:
        if event["cat"] == "kernel":
            event["ts"] -= 300
    entry = analysis_of(tmp_path, made).ranks[0]
    for account in ("compute", "data"):
        assert entry["accounts"][account] == pytest.approx(truth[account], abs=0.02)
    assert "clock" in [blind["signal"] for blind in entry["cannot_see"]]


def test_steps_end_when_the_gpu_has_done_them(tmp_path: Path) -> None:
    """The host is three steps ahead: the GPU's time per step is still the GPU's."""
    made = KinetoFile()
    for number in range(4):
        made.step(number, 1_000 + number * 50, 50)
        made.launch(1_010 + number * 50, 1_100 + number * 1_000, 1_000)
    gpu = gpus_of(kineto.read(made.write(tmp_path / "a.json")))[0]
    assert gpu.steps is not None
    assert gpu.steps.durations.tolist()[1:] == [1_000_000] * 3
    assert gpu.window.end == 5_100_000


@pytest.mark.parametrize("how", ["named", "optimizer", "loader", "sequence"])
def test_steps_that_nobody_marked(how: str, tmp_path: Path) -> None:
    made = busy_steps(steps=5)
    made.events = [e for e in made.events if not e["name"].startswith("ProfilerStep")]
    for i in range(5):
        at = 1_000 + i * 1_020
        if how == "named":
            made.span(f"train_step {i}", at, 1_000, cat="user_annotation")
        elif how == "optimizer":
            made.span("Optimizer.step#SGD.step", at + 900, 50, cat="user_annotation")
        elif how == "loader":
            made.span("enumerate(DataLoader)#x", at, 1, cat="user_annotation")
    if how == "sequence":
        for i, event in enumerate(e for e in made.events if e["cat"] == "kernel"):
            event["name"] = f"kernel {i % 10}"
    gpu = gpus_of(kineto.read(made.write(tmp_path / "a.json")))[0]
    assert gpu.steps is not None
    assert len(gpu.steps.names) == (5 if how == "named" else 4)
    assert np.median(gpu.steps.durations) == pytest.approx(1_020_000, rel=0.02)


def test_no_steps_are_told(tmp_path: Path) -> None:
    made = KinetoFile()
    for i in range(7):
        made.launch(100 + i * i * 100, 200 + i * i * 100, 50, name=f"kernel {i}")
    entry = analysis_of(tmp_path, made).ranks[0]
    assert "steps" in [blind["signal"] for blind in entry["cannot_see"]]


def test_how_far_the_host_is_ahead(tmp_path: Path) -> None:
    gpu = gpus_of(kineto.read(busy_steps().write(tmp_path / "a.json")))[0]
    found = launch.launches(gpu)
    assert found.count == 40
    assert found.ahead_median == pytest.approx(15e-6 + 4.5 * 90e-6, rel=0.05)
    assert found.per_second == pytest.approx(40 / (4 * 1_020e-6), rel=0.02)


def test_idle_within_a_stream_by_category(tmp_path: Path) -> None:
    made = KinetoFile()
    made.launch(0, 10, 10)  # until 20
    made.launch(5, 25, 10)  # launched in time, 5 us later: between two kernels
    made.launch(100, 110, 10)  # launched after the one before had ended
    made.launch(101, 200, 10)  # launched in time, 80 us later: something else
    gpu = gpus_of(kineto.read(made.write(tmp_path / "a.json")))[0]
    assert streams.breakdown(gpu, 7) == {
        "host_wait": 75_000, "kernel_wait": 5_000, "other": 80_000,
    }  # fmt: skip


def test_two_devices_in_one_file_are_two_gpus(tmp_path: Path) -> None:
    made = busy_steps()
    made.device = 1
    made.launch(2_000, 2_100, 50)
    assert [entry["gpu"] for entry in analysis_of(tmp_path, made).ranks] == [0, 1]
