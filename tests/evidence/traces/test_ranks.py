"""Several ranks: who comes late to the collectives, and by how much."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evidence.traces.kineto_file import KinetoFile, busy_steps

from gpuwhy.evidence.traces import collectives, kineto
from gpuwhy.evidence.traces.analysis import analyse
from gpuwhy.evidence.traces.gpu import COLLECTIVE
from gpuwhy.evidence.traces.trace import Message, TraceError

NAME = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
LATE = 400.0


def rank_of(rank: int, late: float, shift: float = 0.0) -> KinetoFile:
    """Steps of 1 ms: 400 us of work, then an all-reduce that ends 100 us after the last rank has
    come. ``shift`` moves the clock of its host."""
    made = KinetoFile(distributedInfo={"rank": rank, "world_size": 2})
    for number in range(5):
        at = 1_000 + shift + number * 1_000
        made.step(number, at, 1_000)
        made.launch(at + 5, at + 10, 390, operator="aten::mm")
        if late:
            made.span("train.py(20): slow", at + 30, 360 + late, cat="python_function")
        came = at + 400 + late
        made.launch(came - 8, came, LATE - late + 100, name=NAME, stream=20)
        made.span("nccl:all_reduce", came - 20, 15, cat="user_annotation")
    return made


def test_the_late_rank_is_named_whatever_the_clocks_say(tmp_path: Path) -> None:
    files = [rank_of(0, 0.0), rank_of(1, LATE, shift=123_456.0)]
    paths = [file.write(tmp_path / f"rank{i}.json") for i, file in enumerate(files)]
    analysis = analyse([kineto.read(path) for path in paths])
    waiting, late = analysis.ranks
    assert (waiting["rank"], waiting["cause"]) == (0, "comm")
    assert waiting["accounts"]["comm"] == pytest.approx(0.5, abs=0.02)
    assert (late["rank"], late["cause"], late["causes"][0]["reason"]) == (1, "host", "straggler")
    assert late["causes"][0]["function"]["name"] == "slow"
    assert "wait for rank 1" in analysis.summary
    rows = next(t for t in analysis.tables if t.key == "ranks").rows
    assert [row["last_ratio"] for row in rows] == [0.0, 1.0]
    assert rows[1]["late"] == pytest.approx(LATE * 1e-6)
    assert rows[0]["waited_ratio"] == pytest.approx(0.4, abs=0.01)


def test_ranks_that_meet_on_time_have_no_straggler(tmp_path: Path) -> None:
    paths = [rank_of(i, 0.0).write(tmp_path / f"rank{i}.json") for i in range(2)]
    analysis = analyse([kineto.read(path) for path in paths])
    assert "wait for rank" not in analysis.summary
    assert all(cause["reason"] != "straggler" for e in analysis.ranks for cause in e["causes"])


def test_ranks_cut_at_different_steps_are_matched_by_step(tmp_path: Path) -> None:
    one, two = rank_of(0, 0.0), rank_of(1, LATE)
    one.events = [e for e in one.events if e["ts"] < 5_000]  # its last step was not recorded
    paths = [file.write(tmp_path / f"rank{i}.json") for i, file in enumerate((one, two))]
    analysis = analyse([kineto.read(path) for path in paths])
    rows = next(t for t in analysis.tables if t.key == "ranks").rows
    assert rows[1]["late"] == pytest.approx(LATE * 1e-6)


def test_one_rank_alone_says_what_it_cannot_tell(tmp_path: Path) -> None:
    entry = analyse([kineto.read(rank_of(0, 0.0).write(tmp_path / "rank0.json"))]).ranks[0]
    assert "other ranks" in [blind["signal"] for blind in entry["cannot_see"]]


def test_two_files_of_one_rank_are_two_runs(tmp_path: Path) -> None:
    paths = [busy_steps(rank=0).write(tmp_path / f"{name}.json") for name in "ab"]
    with pytest.raises(TraceError, match="both of rank 0"):
        analyse([kineto.read(path) for path in paths])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (NAME, "all_reduce"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "all_reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)", "reduce_scatter"),
        ("ncclDevKernel_AllGather_RING_LL(x)", "all_gather"),
        ("ncclDevKernel_SendRecv(x)", "send_recv"),
        ("ncclDevKernel_Generic_1(x)", "collective"),
    ],
)
def test_kinds_of_collectives(name: str, kind: str) -> None:
    assert COLLECTIVE.search(name)
    assert collectives.kind_of(name, None) == kind
    assert collectives.kind_of(name, Message("allreduce", None, "0", 2)) == "all_reduce"


@pytest.mark.parametrize(
    "name", ["void at::native::reduce_kernel<512, 1>(x)", "sm90_xmma_gemm_bf16bf16", "Memset"]
)
def test_the_jobs_own_kernels_are_none(name: str) -> None:
    assert COLLECTIVE.search(name) is None
