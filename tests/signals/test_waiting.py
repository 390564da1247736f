"""Who waits for whom where not all ranks of a run can be compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline

RECORDINGS = Path(__file__).parents[1] / "recordings"
BENCH = Path(__file__).parents[2] / "bench" / "recordings"


def of_one_gpu(name: str, index: int) -> list[Observation]:
    """The recording without the other GPU; its rank is still in the process table."""
    observations = list(read(RECORDINGS / f"{name}.gpuwhy.gz")[1])
    uuids = sorted({o["uuid"] for o in observations if o["kind"] == "gpu_info"})
    return [o for o in observations if o.get("uuid", uuids[index]) == uuids[index]]


@pytest.mark.parametrize(
    ("name", "index", "cause"),
    [
        ("ddp_straggler", 0, "comm"),
        ("ddp_straggler", 1, "host"),
        ("ddp_healthy", 0, "none"),
        ("ddp_healthy", 1, "none"),
    ],
)
def test_a_peer_whose_gpu_is_out_of_sight(name: str, index: int, cause: str) -> None:
    assert causes(of_one_gpu(name, index), index) == [cause]


def causes(observations: list[Observation], gpu: int) -> list[str]:
    pipeline = Pipeline()
    pipeline.feed(observations)
    pipeline.finish()
    return [g["cause"] for g in pipeline.verdicts()["gpus"] if g["gpu"] == gpu]


def test_a_process_that_only_holds_memory_hides_no_wait() -> None:
    notebook = {"pid": 999_999, "memory": 1 << 29, "type": "compute"}
    observations = list(read(RECORDINGS / "ddp_straggler.gpuwhy.gz")[1])
    for observation in observations:
        if observation["kind"] == "gpu_processes":
            observation["processes"] = [*observation["processes"], notebook]
    assert causes(observations, 0) == ["comm"]


def test_two_jobs_of_one_script_are_not_compared() -> None:
    """Started in the same second, each with its GPU: without counters one that loads slowly would
    make the other look as if it waited."""
    pipeline = Pipeline()
    for observation in read(BENCH / "c01-c03.gpuwhy.gz")[1]:
        if observation["kind"] not in ("gpm", "ring"):
            pipeline.feed([observation])
    pipeline.finish()
    named = {c["cause"] for g in pipeline.verdicts()["gpus"] for c in g["causes"]}
    assert "data" in named
    assert "comm" not in named
