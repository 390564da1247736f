"""Traces of jobs with one planted cause each, made on H200 GPUs by bench/traces/make_traces.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpuwhy.evidence.compare import compare
from gpuwhy.evidence.compare_samples import load
from gpuwhy.evidence.traces import ncu, ncu_csv
from gpuwhy.evidence.traces.analysis import analyse
from gpuwhy.evidence.traces.read import read_trace

FOLDER = Path(__file__).parent / "h200"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no traces of an H200 were made yet")


def ranks(*names: str) -> list[dict[str, Any]]:
    files = [FOLDER / f"{name}.json.gz" for name in names]
    return analyse([trace for file in files for trace in read_trace(file)]).ranks


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("story_1_data", "data"), ("story_2_launch", "launch"), ("sync_bound", "host"),
        ("copy_bound", "copy"),
    ],
)  # fmt: skip
def test_the_planted_cause_is_named(name: str, cause: str) -> None:
    (entry,) = ranks(name)
    assert entry["cause"] == cause
    assert entry["accounts"].get("unknown", 0.0) < 0.05
    assert sum(entry["accounts"].values()) == pytest.approx(1.0, abs=0.001)


def test_the_line_behind_a_wait() -> None:
    (entry,) = ranks("sync_bound")
    assert entry["causes"][0]["function"]["name"] in ("burn", "update_metrics", "train_step")
    assert entry["causes"][0]["function"]["file"].endswith("jobs.py")


def test_two_ranks_of_which_one_is_late() -> None:
    waiting, late = ranks("two_ranks-rank0", "two_ranks-rank1")
    assert waiting["cause"] == "comm"
    assert (late["cause"], late["causes"][0]["reason"]) == ("host", "straggler")


def test_the_story() -> None:
    """The loader mended, the launches are the largest loss; replayed as a graph, they are less."""
    one, two, three = (
        load(FOLDER / f"{name}.json.gz")
        for name in ("story_1_data", "story_2_launch", "story_3_graph")
    )
    first, second = compare(one, two), compare(two, three)
    assert "faster, data from" in first.summary
    assert "launch overhead" in first.summary
    assert "faster, launch overhead from" in second.summary


def test_steps_last_about_as_long_as_without_the_profiler() -> None:
    """The profiler slows the host, so a step under it is never shorter by much."""
    without = json.loads((FOLDER / "manifest.json").read_text())["step_seconds_without_profiler"]
    made = compare(load(FOLDER / "story_1_data.json.gz"), load(FOLDER / "copy_bound.json.gz"))
    assert made.step_time is not None
    assert made.step_time.before.value > 0.8 * without["story_1_data"]
    assert made.step_time.after.value > 0.8 * without["copy_bound"]


@pytest.mark.skipif(not (FOLDER / "kernels.csv").exists(), reason="ncu could read no counters")
def test_kernels() -> None:
    rows = ncu.table(ncu_csv.read(FOLDER / "kernels.csv")).rows
    by_name = {row["kernel"]: row["bound"] for row in rows}
    assert any(
        bound in ("near-limit", "memory-bound")
        for name, bound in by_name.items()
        if "elementwise" in name and "Gelu" in name
    )
    assert "too-small" in by_name.values() or "latency-bound" in by_name.values()
