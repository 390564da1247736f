"""The history: run and device view, means over what is looked at, gaps that stay gaps."""

from __future__ import annotations

import pytest
from tests.expose.hosts import END, host
from tests.expose.samples import RUN, UUID, T, gpu, rank, replay, second

from gpuwhy.expose.history import Scope, history
from gpuwhy.ledger.book import Book
from gpuwhy.signals.row import GpuRow, Second


def book(*seconds: Second) -> Book:
    found = Book()
    for one in seconds:
        found.enter(one)
    return found


def test_every_signal_of_a_second() -> None:
    found = history(book(second()).entries(), Scope())
    assert (found["start"], found["seconds"]) == (T, 1)
    signals = {name: values[0] for name, values in found["signals"].items()}
    one = gpu()
    assert one.sm_mhz and one.attainable_sm_mhz and one.mem_mhz and one.max_mem_mhz
    assert signals["busy"] == 0.9 and signals["sm_active"] == 0.8
    assert signals["sm_clock"] == pytest.approx(one.sm_mhz / one.attainable_sm_mhz, abs=1e-4)
    assert signals["memory_clock"] == pytest.approx(one.mem_mhz / one.max_mem_mhz, abs=1e-4)
    assert signals["pcie_rx"] == 2_000_000
    assert found["phases"] == {"forward": [0.4], "data_wait": [0.6]}
    assert found["progress"]["ready"] == [0.2] and found["progress"]["capacity"] == [8]


@pytest.mark.parametrize("scope", [Scope(), Scope(run=RUN), Scope(run=RUN, rank=0, gpu=UUID)])
def test_the_accounts_of_each_second_add_up_to_it(scope: Scope) -> None:
    found = history(book(*(second(T + n) for n in range(5))).entries(), scope)
    sums = [sum(values) for values in zip(*found["accounts"].values(), strict=True)]
    assert sums == pytest.approx([1.0] * 5, abs=1e-3)


def test_run_view_has_what_others_took_and_device_view_has_it_as_work() -> None:
    entries = list(replay("shared_victim").entries())
    run = next(run for row in entries[-1].second.rows for run in row.runs)
    assert "shared" in history(entries, Scope(run=run.run))["accounts"]
    assert "shared" not in history(entries, Scope())["accounts"]


def test_a_second_that_was_not_observed_is_null_everywhere() -> None:
    found = history(book(second(T), second(T + 2)).entries(), Scope())
    assert found["seconds"] == 3
    columns = [values for group in ("accounts", "signals") for values in found[group].values()]
    assert all(values[1] is None and values[0] is not None for values in columns)


def test_unknown_is_null_and_never_zero_while_an_account_may_be_zero() -> None:
    blind = GpuRow(gpu(temperature_c=None, busy=0.0), (), frozenset())
    busy = GpuRow(gpu(busy=1.0), (), frozenset())
    found = history(book(second(T, [busy]), second(T + 1, [blind])).entries(), Scope())
    assert found["signals"]["temperature_c"][1] is None
    assert found["accounts"]["free"] == [0.0, 1.0] and found["accounts"]["compute"] == [1.0, 0.0]
    assert "phases" not in found["phases"] and found["progress"] == {}


def test_means_over_gpus_leave_out_those_that_are_not_known() -> None:
    rows = [
        GpuRow(gpu(uuid="a", power_w=100.0), (), frozenset()),
        GpuRow(gpu(uuid="b", power_w=300.0), (), frozenset()),
        GpuRow(gpu(uuid="c", power_w=None), (), frozenset()),
    ]
    entries = book(second(T, rows)).entries()
    assert history(entries, Scope())["signals"]["power_w"] == [200]
    assert history(entries, Scope(gpu="b"))["signals"]["power_w"] == [300]


def test_a_rank_is_looked_at_alone() -> None:
    rows = [GpuRow(gpu(), (rank(rank=0), rank(rank=1, pid=2, phases={"gc": 1.0})), frozenset())]
    entries = book(second(T, rows)).entries()
    assert history(entries, Scope(run=RUN, rank=1))["phases"] == {"gc": [1.0]}
    assert history(entries, Scope(run=RUN))["phases"]["gc"] == [0.5]


def test_what_is_not_there_has_seconds_without_values_and_nothing_has_none() -> None:
    found = history(book(second()).entries(), Scope(run="gone"))
    assert found["seconds"] == 1 and not found["accounts"] and not found["signals"]
    assert history([], Scope()) == {
        "start": None,
        "seconds": 0,
        **{group: {} for group in ("accounts", "signals", "phases", "progress")},
    }


def test_fifteen_minutes_are_kept_and_only_what_is_new_is_given() -> None:
    state = host(["data_slow"])
    assert history(state.entries(), Scope())["seconds"] == 900
    assert history(state.entries(END - 2), Scope())["start"] == END - 2
