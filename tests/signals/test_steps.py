"""Steps of unmodified loops from integer locals."""

from __future__ import annotations

import pytest

from gpuwhy.signals.steps import Steps, read_steps
from gpuwhy.signals.tracks import Samples


def seen(*observations: tuple[float, list[list[object]]]) -> Samples:
    samples = Samples(120.0)
    for t, values in observations:
        samples.add({"kind": "locals", "t": t, "pid": 1, "values": values})
    return samples


def test_a_plain_loop() -> None:
    def loop(step: int) -> list[list[object]]:
        return [["train", "/j.py", "log_every", 10], ["train", "/j.py", "step", step]]

    steps = read_steps(seen((100.0, loop(24)), (110.0, loop(124))), 110)
    assert (steps.step, steps.name, steps.t) == (124, "step", 110.0)
    assert steps.per_second == pytest.approx(10.0)


def test_a_constant_is_no_counter() -> None:
    values: list[list[object]] = [["f", "/j.py", "i", 0], ["train", "/j.py", "it", 5]]
    later: list[list[object]] = [["f", "/j.py", "i", 0], ["train", "/j.py", "it", 9]]
    assert read_steps(seen((100.0, values), (102.0, later)), 102).name == "it"


def test_the_loaders_own_locals_are_no_steps() -> None:
    values: list[list[object]] = [["_next_data", "/s/torch/utils/data/dataloader.py", "idx", 169]]
    assert read_steps(seen((100.0, values)), 100).step is None


def test_a_new_epoch_starts_the_rate_anew() -> None:
    points = [(100.0, 90), (105.0, 95), (110.0, 3), (115.0, 8)]
    steps = read_steps(seen(*[(t, [["t", "/j.py", "step", s]]) for t, s in points]), 115)
    assert steps.per_second == pytest.approx(1.0)


def test_epoch_and_total_of_the_trainer() -> None:
    values: list[list[object]] = [
        ["_run_epoch", "/s/transformers/trainer.py", "step", 11],
        ["_run_epoch", "/s/transformers/trainer.py", "epoch", 2],
        ["_inner", "/s/transformers/trainer.py", "max_steps", 1000],
    ]
    steps = read_steps(seen((100.0, values)), 101)
    assert (steps.step, steps.epoch, steps.total) == (11, 2, 1000)


def test_old_locals_say_nothing_of_now() -> None:
    assert read_steps(seen((100.0, [["t", "/j.py", "step", 1]])), 200).step is None


def counted(*points: tuple[float, int]) -> Samples:
    return seen(*[(t, [["t", "/j.py", "step", value]]) for t, value in points])


@pytest.mark.parametrize("torn", [7, 90_000])
def test_a_torn_read_is_no_step(torn: int) -> None:
    points = [(100.0, 500), (101.0, 510), (102.0, torn), (103.0, 530)]
    steps = read_steps(counted(*points), 103)
    assert (steps.step, steps.per_second) == (530, pytest.approx(10.0))


def test_a_counter_that_fell_is_believed_once_it_goes_on() -> None:
    points = [(100.0, 500), (101.0, 510), (102.0, 4)]
    assert read_steps(counted(*points), 102).step == 510
    steps = read_steps(counted(*points, (103.0, 14)), 103)
    assert (steps.step, steps.per_second) == (14, pytest.approx(10.0))


def test_reads_far_apart_are_believed() -> None:
    """As of a short recording that is played again and again: two reads of it, then anew."""
    points = [(100.0, 24), (114.0, 168), (121.0, 24), (135.0, 168)]
    assert read_steps(counted(*points[:3]), 121).step == 24
    steps = read_steps(counted(*points), 135)
    assert (steps.step, steps.per_second) == (168, pytest.approx(144 / 14))


def test_the_rate_is_of_late() -> None:
    points = [(100.0 + t, 20 * t if t < 60 else 1200 + (t - 60)) for t in range(0, 110, 5)]
    assert read_steps(counted(*points), 205).per_second == pytest.approx(1.0)


@pytest.mark.parametrize(("name", "sure"), [("global_step", True), ("step", True), ("i", False)])
def test_a_counter_of_training_is_told_from_any_loop(name: str, sure: bool) -> None:
    assert Steps(step=9, name=name, per_second=2.0).surely_moves is sure
    assert not Steps(step=9, name=name, per_second=0.0).surely_moves
