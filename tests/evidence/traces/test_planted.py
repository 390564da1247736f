"""Traces and recordings of jobs with one planted cause each, made on an H200 by
bench/traces/make_traces.py, against what the jobs measured of themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpuwhy.evidence.compare import Comparison, compare
from gpuwhy.evidence.compare_samples import load
from gpuwhy.evidence.traces import ncu, ncu_csv
from gpuwhy.evidence.traces.analysis import Analysis, analyse
from gpuwhy.evidence.traces.read import read_trace

FOLDER = Path(__file__).parent / "h200"
TRUTH: dict[str, dict[str, Any]] = json.loads((FOLDER / "manifest.json").read_text())["truth"]


def analysis(*names: str) -> Analysis:
    files = [FOLDER / f"{name}.json.gz" for name in names]
    return analyse([trace for file in files for trace in read_trace(file)])


@pytest.mark.parametrize(
    ("name", "cause"),
    [("story_2_launch", "launch"), ("sync_bound", "host"), ("copy_bound", "copy")],
)
def test_the_planted_cause_is_named(name: str, cause: str) -> None:
    (entry,) = analysis(name).ranks
    assert entry["cause"] == cause
    assert entry["accounts"].get("unknown", 0.0) < 0.05
    assert sum(entry["accounts"].values()) == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize(("name", "cause"), [("sync_bound", "host"), ("copy_bound", "copy")])
def test_the_share_lost_is_that_of_the_job_without_the_fault(name: str, cause: str) -> None:
    (entry,) = analysis(name).ranks
    assert entry["causes"][0]["lost_ratio"] == pytest.approx(TRUTH[name]["lost"], abs=0.05)


def test_the_line_behind_a_wait() -> None:
    (entry,) = analysis("sync_bound").ranks
    assert entry["causes"][0]["function"]["name"] == "burn"
    assert entry["causes"][0]["function"]["file"].endswith("jobs.py")


def test_a_replayed_graph_keeps_the_gpu_busy() -> None:
    """As the counters of the same job say: 99 % (the recording)."""
    made = analysis("story_3_graph")
    (entry,) = made.ranks
    assert entry["cause"] == "none"
    assert entry["accounts"]["compute"] > 0.97
    (launches,) = next(table.rows for table in made.tables if table.key == "launches")
    assert launches["launches"] < 20  # for more than 2 000 kernels


def test_work_from_before_the_record_is_no_part_of_its_first_step() -> None:
    """The host was three replayed steps ahead when the record began."""
    steps = next(table.rows for table in analysis("story_3_graph").tables if table.key == "steps")
    truth = TRUTH["story_3_graph"]["step_seconds"]
    assert [row["time"] for row in steps] == pytest.approx([truth] * 4, rel=0.08)


def test_two_ranks_of_which_one_is_late() -> None:
    """It slept 50 ms before each backward. They met over gloo, on the host."""
    made = analysis("two_ranks_gloo-rank0", "two_ranks_gloo-rank1")
    waiting, late = made.ranks
    assert waiting["cause"] == "comm"
    assert "waits for a later one" in waiting["causes"][0]["next_action"]
    assert (late["cause"], late["causes"][0]["reason"]) == ("host", "straggler")
    ranks = next(table.rows for table in made.tables if table.key == "ranks")
    assert ranks[1]["late"] == pytest.approx(TRUTH["two_ranks_gloo-rank1"]["late_s"], rel=0.02)
    assert ranks[0]["waited"] / 4 == pytest.approx(0.05, rel=0.05)  # of each of four steps


def acts(one: str, two: str, form: str) -> Comparison:
    return compare(load(FOLDER / f"{one}.{form}"), load(FOLDER / f"{two}.{form}"))


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        ("story_1_data", "story_2_launch", "launch overhead is now the largest"),
        ("story_2_launch", "story_3_graph", "launch overhead from"),
    ],
)
def test_each_step_of_the_story_by_its_recordings(one: str, two: str, told: str) -> None:
    """The loader mended, the launches are the largest loss; replayed as a graph, none is left."""
    made = acts(one, two, "gpuwhy.gz")
    assert told in made.summary
    assert made.warning is None  # one thing was changed
    assert made.step_time is not None
    assert made.step_time.certain
    truth = [TRUTH[name]["while_recorded"]["step_seconds"] for name in (one, two)]
    assert made.step_time.before.value == pytest.approx(truth[0], rel=0.05)
    assert made.step_time.after.value == pytest.approx(truth[1], rel=0.05)


def test_the_loaders_share_of_the_recording() -> None:
    """What act two takes less is what the loader cost."""
    made = acts("story_1_data", "story_2_launch", "gpuwhy.gz")
    one, two = (TRUTH[n]["while_recorded"]["step_seconds"]
                for n in ("story_1_data", "story_2_launch"))  # fmt: skip
    assert made.accounts["data"].before.value == pytest.approx(1 - two / one, abs=0.05)
    assert made.accounts["data"].after.value < 0.01


def test_the_story_by_its_traces() -> None:
    """The same by the profiler, which slows the launches: 9 ms a step alone, 18 under it."""
    first = acts("story_1_data", "story_2_launch", "json.gz")
    second = acts("story_2_launch", "story_3_graph", "json.gz")
    assert "faster, data from" in first.summary
    assert "launch overhead is" in first.summary
    assert "faster, launch overhead from" in second.summary


def test_steps_are_never_shorter_under_the_profiler() -> None:
    for name in ("story_1_data", "story_2_launch", "sync_bound", "copy_bound"):
        steps = next(table.rows for table in analysis(name).tables if table.key == "steps")
        mean = sum(row["time"] for row in steps) / len(steps)
        assert mean > 0.95 * TRUTH[name]["step_seconds"]


@pytest.mark.parametrize("page", ["kernels", "kernels_raw"])
def test_kernels(page: str) -> None:
    """Of ncu 2025.3: a large product, GELU over 256 MB, a sum, a gather, 64 numbers."""
    table = ncu.table(ncu_csv.read(FOLDER / f"{page}.csv.gz"))
    bounds = {row["kernel"].partition("(")[0].strip(): row["bound"] for row in table.rows}
    assert sum(row["count"] for row in table.rows) == 12
    assert next(b for k, b in bounds.items() if k.startswith("nvjet")) == "near-limit"
    assert bounds["at::reduce_kernel"] == "near-limit"
    assert bounds["at::index_elementwise_kernel"] == "latency-bound"
    assert {row["bound"] for row in table.rows if "add" in row["name"]} == {"too-small"}
    for row in table.rows:
        assert {"time", "compute", "memory", "occupancy", "waves"} <= set(row)
    assert all("stall" in row for row in table.rows) == (page == "kernels_raw")
    assert bool(table.note) == (page == "kernels")
