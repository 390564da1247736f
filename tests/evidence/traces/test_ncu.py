"""Nsight Compute's CSV, in both of its pages, and what a kernel is bound by."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.evidence.traces import ncu, ncu_csv
from gpuwhy.evidence.traces.ncu_csv import Kernel
from gpuwhy.evidence.traces.trace import TraceError

DETAILS = """==PROF== Connected to process 4242 (/usr/bin/python3.12)
==PROF== Profiling "gemm" - 0: 0%....100% - 8 passes
step 1
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description"
"0","4242","python3.12","127.0.0.1","void gemm<float>(int)","1","7","(128, 1, 1)","(132, 1, 1)","0","9.0","GPU Speed Of Light Throughput","Duration","us","1,234.50","","",""
"0","4242","python3.12","127.0.0.1","void gemm<float>(int)","1","7","(128, 1, 1)","(132, 1, 1)","0","9.0","GPU Speed Of Light Throughput","Memory Throughput","%","31.2","","",""
"0","4242","python3.12","127.0.0.1","void gemm<float>(int)","1","7","(128, 1, 1)","(132, 1, 1)","0","9.0","GPU Speed Of Light Throughput","Compute (SM) Throughput","%","72.0","","",""
"0","4242","python3.12","127.0.0.1","void gemm<float>(int)","1","7","(128, 1, 1)","(132, 1, 1)","0","9.0","Occupancy","Achieved Occupancy","%","12.4","","",""
"0","4242","python3.12","127.0.0.1","void gemm<float>(int)","1","7","(128, 1, 1)","(132, 1, 1)","0","9.0","SpeedOfLight","","","","SOLBottleneck","INF","Compute is more heavily utilized"
"1","4242","python3.12","127.0.0.1","tiny","1","7","(32, 1, 1)","(1, 1, 1)","0","9.0","GPU Speed Of Light Throughput","Memory Throughput","%","0.5","","",""
"1","4242","python3.12","127.0.0.1","tiny","1","7","(32, 1, 1)","(1, 1, 1)","0","9.0","GPU Speed Of Light Throughput","Compute (SM) Throughput","%","0.1","","",""
"1","4242","python3.12","127.0.0.1","tiny","1","7","(32, 1, 1)","(1, 1, 1)","0","9.0","Launch Statistics","Waves Per SM","","0.01","","",""
==PROF== Disconnected from process 4242
"""  # noqa: E501

RAW = """"ID","Process ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum","gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed","sm__throughput.avg.pct_of_peak_sustained_elapsed","smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio","smsp__average_warps_issue_stalled_selected_per_issue_active.ratio"
"","","","","","ns","%","%","inst","inst"
"0","1","copy","(256, 1, 1)","(1000, 1, 1)","20000","91","10","9.5","11"
"1","1","copy","(256, 1, 1)","(1000, 1, 1)","22000","89","10","9.1","11"
"""  # noqa: E501


def test_the_details_page(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(DETAILS)
    gemm, tiny = ncu_csv.read(tmp_path / "a.csv")
    assert gemm.name == "void gemm<float>(int)"
    assert gemm.duration_s == pytest.approx(1.2345e-3)
    assert gemm.percent(ncu_csv.OCCUPANCY) == pytest.approx(0.124)
    assert gemm.rules == ["Compute is more heavily utilized"]
    assert (ncu.bound_of(gemm), ncu.bound_of(tiny)) == ("compute-bound", "too-small")


@pytest.mark.parametrize("value", ["nan", "inf", "(!) nan", "n/a", "1e999", "9" * 400])
def test_a_counter_that_could_not_be_read_is_absent(value: str) -> None:
    (kernel, _) = ncu_csv.parse(DETAILS.replace("31.2", value), "a.csv")
    assert kernel.percent(ncu_csv.MEMORY) is None
    assert ncu.bound_of(kernel) == "unknown"


def test_the_raw_page() -> None:
    kernels = ncu_csv.parse(RAW, "a.csv")
    assert [ncu.bound_of(kernel) for kernel in kernels] == ["near-limit"] * 2
    assert kernels[0].top_stall == ("long_scoreboard", 9.5)
    (row,) = ncu.table(kernels).rows
    assert (row["count"], row["stall"]) == (2, "long scoreboard")
    assert row["time"] == pytest.approx(42e-6)
    assert row["memory"] == pytest.approx(0.90)


@pytest.mark.parametrize(
    ("memory", "compute", "waves", "bound"),
    [
        (85, 20, 4, "near-limit"), (20, 85, 4, "near-limit"), (70, 30, 4, "memory-bound"),
        (30, 70, 4, "compute-bound"), (30, 20, 4, "latency-bound"), (3, 2, 0.1, "too-small"),
        (None, 20, 4, "unknown"),
    ],
)  # fmt: skip
def test_what_bounds_a_kernel(
    memory: float | None, compute: float, waves: float, bound: str
) -> None:
    metrics = {ncu_csv.COMPUTE[1]: (compute, "%"), ncu_csv.WAVES[1]: (waves, "")}
    if memory is not None:
        metrics[ncu_csv.MEMORY[1]] = (memory, "%")
    assert ncu.bound_of(Kernel("k", metrics=metrics)) == bound


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "no CSV of Nsight Compute"),
        (RAW.splitlines()[0] + "\n", "holds no kernel"),
        ("==PROF== Connected\n==WARNING== No kernels were profiled.\n", "no CSV"),
    ],
)
def test_what_is_none(text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        ncu_csv.parse(text, "a.csv")
