"""Who waits for whom where not all ranks of a run can be compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline

RECORDINGS = Path(__file__).parents[1] / "recordings"


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
    pipeline = Pipeline()
    pipeline.feed(of_one_gpu(name, index))
    pipeline.finish()
    seen = [g for g in pipeline.verdicts()["gpus"] if g["gpu"] == index]
    assert [g["cause"] for g in seen] == [cause]
