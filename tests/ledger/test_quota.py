"""Kept off the CPU: told by what the kernel counted, and by which limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwhy.ledger.quota import denied
from gpuwhy.signals.row import RunSignals

RUN = RunSignals(
    run="r",
    rank=0,
    pid=1,
    phases={"data_wait": 0.6, "backward": 0.4},
    workers=4,
    worker_cpu=1.0,
    worker_delay=0.0,
    run_delay=0.0,
    cpu=0.4,
    children_cpu=4.0,
    allowed_cores=32,
    worker_cores=32,
    host_cores=32,
    host_idle=27.0,
    throttled=0.0,
    unlimited=True,
)


def found(**changes: object) -> tuple[str, float] | None:
    kept_off = denied(replace(RUN, **changes))  # type: ignore[arg-type]
    return None if kept_off is None else (kept_off.reason, kept_off.most)


def test_slow_workers_that_get_their_cpu_are_no_quota() -> None:
    assert found() is None
    assert found(run_delay=0.03, worker_delay=0.1) is None


def test_throttled_periods_are_the_surest() -> None:
    assert found(throttled=0.9) == ("cpu-quota", 1.0)
    assert found(throttled=0.1) is None


def test_workers_without_a_cpu_explain_waits_for_data_only() -> None:
    assert found(worker_delay=0.75, worker_cores=1) == ("affinity", 0.6)
    assert found(worker_delay=0.75, worker_cores=1, run_delay=0.1) == ("affinity", 1.0)


def test_without_the_kernels_count_the_use_of_the_few_cores_tells() -> None:
    few = {"worker_delay": None, "worker_cores": 1, "worker_cpu": 0.25}
    assert found(**few) == ("affinity", 0.6)
    assert found(**{**few, "worker_cpu": 0.02}) is None  # they idle: not the cores hold them up
    assert found(**{**few, "worker_cpu": 1.0}) is None  # each on a core of its own


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"unlimited": False, "throttled": None}, "cpu-quota"),  # cores were free: a limit unseen
        ({"host_idle": 0.4}, "host-cpu"),
        ({"allowed_cores": 4, "worker_cores": 4}, "affinity"),
        ({"allowed_cores": 16, "worker_cores": 16, "unlimited": False}, "cpu-quota"),
        ({"host_idle": None}, "host-cpu"),
    ],
)
def test_which_limit_it_was(changes: dict[str, object], reason: str) -> None:
    assert found(run_delay=0.4, worker_delay=0.7, **changes) == (reason, 1.0)


def test_a_short_wait_of_the_main_thread_explains_as_much_as_it_lasted() -> None:
    assert found(run_delay=0.12, host_idle=0.0) == ("host-cpu", 0.12)
