"""Traces that others published: what is known of them, and what another tool says of them.

The numbers of HolisticTraceAnalysis 0.5.0 are those of ``bench/traces/compare_hta.py``
(``get_idle_time_breakdown``, all steps, nanoseconds kept).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuwhy.evidence.traces import kineto, streams
from gpuwhy.evidence.traces.analysis import Analysis, analyse
from gpuwhy.evidence.traces.gpu import gpus_of

FOLDER = Path(__file__).parents[4] / "shared" / "public-data" / "traces"
RESNET_A, RESNET_B, NCCL = (
    FOLDER / f"{name}.json.gz"
    for name in ("kineto-resnet50-a.pt.trace", "kineto-resnet50-b.pt.trace", "hta-nccl")
)
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the published traces do not lie beside the project"
)

HTA_IDLE_US: dict[Path, dict[int, dict[str, float]]] = {
    NCCL: {
        7: {"host_wait": 540091.32, "kernel_wait": 2150.34, "other": 0.0},
        40: {"host_wait": 583924.26, "kernel_wait": 0.0, "other": 0.0},
    },
    RESNET_A: {7: {"host_wait": 382676.0, "kernel_wait": 10243.0, "other": 0.0}},
    RESNET_B: {7: {"host_wait": 175026.0, "kernel_wait": 10642.0, "other": 1469.0}},
}


def analysis(path: Path) -> Analysis:
    return analyse([kineto.read(path)])


def entry(path: Path) -> dict[str, Any]:
    return analysis(path).ranks[0]


@pytest.mark.parametrize("path", HTA_IDLE_US, ids=lambda path: path.name)
def test_idle_time_by_stream_agrees_with_hta(path: Path) -> None:
    gpu = gpus_of(kineto.read(path))[0]
    for stream, expected in HTA_IDLE_US[path].items():
        found = {k: ns / 1000 for k, ns in streams.breakdown(gpu, stream).items()}
        assert found == pytest.approx(expected, rel=0.01)


def test_no_workers_a_third_of_the_time_is_the_loaders() -> None:
    found = entry(RESNET_A)
    assert (found["cause"], found["causes"][0]["reason"]) == ("data", "inline")
    assert found["accounts"]["data"] == pytest.approx(0.35, abs=0.03)
    assert found["causes"][0]["function"]["file"] == "resnet50_profiler_api.py"
    assert found["window"]["start"].startswith("2021-06-08T08:57:03")


def test_four_workers_a_hundredth_is() -> None:
    found = entry(RESNET_B)
    assert found["accounts"]["data"] == pytest.approx(0.01, abs=0.005)
    assert found["cause"] == "launch"


def test_a_distributed_step() -> None:
    found = analysis(NCCL)
    rank = found.ranks[0]
    assert (rank["rank"], rank["cause"]) == (0, "launch")
    table = next(t for t in found.tables if t.key == "collectives")
    assert [(r["collective"], r["count"]) for r in table.rows] == [
        ("all_reduce", 15), ("broadcast", 6),
    ]  # fmt: skip
    assert rank["window"]["start"] == "2024-05-23T00:15:22.416788Z"
    assert len(next(t for t in found.tables if t.key == "steps").rows) == 3
