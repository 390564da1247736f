"""The budget: what is planned, and what is spent at most."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwhy.observe.stacks_budget import CLOSE, LEAST_HZ, STEADY, Bucket, Costs, make_plan


def test_share_of_one_core() -> None:
    assert STEADY.share(0) == STEADY.share(1) == STEADY.share(4) == 0.03
    assert STEADY.share(8) == pytest.approx(0.06)
    assert STEADY.share(1, 0.5) == pytest.approx(0.015)
    assert STEADY.share(1, 1.0) == STEADY.share(1, 7.0) == pytest.approx(0.0075)
    assert STEADY.share(1, None) == 0.03


def test_a_rank_and_a_few_workers_get_what_is_wanted() -> None:
    plan = make_plan(STEADY, Costs(), STEADY.share(1), rest=1, fine=0, workers=4)
    assert plan.hz >= STEADY.rest_hz
    assert plan.workers > 0.01


@given(
    rest=st.integers(0, 16),
    fine=st.integers(0, 16),
    workers=st.integers(0, 128),
    dump=st.floats(0.001, 0.1),
    sample=st.floats(0.0, 0.01),
    share=st.floats(0.005, 1.0),
)
def test_a_plan_is_within_bounds_and_within_its_share_where_it_can_be(
    rest: int, fine: int, workers: int, dump: float, sample: float, share: float
) -> None:
    costs = Costs(dump, sample)
    plan = make_plan(STEADY, costs, share, rest=rest, fine=fine, workers=workers)
    assert LEAST_HZ <= plan.hz <= STEADY.fine_hz
    assert (plan.workers > 0) == (workers > 0) or share <= costs.own
    dumps = (rest + fine) / STEADY.chunk_s + rest / STEADY.locals_s + fine / STEADY.fine_locals_s
    sampled = sample * (rest * min(plan.hz, STEADY.rest_hz) + fine * plan.hz)
    if plan.hz > LEAST_HZ:
        assert costs.own + dump * dumps + sampled + plan.workers <= share * (1 + 1e-9)


def test_rates_fall_before_gaps_grow() -> None:
    hz = [
        make_plan(CLOSE, Costs(), 0.15, rest=ranks, fine=0, workers=0).hz for ranks in (1, 4, 8, 64)
    ]
    assert hz == sorted(hz, reverse=True)
    assert (hz[0], hz[-1]) == (CLOSE.rest_hz, LEAST_HZ)


def test_costs_are_learned() -> None:
    costs = Costs()
    for _ in range(100):
        costs.learn_dump(0.030)
        costs.learn_record(0.030 + 20 * 0.002, 20)
        costs.learn_own(0.001, 0.1)
    assert costs.dump_s == pytest.approx(0.030, rel=0.01)
    assert costs.sample_s == pytest.approx(0.002, rel=0.01)
    assert costs.own == pytest.approx(0.01, rel=0.2)
    assert costs.record(20) == pytest.approx(0.070, rel=0.01)


@given(st.lists(st.tuples(st.floats(0.001, 5.0), st.floats(0.0, 0.2)), max_size=200))
def test_a_bucket_bounds_what_is_spent(steps: list[tuple[float, float]]) -> None:
    """Whoever asks before spending spends no more than share * time + burst + the last capture."""
    share, now, spent, largest = 0.04, 0.0, 0.0, 0.0
    bucket = Bucket()
    bucket.fill(now, share)
    for elapsed, cost in steps:
        now += elapsed
        bucket.fill(now, share)
        if not bucket.empty:
            bucket.spend(cost)
            spent, largest = spent + cost, max(largest, cost)
    assert spent <= share * now + max(0.1, share * 5) + largest + 1e-9


def test_time_in_which_we_were_stopped_is_not_saved_up() -> None:
    bucket = Bucket()
    bucket.fill(0.0, 0.04)
    bucket.spend(bucket.level + 0.06)
    bucket.fill(1.0, 0.04)
    assert bucket.level == pytest.approx(-0.02)
    bucket.fill(600.0, 0.04)
    assert bucket.level == pytest.approx(0.02)
