"""Both views of the book are identities, whatever happened."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ledger_strategies import rows

from gpuwhy.ledger.book import Book
from gpuwhy.pipeline import Pipeline
from gpuwhy.signals.row import GpuRow, GpuSignals, RunSignals, Second


def seconds(found: list[GpuRow]) -> list[Second]:
    return [Second(1000 + i, (row,), {}) for i, row in enumerate(found)]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # large rows, busy hosts
@given(st.lists(rows(), min_size=1, max_size=8))
def test_device_view_adds_up_to_observed_time(found: list[GpuRow]) -> None:
    book = Book()
    for second in seconds(found):
        book.enter(second)
    totals: dict[str, float] = defaultdict(float)
    for (uuid, *_), value in book.device.items():
        assert value >= 0
        totals[uuid] += value
    assert totals == pytest.approx(dict(book.observed))
    assert not any(account == "shared" for _, _, account, _ in book.device)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # large rows, busy hosts
@given(st.lists(rows(), min_size=1, max_size=8))
def test_run_view_adds_up_to_held_time(found: list[GpuRow]) -> None:
    book = Book()
    for second in seconds(found):
        book.enter(second)
    totals: dict[object, float] = defaultdict(float)
    for (uuid, run, rank, _, _), value in book.run.items():
        totals[(uuid, run, rank)] += value
    assert totals == pytest.approx(dict(book.held))


def test_idle_time_of_a_shared_gpu_is_split_equally() -> None:
    gpu = GpuSignals(uuid="g", gpu=0, busy=0.5)
    a = RunSignals(run="a", rank=None, pid=1, own_sm=0.3, other_sm=0.2, others=(2,))
    b = RunSignals(run="b", rank=None, pid=2, own_sm=0.2, other_sm=0.3, others=(1,))
    book = Book()
    book.enter(Second(0, (GpuRow(gpu, (a, b), frozenset()),), {}))
    idle = {run: v for (_, run, account, _), v in book.device.items() if account == "unknown"}
    assert idle == {"a": pytest.approx(0.25), "b": pytest.approx(0.25)}


def test_a_gpu_without_a_run_is_free_and_a_gap_is_nothing() -> None:
    book = Book()
    book.enter(Second(0, (GpuRow(GpuSignals(uuid="g", busy=0.0), (), frozenset()),), {}))
    book.enter(Second(1, (), {}))
    assert book.observed == {"g": 1.0}
    assert book.device[("g", None, "free", "")] == 1.0


def test_a_run_that_ended_is_forgotten_and_the_identity_holds() -> None:
    book = Book()
    gpu = GpuSignals(uuid="g", gpu=0, busy=0.5)
    for t in range(2000):
        run = RunSignals(run=f"job-{t // 10}", rank=None, pid=t // 10)
        book.enter(Second(t, (GpuRow(gpu, (run,), frozenset()),), {}))
    assert len({key[1] for key in book.run}) < 20
    assert sum(book.device.values()) + book.retired["g"] == pytest.approx(book.observed["g"])
    assert book.observed["g"] == 2000.0
    for holder, held in book.held.items():
        total = sum(v for key, v in book.run.items() if key[:3] == holder)
        assert total == pytest.approx(held)


def test_only_the_last_seconds_are_kept_but_counters_go_on() -> None:
    book = Book(keep_s=5)
    row = GpuRow(GpuSignals(uuid="g", busy=0.0), (), frozenset())
    for t in range(20):
        book.enter(Second(t, (row,), {}))
    assert len(book.recent) == 5
    assert book.observed["g"] == 20.0
    assert [e.second.t for e in book.entries(3)] == [17, 18, 19]


def test_a_gpu_that_is_divided_is_not_accounted_for_beside_its_instances() -> None:
    """Else a fleet's sum would hold each such card once more, as time that nobody can explain."""
    infos = [{"uuid": "card", "gpu": 0}] + [
        {"uuid": f"MIG-{i}", "gpu": 0, "mig": f"{i}/0", "parent_uuid": "card"} for i in (1, 2)
    ]
    pipeline = Pipeline()
    for half in range(40):
        t = 1796050000.0 + half / 2
        pipeline.feed({"t": t, "kind": "gpu_info", **info} for info in infos)
        for info in infos:
            busy = {"dt": 0.5, "graphics": 0.25} if "mig" in info else None
            if busy is not None:
                pipeline.feed([{"t": t, "kind": "gpm", "uuid": info["uuid"], **busy}])
            pipeline.feed([{"t": t, "kind": "gpu", "uuid": info["uuid"], "power_w": 100.0}])
    pipeline.finish()
    assert set(pipeline.book.observed) == {"MIG-1", "MIG-2"}
    assert {uuid for uuid, *_ in pipeline.book.device} == {"MIG-1", "MIG-2"}
    assert {entry["uuid"] for entry in pipeline.verdicts()["gpus"]} == {"MIG-1", "MIG-2"}
    assert pipeline.latest is not None
    card = next(r.gpu for r in pipeline.latest.rows if r.gpu is not None and r.gpu.uuid == "card")
    assert (card.divided, card.power_w) == (True, 100.0), "what it draws is still told"
