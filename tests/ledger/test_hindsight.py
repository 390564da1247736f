"""What the end of a window tells of its beginning."""

from __future__ import annotations

from gpuwhy.ledger.stalled import in_hindsight
from gpuwhy.signals.row import RunSignals

WAITING = {("data", "waiting"): 0.9, ("compute", ""): 0.1}
STALLED = {("stalled", "no-progress"): 1.0}


def run(stuck_s: float) -> RunSignals:
    return RunSignals(run="r", rank=0, pid=1, stuck_s=stuck_s)


def test_a_job_that_stands_still_has_done_so_since_its_thread_came_there() -> None:
    shares = in_hindsight([run(i) for i in range(6)], [WAITING] * 5 + [STALLED])
    assert shares == [WAITING, *[STALLED] * 5]


def test_a_stall_that_is_over_is_left_as_it_was_entered() -> None:
    shares = [WAITING, STALLED, WAITING]
    assert in_hindsight([run(0)] * 3, shares) == shares


def test_nothing_to_look_back_on() -> None:
    assert in_hindsight([], []) == []
