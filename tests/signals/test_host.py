"""What the stacks of one second say about a rank's host."""

from __future__ import annotations

import pytest

from gpuwhy.signals.host import host_phases
from gpuwhy.signals.tracks import Samples

TRAIN = ["train", "/job/train.py", 60]
METRICS = ["metrics", "/job/report.py", 53]


def of(*stacks: list[list[object]]) -> Samples:
    samples = Samples()
    for i, frames in enumerate(stacks):
        samples.add({"t": 100.0 + 0.1 * i, "dt": 0.1, "main": True, "frames": frames})
    return samples


def test_a_line_that_calls_nothing_may_be_a_call_into_c() -> None:
    found = host_phases(of(*[[TRAIN]] * 10), 100)
    assert found is not None
    assert found.shares["user"] == pytest.approx(1.0)
    assert found.opaque == pytest.approx(1.0)


@pytest.mark.parametrize(
    "callee",
    [["metrics.<locals>.<genexpr>", "/job/report.py", 53], ["rank", "/job/report.py", 70]],
    ids=["a generator on the line", "a function"],
)
def test_a_line_seen_to_call_python_hides_no_copy(callee: list[object]) -> None:
    found = host_phases(of(*[[METRICS, TRAIN]] * 9, [callee, METRICS, TRAIN]), 100)
    assert found is not None
    assert found.shares["user"] == pytest.approx(1.0)
    assert found.opaque <= 0.1 + 1e-9


def test_what_the_line_calls_in_another_phase_says_nothing_about_it() -> None:
    """``model(batch.cuda())``: the copy is on the line that calls the model."""
    module = "/v/site-packages/torch/nn/modules/module.py"
    forward = [["Net.forward", "/job/net.py", 7], ["Module._call_impl", module, 9], TRAIN]
    found = host_phases(of(*[[TRAIN]] * 5, *[forward] * 5), 100)
    assert found is not None
    assert found.opaque == pytest.approx(0.5)


def test_a_line_of_the_loop_stays_one_in_a_second_that_it_fills() -> None:
    module = "/v/site-packages/torch/nn/modules/module.py"
    forward = [["Module._call_impl", module, 9], ["train", "/job/train.py", 61]]
    stacks = of(forward, *[[TRAIN]] * 70)
    found = host_phases(stacks, 105)
    assert found is not None
    assert found.shares["user"] == pytest.approx(1.0)
    assert found.loop_lines == pytest.approx(1.0)
    other = host_phases(of(forward, *[[METRICS, TRAIN]] * 70), 105)
    assert other is not None
    assert other.loop_lines == 0.0
