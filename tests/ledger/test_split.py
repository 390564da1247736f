"""The run view of one second: an identity, in a fixed order, nothing claimed without evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from tests.ledger_strategies import rows

from gpuwhy.ledger import thresholds as th
from gpuwhy.ledger.accounts import ACCOUNTS, REASONS
from gpuwhy.ledger.split import split
from gpuwhy.signals.row import GpuRow, GpuSignals, RunSignals

GPU = GpuSignals(
    uuid="GPU-a",
    gpu=0,
    busy=0.4,
    sm_active=0.3,
    tensor=0.1,
    dram=0.2,
    copied_in=5e6,
    copied_out=5e6,
    pcie_rx=5e6,
    pcie_tx=5e6,
)
RUN = RunSignals(run="r", rank=0, pid=1, cpu=1.0, throttled=0.0, cgroup_seen=True)


def accounts(gpu: GpuSignals, run: RunSignals) -> dict[str, float]:
    out: dict[str, float] = {}
    row = GpuRow(gpu, (run,), frozenset())
    for (account, _), share in split(row, run).shares.items():
        out[account] = out.get(account, 0.0) + share
    return out


@given(rows())
def test_accounts_add_up_to_the_second(row: GpuRow) -> None:
    for run in row.runs:
        shares = split(row, run).shares
        assert sum(shares.values()) == pytest.approx(1.0)
        assert all(value >= 0 for value in shares.values())
        assert {account for account, _ in shares} <= set(ACCOUNTS)
        assert all(reason in REASONS.get(account, ("",)) for account, reason in shares)


@given(rows())
def test_idle_time_is_not_more_than_was_idle(row: GpuRow) -> None:
    for run in row.runs:
        parts = split(row, run)
        if row.gpu is not None and row.gpu.busy is not None:
            assert sum(parts.busy.values()) == pytest.approx(row.gpu.busy)
            assert sum(parts.idle.values()) == pytest.approx(1 - row.gpu.busy)


def test_no_gpu_in_sight_has_no_accounts() -> None:
    assert split(GpuRow(None, (RUN,), frozenset()), RUN).shares == {}


def test_waiting_for_data_takes_idle_time_first_not_in_proportion() -> None:
    run = replace(RUN, phases={"data_wait": 0.65, "backward": 0.35})
    assert accounts(GPU, run)["data"] == pytest.approx(0.6)


def test_data_takes_no_more_than_the_host_waited() -> None:
    found = accounts(GPU, replace(RUN, phases={"data_wait": 0.2, "backward": 0.8}))
    assert found["data"] == pytest.approx(0.2)
    assert found["launch"] == pytest.approx(0.4)


def test_a_cpu_quota_comes_before_data() -> None:
    run = replace(RUN, phases={"data_wait": 0.65, "backward": 0.35}, throttled=1.0)
    found = accounts(GPU, run)
    assert found["quota"] == pytest.approx(0.6)
    assert "data" not in found


def test_a_checkpoint_comes_before_a_cpu_quota() -> None:
    run = replace(RUN, phases={"checkpoint": 0.5, "backward": 0.5}, throttled=1.0)
    assert accounts(GPU, run)["checkpoint"] == pytest.approx(0.5)


def test_launch_needs_a_core_at_full_speed() -> None:
    dispatching = {"forward": 0.5, "backward": 0.5}
    assert accounts(GPU, replace(RUN, phases=dispatching))["launch"] == pytest.approx(0.6)
    slow = accounts(GPU, replace(RUN, phases=dispatching, cpu=0.3))
    assert slow["unknown"] == pytest.approx(0.6)
    assert "launch" not in slow


def test_without_stacks_idle_time_is_unknown() -> None:
    row = GpuRow(GPU, (RUN,), frozenset())
    assert split(row, RUN).idle == {("unknown", "no-stacks"): pytest.approx(0.6)}


def test_a_line_of_the_loop_without_pcie_counters_may_be_a_copy() -> None:
    gpu = replace(GPU, copied_in=None)
    run = replace(RUN, phases={"user": 1.0}, loop_lines=1.0)
    assert accounts(gpu, run)["unknown"] == pytest.approx(0.6)
    named = replace(run, loop_lines=0.0)
    assert accounts(gpu, named)["host"] == pytest.approx(0.6)


def test_traffic_behind_a_plain_line_is_a_copy() -> None:
    run = replace(RUN, phases={"user": 1.0}, opaque=1.0)
    busy_link = replace(GPU, copied_in=1e9, copied_out=1e9, pcie_rx=1e9, pcie_tx=1e9)
    assert accounts(busy_link, run)["copy"] == pytest.approx(0.6)
    assert accounts(GPU, run)["host"] == pytest.approx(0.6)
    python = replace(run, opaque=0.0)
    assert accounts(busy_link, python)["host"] == pytest.approx(0.6)


def test_lines_that_copy_to_the_device_explain_no_traffic_from_it() -> None:
    """A batch is sent at a line that is known to; results come back at a plain one."""
    phases = {"user": 0.4, "h2d_copy": 0.02, "backward": 0.58}
    run = replace(RUN, phases=phases, opaque=0.4, loop_lines=0.4)
    back = replace(GPU, copied_in=4e8, copied_out=6e8)
    assert accounts(back, run)["copy"] == pytest.approx(0.42)
    inward = replace(GPU, copied_in=4e8, copied_out=1e6)
    assert accounts(inward, run)["copy"] == pytest.approx(0.02)


def test_waiting_in_a_collective_comes_before_the_neighbour() -> None:
    run = replace(RUN, waiting=0.3, own_sm=0.5, other_sm=0.0)
    assert accounts(GPU, run)["comm"] == pytest.approx(0.3)


def test_two_jobs_that_take_turns_lose_the_turns_too() -> None:
    gpu = replace(GPU, busy=1.0)
    run = replace(RUN, own_sm=0.5, other_sm=0.5, others=(2,))
    assert accounts(gpu, run)["shared"] == pytest.approx(0.5 + 0.5 * th.SWITCHING_COST)


def test_somebody_else_without_a_share_is_unknown_not_compute() -> None:
    gpu = replace(GPU, busy=1.0)
    found = accounts(gpu, replace(RUN, others=(2,)))
    assert found == {"unknown": pytest.approx(1.0)}


@pytest.mark.parametrize(
    ("reasons", "limit", "reason"),
    [
        ({"sw_power_cap"}, 700.0, "at-default-limit"),
        ({"sw_power_cap"}, 500.0, "limit-below-default"),
        ({"sw_power_cap", "sw_thermal_slowdown"}, 700.0, "thermal"),
        ({"hw_slowdown"}, 700.0, "hardware"),
    ],
)
def test_a_lowered_clock_counts_only_with_its_reason(
    reasons: set[str], limit: float, reason: str
) -> None:
    gpu = replace(
        GPU,
        busy=1.0,
        sm_mhz=1485.0,
        attainable_sm_mhz=1980.0,
        power_limit_w=limit,
        power_default_w=700.0,
        reasons=frozenset(reasons),
    )
    row = GpuRow(gpu, (RUN,), frozenset())
    assert split(row, RUN).busy[("throttle", reason)] == pytest.approx(0.25)
    quiet = replace(gpu, reasons=frozenset())
    assert "throttle" not in accounts(quiet, RUN)


@pytest.mark.parametrize(
    ("unread", "unknown"),
    [
        ({"power_limit_w"}, 0.25),
        ({"power_default_w"}, 0.25),
        ({"power_limit_w", "power_default_w", "attainable_sm_mhz"}, 1.0),
        ({"attainable_sm_mhz"}, 0.0),  # at the default limit it is no fault, however much it is
    ],
)
def test_without_the_cards_limits_nobody_is_said_to_have_lowered_them_or_not(
    unread: set[str], unknown: float
) -> None:
    gpu = replace(
        GPU,
        busy=1.0,
        sm_mhz=1485.0,
        attainable_sm_mhz=1980.0,
        power_limit_w=700.0,
        power_default_w=700.0,
        reasons=frozenset({"sw_power_cap"}),
    )
    found = split(GpuRow(replace(gpu, **dict.fromkeys(unread)), (RUN,), frozenset()), RUN)
    assert found.busy.get(("unknown", "no-limits"), 0.0) == pytest.approx(unknown)
    assert "throttle" not in {account for account, _ in found.busy}


def test_workers_without_a_cpu_explain_a_wait_for_them_once() -> None:
    run = replace(RUN, phases={"data_wait": 0.3, "backward": 0.7}, worker_delay=0.7, cpu=0.3)
    found = accounts(GPU, run)
    assert found["quota"] == pytest.approx(0.3)
    assert "data" not in found
    assert found["unknown"] == pytest.approx(0.3)


def test_workers_on_few_cores_of_which_nothing_is_counted_may_be_starved() -> None:
    few = replace(RUN, workers=4, worker_cores=1, host_cores=32, phases={"data_wait": 0.6})
    assert accounts(GPU, few)["unknown"] == pytest.approx(0.6)
    assert accounts(GPU, replace(few, worker_cpu=0.9))["data"] == pytest.approx(0.6)
    assert accounts(GPU, replace(few, worker_cpu=0.25))["quota"] == pytest.approx(0.6)


def test_a_dead_peer_is_no_work_though_the_gpu_looks_busy() -> None:
    spinning = replace(GPU, busy=1.0, sm_active=0.18, dram=0.0, tensor=0.0)
    assert accounts(spinning, replace(RUN, peer_missing=True)) == {"stalled": pytest.approx(1.0)}
    working = replace(GPU, busy=1.0)
    assert "stalled" not in accounts(working, replace(RUN, peer_missing=True))


def test_a_rank_of_several_without_counters_or_peers_is_not_called_busy() -> None:
    gpu = replace(GPU, busy=0.95, sm_active=None, tensor=None, dram=None, power_w=240.0)
    gpu = replace(gpu, power_limit_w=700.0)
    assert accounts(gpu, replace(RUN, world_size=8))["unknown"] >= 0.9
    drawing = replace(gpu, power_w=690.0)
    assert accounts(drawing, replace(RUN, world_size=8))["compute"] >= 0.9


def test_ranks_alike_may_all_wait_for_a_link_that_was_not_seen() -> None:
    gpu = replace(GPU, busy=1.0, power_w=500.0, power_limit_w=700.0)
    alike = replace(RUN, world_size=2, peers=1, waiting=0.0)
    assert accounts(gpu, replace(alike, waiting_how="lockstep"))["unknown"] == pytest.approx(1.0)
    assert accounts(gpu, replace(alike, waiting_how="peers"))["compute"] == pytest.approx(1.0)


def test_no_utilisation_is_unknown_not_idle() -> None:
    assert accounts(replace(GPU, busy=None), RUN) == {"unknown": 1.0}
