"""The order of turns, and what it keeps: every watcher its share, no exporter off for too long."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from bench import cost_schedule


@pytest.mark.parametrize("seed", range(20))
def test_blocks_hold_the_exporter_and_its_control_and_at_first_a_peer(seed: int) -> None:
    peers = ["a", "b", "c"]
    names = list(islice(cost_schedule.turns(2.0, peers, Random(seed), lambda: 0.0), 29))
    blocks = [names[i : i + 3] for i in range(0, 9, 3)]
    assert all(set(block[:2]) == {"on", "control"} for block in blocks)
    assert sorted(block[2] for block in blocks) == peers
    later = [names[i : i + 2] for i in range(9, 29, 2)]
    assert all(set(block) == {"on", "control"} for block in later)


def test_the_order_is_drawn_by_lot() -> None:
    names = list(islice(cost_schedule.turns(2.0, [], Random(1), lambda: 0.0), 200))
    first = names[::2].count("on")
    assert 30 < first < 70


def test_an_exporter_that_has_been_off_for_long_goes_first() -> None:
    off_s = cost_schedule.MOST_PAUSE_S - 1
    names = list(islice(cost_schedule.turns(2.0, ["a"], Random(1), lambda: off_s), 40))
    assert names == ["on", "control"] * 20


def test_plans_leave_room_for_the_exporter_to_come_back() -> None:
    """At worst it waits for two controls and a peer, and for the empty windows between them."""
    for plan in cost_schedule.PLANS.values():
        off_s = plan.window_s + 2 * cost_schedule.took_s(plan.window_s)
        assert off_s < 30
