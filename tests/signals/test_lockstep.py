"""Who waits in a collective: figures of the recorded straggler and of what must not be one."""

from __future__ import annotations

import pytest

from gpuwhy.signals.lockstep import RankActivity, signature, waiting

WAITING = RankActivity(0, busy=0.94, sm=0.30, tensor=0.054, dram=0.073, power_w=237)
LATE = RankActivity(1, busy=0.187, sm=0.146, tensor=0.053, dram=0.070, power_w=228)


def test_the_rank_that_is_busy_longer_for_the_same_work_waits() -> None:
    found = waiting([WAITING, LATE])
    assert found[0].share == pytest.approx(0.75, abs=0.01)
    assert found[0].straggler == 1
    assert found[1].share == 0


def test_without_counters_the_same_power_tells_it() -> None:
    found = waiting([RankActivity(0, busy=0.94, power_w=237), RankActivity(1, 0.187, power_w=228)])
    assert found[0].share == pytest.approx(0.753, abs=0.01)


def test_more_power_is_more_work_and_cannot_be_judged_without_counters() -> None:
    found = waiting([RankActivity(0, busy=0.94, power_w=650), RankActivity(1, 0.187, power_w=228)])
    assert 0 not in found


def test_healthy_ranks_do_not_wait() -> None:
    a = RankActivity(0, busy=0.997, sm=0.875, tensor=0.335, dram=0.393, power_w=691)
    b = RankActivity(1, busy=0.982, sm=0.858, tensor=0.323, dram=0.396, power_w=691)
    assert all(w.share == 0 for w in waiting([a, b]).values())


def test_a_rank_with_more_work_of_its_own_is_not_waiting() -> None:
    more = RankActivity(0, busy=0.9, sm=0.8, tensor=0.30, dram=0.35)
    less = RankActivity(1, busy=0.45, sm=0.4, tensor=0.15, dram=0.17)
    assert waiting([more, less])[0].share == 0


def test_a_shared_gpu_is_not_compared() -> None:
    assert waiting([WAITING, RankActivity(1, 0.2, sm=0.15, tensor=0.05, alone=False)]) == {}


@pytest.mark.parametrize(
    ("unread", "how"), [({}, "link"), ({"sm": None}, "lockstep"), ({"pcie": None}, "lockstep")]
)
def test_ranks_alike_wait_for_the_link_or_cannot_be_judged(
    unread: dict[str, None], how: str
) -> None:
    figures = {"busy": 1.0, "sm": 0.63, "tensor": 0.22, "dram": 0.27, "pcie": 20e9, **unread}
    found = waiting([RankActivity(0, **figures), RankActivity(1, **figures)])  # type: ignore[arg-type]
    assert {w.how for w in found.values()} == {how}


@pytest.mark.parametrize(("sm", "pcie"), [(0.63, 1e8), (None, 1e8), (0.86, None)])
def test_an_idle_link_or_sms_at_work_rule_out_an_exchange(
    sm: float | None, pcie: float | None
) -> None:
    ranks = [RankActivity(i, 1.0, sm=sm, tensor=0.3, dram=0.3, pcie=pcie) for i in (0, 1)]
    assert {(w.share, w.how) for w in waiting(ranks).values()} == {(0.0, "peers")}


def test_alone_in_sight_the_mixture_of_spin_and_work_tells() -> None:
    found = signature(WAITING)
    assert found is not None
    assert found.share == pytest.approx(0.75, abs=0.05)
    healthy = signature(RankActivity(0, busy=0.99, sm=0.87, tensor=0.33, dram=0.39))
    assert healthy is not None
    assert healthy.share == 0


def test_alone_in_sight_a_link_that_is_full_both_ways_tells_too() -> None:
    """Two H200 without peer-to-peer: each alone looks like dense work."""
    rank = RankActivity(0, busy=1.0, sm=0.64, tensor=0.22, dram=0.27, pcie=20e9)
    found = signature(rank)
    assert found is not None
    assert found.how == "link"
    assert found.share == pytest.approx(0.31, abs=0.02)
