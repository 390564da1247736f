"""The state: what stays, what goes, and when; a failure of one part leaves the rest."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.expose.samples import RUN, UUID, Clock, T, gpu, rank, replay, second

from gpuwhy.expose import exposition
from gpuwhy.expose.facts import MOST, Facts, fresh
from gpuwhy.expose.limits import LINGER_S, RUNS_PER_GPU, STALE_S
from gpuwhy.expose.state import State
from gpuwhy.ledger.entry import Entry
from gpuwhy.pipeline import Pipeline
from gpuwhy.signals.row import GpuRow, Second


class Fed(State):
    """A state that is given seconds instead of observations."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.given: list[Second] = []
        pipeline = self.pipeline

        class Given(Pipeline):
            def feed(_, observations: Any) -> list[Second]:  # noqa: N805
                seconds, self.given = self.given, []
                return pipeline._enter(seconds)

        self.pipeline = Given()
        self.pipeline.book = pipeline.book

    def give(self, *seconds: Second) -> None:
        self.given = list(seconds)
        self.feed([])


def names(state: State) -> set[str]:
    body, _, _ = exposition.render(state.view(), "")
    lines = body.decode().splitlines()
    return {line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")}


def test_rows_disappear_when_they_are_stale_and_counters_stay_a_while() -> None:
    clock = Clock(T + 3.0)
    state = Fed(clock)
    state.give(second())
    assert {"gpuwhy_gpu_busy_ratio", "gpuwhy_run_gpu_held_seconds_total"} <= names(state)
    clock.now = T + 1 + STALE_S + 0.1
    assert "gpuwhy_gpu_busy_ratio" not in names(state), "missing is not the last value"
    assert "gpuwhy_verdict_active" not in names(state)
    assert "gpuwhy_run_gpu_held_seconds_total" in names(state)
    clock.now = T + 1 + LINGER_S + 0.1
    assert "gpuwhy_run_gpu_held_seconds_total" not in names(state)
    assert "gpuwhy_source_up" in names(state)
    assert state.view().gpu(UUID)[1] == "0", "its number is known for what is told of it later"


def test_a_run_that_ended_keeps_its_counters_while_the_gpu_goes_on() -> None:
    clock = Clock()
    state = Fed(clock)
    empty = [GpuRow(gpu(busy=0.0), (), frozenset())]
    state.give(second(T), *(second(t, empty) for t in range(T + 1, T + 30)))
    clock.now = T + 31.0
    seen = names(state)
    assert "gpuwhy_training_step" not in seen
    assert "gpuwhy_run_gpu_time_seconds_total" in seen
    state.give(*(second(t, empty) for t in range(T + 30, T + 70)))
    clock.now = T + 71.0
    assert "gpuwhy_run_gpu_time_seconds_total" not in names(state)
    assert "gpuwhy_gpu_time_seconds_total" in names(state)


def test_runs_under_ever_new_names_are_bounded_and_counted() -> None:
    state = Fed(Clock(T + 51.0))
    for n in range(50):
        state.give(second(T + n, [GpuRow(gpu(), (rank(run=f"job-{n}"),), frozenset())]))
    shown = state.view()
    assert {run for _, run, _ in shown.seen} == {f"job-{n}" for n in range(50 - RUNS_PER_GPU, 50)}
    assert shown.left_out == 50 - RUNS_PER_GPU


def test_what_is_kept_does_not_grow_with_the_lives_of_jobs() -> None:
    clock = Clock()
    state = Fed(clock)
    for n in range(400):
        clock.now = T + 61.0 * n
        row = GpuRow(gpu(uuid=f"GPU-{n}"), (rank(run=f"job-{n}"),), frozenset())
        state.give(second(int(clock.now), [row]))
    assert len(state._seen) == len(state._gpus) == 1
    assert len(state._recent) <= 60


def test_a_verdict_that_fails_leaves_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    state = Fed(Clock(T + 2.0))

    def fails(window_s: float | None = None) -> dict[str, Any]:
        raise ZeroDivisionError

    monkeypatch.setattr(state.pipeline, "verdicts", fails)
    state.give(second())
    assert state.view().verdicts is None
    assert state.view().about.failures == {"verdict": 1}
    assert "gpuwhy_gpu_busy_ratio" in names(state)


def test_a_recording_gives_the_verdict_it_should() -> None:
    state = replay("data_slow")
    entries = state.verdicts(None)["gpus"]
    assert [entry["cause"] for entry in entries] == ["data"]
    assert entries[0]["causes"][0]["function"]["name"].endswith("tokenize")


def test_source_reports_are_shown_before_the_first_second() -> None:
    state = State(clock=Clock(T + 1.0))
    state.feed([{"t": T, "kind": "source", "source": "nvml", "up": False, "why": "no driver"}])
    assert state.view().last_t is None
    assert state.view().facts["source"]["nvml/None/None"]["why"] == "no driver"


def test_facts_are_replaced_whole_and_forgotten_in_time() -> None:
    facts = Facts()
    facts.add([{"t": 100.0, "kind": "gpu_limits", "uuid": "a", "power_max_w": 1, "nvlinks": 2}])
    facts.add([{"t": 110.0, "kind": "gpu_limits", "uuid": "a", "power_max_w": 3}])
    facts.add([{"t": 110.0, "kind": "stack", "pid": 1}, {"t": 110.0}, {"t": 1.0, "kind": 7}])
    held = facts.copy()["gpu_limits"]["a"]
    assert held == {"t": 110.0, "kind": "gpu_limits", "uuid": "a", "power_max_w": 3}
    assert fresh(facts.copy(), 150.0)["gpu_limits"]
    assert not fresh(facts.copy(), 171.0)["gpu_limits"]


def test_facts_are_bounded() -> None:
    facts = Facts()
    facts.add({"t": 1.0, "kind": "xid", "uuid": "a", "xid": n} for n in range(MOST + 10))
    assert len(facts.copy()["xid"]) == MOST


def test_the_labels_of_a_run_hold() -> None:
    state = Fed(Clock(T + 2.0))
    state.give(second())
    assert state.view().run((UUID, RUN, 0)) == (UUID, "0", "", RUN, "0")


def test_a_verdict_that_takes_long_holds_up_neither_feeding_nor_scrapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = Fed(Clock(T + 3.0))
    state.give(second())
    begun, go_on = threading.Event(), threading.Event()

    def slow(entries: list[Entry]) -> dict[str, Any]:
        begun.set()
        assert go_on.wait(20), "nobody waited for it"
        return {"entries": len(entries)}

    monkeypatch.setattr("gpuwhy.expose.state.verdict", slow)
    answers: list[dict[str, Any]] = []
    asking = [
        threading.Thread(target=lambda: answers.append(state.verdicts(900.0))) for _ in range(3)
    ]
    for one in asking:
        one.start()
    assert begun.wait(20)
    state.give(second(T + 1))
    assert state.view().last_t == T + 1
    assert names(state)
    assert [entry.second.t for entry in state.entries()] == [T, T + 1]
    go_on.set()
    for one in asking:
        one.join()
    assert sorted(answer["entries"] for answer in answers)[0] == 1, "what there was when it asked"


def test_verdicts_are_drawn_once_for_all_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    state = Fed(Clock(T + 3.0))
    state.give(second())
    drawn: list[int] = []
    monkeypatch.setattr(
        "gpuwhy.expose.state.verdict", lambda entries: {"n": drawn.append(len(entries))}
    )
    for _ in range(3):
        state.verdicts(300.0)
        state.verdicts(None)
    assert drawn == [1, 1]
    state.give(second(T + 1))
    state.verdicts(300.0)
    assert drawn == [1, 1, 2]


def test_word_of_a_source_draws_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    state = Fed(Clock(T + 3.0))
    state.give(second())
    before = state.view().verdicts
    monkeypatch.setattr(state.pipeline, "verdicts", lambda window: pytest.fail("drawn again"))
    state.feed([{"t": T + 2.0, "kind": "source", "source": "host", "up": False, "why": "gone"}])
    assert state.view().facts["source"]
    assert state.view().verdicts == before
