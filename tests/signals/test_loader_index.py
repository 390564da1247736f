"""A loop without a counter: the batch that it has, from the numbers of its workers' batches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench.accuracy_jobs import RECORDINGS

from bench import truth
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline
from gpuwhy.signals.loader_index import NAME, loader_index
from gpuwhy.signals.row import InputQueue
from gpuwhy.signals.tracks import Samples


def numbers(*points: tuple[float, int]) -> Samples:
    samples = Samples()
    for t, idx in points:
        samples.add({"t": t, "values": [["_worker_loop", "worker.py", "idx", idx]]})
    return samples


def test_the_newest_number_less_what_is_in_flight() -> None:
    workers = [numbers((100.0, 40), (110.0, 60)), numbers((109.0, 57))]
    found = loader_index(workers, 110, InputQueue(4, 1.0, 3.0, ready=7.0, capacity=8))
    assert (found.step, found.name, found.t) == (52, NAME, 110.0)
    assert found.per_second == pytest.approx(2.0)


def test_a_new_epoch_begins_anew_and_a_late_worker_is_none() -> None:
    queue = InputQueue(4, 4.0, 0.0, ready=0.0, capacity=8)
    late = [numbers((100.0, 500), (104.0, 504)), numbers((105.0, 501))]
    assert loader_index(late, 105, queue).step == 500
    anew = [numbers((100.0, 500)), numbers((104.0, 2), (106.0, 6))]
    found = loader_index(anew, 106, queue)
    assert (found.step, found.per_second) == (2, pytest.approx(2.0))


def test_absent_without_numbers_lately_or_a_queue() -> None:
    queue = InputQueue(4, 0.0, 4.0, ready=8.0, capacity=8)
    assert loader_index([], 110, queue).step is None
    assert loader_index([numbers((95.0, 40))], 110, queue).step is None
    assert loader_index([numbers((110.0, 40))], 110, None).step is None


def without_counters(name: str) -> Iterator[Observation]:
    """The recording as if its loop had no integer local."""
    for o in read(RECORDINGS / f"{name}.gpuwhy.gz")[1]:
        if o["kind"] != "locals" or any(value[2] == "idx" for value in o["values"]):
            yield o


@pytest.mark.parametrize(
    ("name", "variant", "within"),
    [("c01-c03", "c01", 1), ("c01-c03", "c03", 3), ("c24", "c24", 2), ("c45-c46", "c46", 3)],
)
def test_recorded_loops_without_their_counter(name: str, variant: str, within: int) -> None:
    rank = truth.load(RECORDINGS / f"{variant}.truth.jsonl.gz")[0]
    pipeline = Pipeline()
    pipeline.feed(without_counters(name))
    pipeline.finish()
    errors, rates = [], []
    for i, entry in enumerate(pipeline.book.entries()[10:]):
        for run in (r for row in entry.second.rows for r in row.runs):
            if run.pid != rank.header["pid"] or run.step is None or run.step_t is None:
                continue
            assert run.step_name == NAME
            real = truth.step_at(rank, run.step_t)
            if real is not None:
                errors.append(abs(run.step - real))
            steps = truth.progress(rank, entry.second.t - 29, entry.second.t + 1) / 30.0
            if run.steps_per_second is not None and i >= 20:  # half a minute in
                rates.append(abs(run.steps_per_second / steps - 1))
    assert len(errors) >= 15
    assert sum(e <= within for e in errors) >= 0.85 * len(errors)
    assert sorted(rates)[len(rates) // 2] < 0.05
