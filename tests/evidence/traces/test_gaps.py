"""Each planted wait ends in its own part, and every nanosecond in exactly one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.evidence.traces.kineto_file import AUTOGRAD, MAIN, KinetoFile

from gpuwhy.evidence.traces import kineto
from gpuwhy.evidence.traces.gaps import PARTS
from gpuwhy.evidence.traces.gpu import Gpu, gpus_of

GAP = (1_100.0, 6_100.0)
"""Between two kernels, in us: all cases are about it."""


def gpu_of(file: KinetoFile, folder: Path) -> Gpu:
    return gpus_of(kineto.read(file.write(folder / "a.json")))[0]


def with_gap(host: Callable[[KinetoFile], None], late: float = 6_090.0) -> KinetoFile:
    """A kernel until GAP begins; ``host`` does something; the next launch at ``late``."""
    made = KinetoFile()
    made.launch(990, 1_000, 100, operator="aten::mm")
    host(made)
    made.launch(late, GAP[1], 100, operator="aten::mm")
    return made


def parts(gpu: Gpu) -> dict[str, float]:
    """Part -> us."""
    sums = gpu.gaps.amounts.sum(axis=0) / 1000
    return {part: round(float(s), 3) for part, s in zip(PARTS, sums, strict=True) if s}


def loader(file: KinetoFile) -> None:
    file.span("enumerate(DataLoader)#_It.__next__", 1_050, 5_000, cat="user_annotation")


def named_loader(file: KinetoFile) -> None:
    file.span("train.py(31): next_batch", 1_050, 5_000, cat="python_function")
    file.span("torch/utils/data/dataloader.py(701): __next__", 1_050, 5_000, cat="python_function")


def item(file: KinetoFile) -> None:
    file.call("cudaStreamSynchronize", 1_000, 110)


def item_then_python(file: KinetoFile) -> None:
    file.call("cudaStreamSynchronize", 1_000, 110)
    file.span("train.py(40): burn", 1_110, 4_900, cat="python_function")


def dispatch(file: KinetoFile) -> None:
    for at in range(1_100, 6_000, 50):
        file.span("aten::view", at, 30)


def python(file: KinetoFile) -> None:
    file.span("aten::view", 1_100, 10)


def pageable_copy(file: KinetoFile) -> None:
    file.call("cudaMemcpyAsync", 1_100, 4_990)


def garbage(file: KinetoFile) -> None:
    file.span("<built-in function gc.collect>", 1_080, 5_000, cat="python_function")


def saving(file: KinetoFile) -> None:
    file.span("torch/serialization.py(900): save", 1_080, 5_000, cat="python_function")


def evaluation(file: KinetoFile) -> None:
    file.span("evaluate", 1_080, 5_000, cat="user_annotation")


def barrier(file: KinetoFile) -> None:
    file.span("gloo:barrier", 1_080, 5_000, cat="user_annotation")


def module(file: KinetoFile) -> None:
    file.call("cuModuleLoadData", 1_100, 4_980)


@pytest.mark.parametrize(
    ("host", "part"),
    [
        (loader, "data"), (named_loader, "data"), (dispatch, "dispatch"), (python, "python"),
        (item_then_python, "python"), (pageable_copy, "copy"), (garbage, "garbage-collection"),
        (saving, "checkpoint"), (evaluation, "evaluation"), (barrier, "comm"),
        (module, "startup"),
    ],
)  # fmt: skip
def test_who_was_waited_for(host: Callable[[KinetoFile], None], part: str, tmp_path: Path) -> None:
    gpu = gpu_of(with_gap(host), tmp_path)
    found = parts(gpu)
    assert sum(found.values()) == pytest.approx(5_010)  # and the 10 us before the first kernel
    assert found[part] >= 4_500


def test_a_short_wait_after_a_synchronise_is_the_synchronise(tmp_path: Path) -> None:
    made = KinetoFile()
    made.launch(990, 1_000, 100, operator="aten::mm")
    item(made)
    made.launch(1_140, 1_150, 100, operator="aten::mm")
    assert parts(gpu_of(made, tmp_path))["synchronize"] == 50


def test_work_that_was_queued_waits_for_something_else(tmp_path: Path) -> None:
    gpu = gpu_of(with_gap(lambda file: None, late=1_010), tmp_path)
    assert parts(gpu) == {"latency": 200, "between": 10, "queued": 4_800}


def test_between_kernels_of_a_queue_the_gpu_is_at_its_own_pace(tmp_path: Path) -> None:
    """As the counters of a running GPU have it: busy."""
    made = KinetoFile()
    for i in range(10):
        made.launch(900 + i * 6, 1_000 + i * 102, 100)
    gpu = gpu_of(made, tmp_path)
    assert parts(gpu) == {"between": 9 * 2, "latency": 100}
    assert gpu.accounts["compute"] == pytest.approx((1_000 + 18) / 1_118)


def test_what_was_launched_only_just_is_launch_latency(tmp_path: Path) -> None:
    """One launch after the other, each 5 us before the GPU falls idle."""
    made = KinetoFile()
    for i in range(10):
        made.launch(995 + i * 102, 1_000 + i * 102, 100)
    assert parts(gpu_of(made, tmp_path)).get("between", 0) == 0


def test_work_launched_before_the_record_began_was_queued(tmp_path: Path) -> None:
    made = KinetoFile()
    for i in range(5):
        made.activity(None, 1_000 + i * 102, 100)
    made.launch(1_050, 1_510, 100)
    assert parts(gpu_of(made, tmp_path)) == {"between": 5 * 2}


def test_without_calls_nothing_is_claimed(tmp_path: Path) -> None:
    made = KinetoFile()
    made.activity(None, 1_000, 100)
    made.activity(None, 6_100, 100)
    gpu = gpu_of(made, tmp_path)
    assert parts(gpu) == {"blind": 5_000}
    assert gpu.accounts["unknown"] == pytest.approx(5_000 / 5_200)


def test_without_operators_a_quiet_host_is_not_called_python(tmp_path: Path) -> None:
    made = KinetoFile()
    made.launch(990, 1_000, 100)
    made.launch(6_090, 6_100, 100)
    assert parts(gpu_of(made, tmp_path))["blind"] >= 4_900


def test_the_main_thread_answers_for_a_thread_that_was_not_yet_at_work(tmp_path: Path) -> None:
    """Backward runs on autograd's thread; before it, the main thread waited for data."""
    made = KinetoFile()
    made.step(1, 900, 6_000)
    made.launch(990, 1_000, 100, operator="aten::mm")
    loader(made)
    made.launch(6_090, 6_100, 100, tid=AUTOGRAD, operator="aten::mm")
    assert parts(gpu_of(made, tmp_path))["data"] >= 4_900


def test_overlapping_streams_leave_no_gap(tmp_path: Path) -> None:
    made = KinetoFile()
    made.launch(990, 1_000, 3_000, stream=7)
    made.launch(995, 2_000, 4_100, stream=20)
    made.launch(999, 6_100, 100, stream=7)
    assert gpu_of(made, tmp_path).idle.total == 10_000  # until the first kernel


starts = st.integers(0, 20_000)
lengths = st.integers(0, 3_000)
spans = st.lists(
    st.tuples(
        st.sampled_from(
            ["aten::add", "enumerate(DataLoader)#x", "cudaStreamSynchronize", "cudaMemcpyAsync",
             "train.py(1): f", "ProfilerStep#"]
        ),
        starts, lengths, st.sampled_from([MAIN, AUTOGRAD]),
    ),
    max_size=25,
)  # fmt: skip
kernels = st.lists(
    st.tuples(starts, st.integers(0, 500), lengths, st.booleans()), min_size=1, max_size=25
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(spans, kernels)
def test_every_nanosecond_is_in_one_account(
    tmp_path: Path,
    host: list[tuple[str, int, int, int]],
    device: list[tuple[int, int, int, bool]],
) -> None:
    made = KinetoFile()
    for i, (name, start, length, tid) in enumerate(host):
        if name.startswith("cuda"):
            made.call(name, start, length, tid)
        elif name.startswith("ProfilerStep"):
            made.step(i, start, length)
        else:
            cat = "cpu_op" if name.startswith("aten") else "user_annotation"
            made.span(name, start, length, tid=tid, cat=cat)
    for launched, wait, length, known in device:
        correlation = made.call("cudaLaunchKernel", launched, 5) if known else None
        made.activity(correlation, launched + wait, length)
    gpu = gpu_of(made, tmp_path)
    gaps = gpu.gaps
    assert (gaps.amounts >= 0).all()
    assert gaps.amounts.sum(axis=1) == pytest.approx(np.asarray(gaps.end - gaps.start, float))
    if gpu.window.end > gpu.window.start:
        assert sum(gpu.accounts.values()) == pytest.approx(1.0)
    if gpu.steps is not None:
        pairs = zip(gpu.steps.bounds[:-1].tolist(), gpu.steps.bounds[1:].tolist(), strict=True)
        by_step = sum(sum(gpu.shares_of(a, b).values()) for a, b in pairs)
        assert by_step == pytest.approx(sum(gpu.shares.values()))
