"""Lost shares, phases and expected answers from lines as jobs write them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bench import truth


def line(kind: str, **fields: Any) -> str:
    return json.dumps({"kind": kind, "rank": 0, "t": 0.0, **fields}) + "\n"


def job(
    path: Path,
    *,
    fault: Any = "data",
    step_s: float | None = 0.1,
    laps: dict[str, float],
    steps: int = 100,
    fault_from: float = 1000.0,
    pauses: tuple[tuple[float, float], ...] = (),
) -> truth.Rank:
    """A job that begins at 1000 and repeats the same laps."""
    text = line("header", fault=fault, step_s=step_s) + line("start", fault_from=fault_from)
    at = 1000.0
    for step in range(steps):
        end = at + sum(laps.values())
        text += line("step", step=step, t0=at, t=end, laps=list(laps.items()), ready=step % 3)
        at = end
    for t0, t1 in pauses:
        text += line("pause", name="checkpoint", t0=t0, t1=t1)
    path.write_text(text)
    return truth.load(path)[0]


def test_lost_share_compares_with_the_pace_without_the_fault(tmp_path: Path) -> None:
    rank = job(tmp_path / "t", laps={"data_wait": 0.1, "forward": 0.1})
    assert truth.progress(rank, 1001.0, 1003.0) == pytest.approx(10)
    assert truth.lost(rank, 1001.0, 1003.0) == pytest.approx(0.5)
    assert truth.lost(rank, 1001.05, 1001.15) == pytest.approx(0.5)
    assert truth.lost(rank, 1001.0, 1003.0, step_s=0.2) == pytest.approx(0.0)


def test_pauses_are_no_loss(tmp_path: Path) -> None:
    text = line("header", fault="none", step_s=0.5) + line("start", fault_from=0.0)
    text += line("step", step=0, t0=1000.0, t=1000.5, laps=[["forward", 0.5]])
    laps = [["forward", 0.5], ["checkpoint", 4.0]]
    text += line("step", step=1, t0=1000.5, t=1005.0, laps=laps)
    text += line("pause", name="checkpoint", t0=1001.0, t1=1005.0)
    text += line("step", step=2, t0=1005.0, t=1005.5, laps=[["forward", 0.5]])
    (tmp_path / "t").write_text(text)
    rank = truth.load(tmp_path / "t")[0]
    assert truth.lost(rank, 1000.0, 1005.5) == pytest.approx(0.0)
    assert truth.paused(rank, 1000.0, 1002.0) == pytest.approx(1.0)
    assert truth.healthy_step_s(rank, skip_s=0.0) == pytest.approx(0.5)


def test_phases_steps_and_queue(tmp_path: Path) -> None:
    rank = job(tmp_path / "t", laps={"data_wait": 0.15, "forward": 0.05})
    assert truth.phases(rank, 1000.0, 1002.0) == pytest.approx({"data_wait": 0.75, "forward": 0.25})
    assert truth.step_at(rank, 1000.3) == 1
    assert truth.step_at(rank, 5000.0) is None
    assert truth.queue_at(rank, 1000.1) is None
    with pytest.raises(KeyError):
        truth.queue_at(rank, 1000.5)  # the lines above hold no "outstanding"


def test_device_laps_end_at_their_line(tmp_path: Path) -> None:
    text = line("header", fault="none", step_s=0.1) + line(
        "gpu", step=0, t=1001.0, laps=[["data_wait", 0.25], ["forward", 0.75]]
    )
    (tmp_path / "t").write_text(text.replace('"t": 0.0, ', "", 0))
    rank = truth.load(tmp_path / "t")[0]
    assert truth.device_laps(rank, 1000.0, 1001.0) == pytest.approx(
        {"data_wait": 0.25, "forward": 0.75}
    )


@pytest.mark.parametrize(
    ("wait_s", "must", "may"),
    [(0.1, {"data"}, set()), (0.012, set(), {"data"}), (0.001, set(), set())],
)
def test_a_cause_is_due_by_its_size(
    tmp_path: Path, wait_s: float, must: set[str], may: set[str]
) -> None:
    rank = job(tmp_path / "t", laps={"data_wait": wait_s, "forward": 0.1})
    due = truth.expected(rank, 1001.0, 1004.0)
    assert (due.must, due.may) == (must, may)
    assert due.holds(set(must)) and due.holds(must | may)
    assert not due.holds({"host"})
    assert not must or not due.holds(set())


def test_two_faults_share_the_loss_by_their_laps(tmp_path: Path) -> None:
    laps = {"data_inline": 0.1, "forward": 0.1, "logging": 0.01}
    rank = job(tmp_path / "t", fault=["data", "host"], laps=laps)
    due = truth.expected(rank, 1001.0, 1004.0)
    assert (due.must, due.may) == ({"data"}, set())


def test_windows_before_and_across_the_onset(tmp_path: Path) -> None:
    laps = {"data_wait": 0.1, "forward": 0.1}
    rank = job(tmp_path / "t", laps=laps, fault_from=1005.0)
    assert truth.expected(rank, 1001.0, 1004.0) == truth.Expected(frozenset(), frozenset())
    assert truth.expected(rank, 1004.0, 1008.0).may == {"data"}
    assert truth.expected(rank, 1006.0, 1008.0).must == {"data"}


def test_a_stalled_job_must_be_named_once_it_stands(tmp_path: Path) -> None:
    rank = job(tmp_path / "t", fault="stalled", laps={"forward": 0.1}, steps=50)
    assert not truth.expected(rank, 1001.0, 1004.0).must
    assert truth.expected(rank, 1006.0, 1010.0).must == {"stalled"}


def test_healthy_jobs_and_other_ranks_expect_nothing(tmp_path: Path) -> None:
    rank = job(tmp_path / "t", fault="none", laps={"forward": 0.1})
    assert truth.expected(rank, 1001.0, 1004.0).holds(set())
    assert not truth.expected(rank, 1001.0, 1004.0).holds({"launch"})


def test_a_job_bound_by_launches_is_held_against_its_kernels(tmp_path: Path) -> None:
    path = tmp_path / "t"
    job(path, fault="launch", laps={"forward": 0.1})
    device = {"kernel_s": 0.16, "nccl_only_s": 0.0, "copy_only_s": 0.0}
    with path.open("a") as file:
        file.write(line("kernels", steps=8, wall_s=0.9, devices={"0": device}))
    rank = truth.load(path)[0]
    assert truth.lost(rank, 1001.0, 1003.0) == pytest.approx(0.8)
    found = truth.busy(rank, 1001.0, 1003.0)
    assert found == pytest.approx({"0.busy": 0.2, "0.nccl": 0.0, "0.copy": 0.0})


def test_a_line_cut_at_the_end_is_left_out_and_others_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    whole = line("header", fault="none", step_s=None)
    path.write_text(whole + '{"kind": "st')
    assert truth.load(path)[0].steps == []
    path.write_text('{"kind": "st\n' + whole)
    with pytest.raises(ValueError, match=r"t\.jsonl:1"):
        truth.load(path)
    packed = tmp_path / "t.jsonl.gz"
    packed.write_bytes(gzip.compress(whole.encode()))
    assert truth.load(packed)[0].causes == ()
