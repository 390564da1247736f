"""What single families say, where it is more than a field of a row."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from tests.expose.samples import PROCESS, RUN, UUID, VERDICTS, T, rank, replay, second, view

from gpuwhy.expose import exposition
from gpuwhy.expose.families import cgroup, health, ledger, source, training, verdict
from gpuwhy.expose.metric import Metric
from gpuwhy.expose.view import Seen, View
from gpuwhy.ledger.accounts import ACCOUNTS
from gpuwhy.observe.observation import SOURCES


def found(of: View, metric: Metric) -> dict[tuple[str, ...], float]:
    return exposition.collect(of).samples.get(metric, {})


def label(metric: Metric, values: tuple[str, ...], name: str) -> str:
    return values[metric.labels.index(name)]


def test_every_account_of_a_run_starts_at_zero() -> None:
    for metric, free in ((ledger.GPU_TIME, {"free"}), (ledger.RUN_TIME, set())):
        samples = found(view(), metric)
        accounts = {label(metric, labels, "account") for labels in samples}
        assert accounts == (set(ACCOUNTS) - {"free"}) | free
        zero = {label(metric, labels, "account") for labels, v in samples.items() if v == 0}
        assert "stalled" in zero


@pytest.mark.parametrize("name", ["shared_victim", "ddp_straggler", "power_cap"])
def test_the_accounts_add_up_in_both_views(name: str) -> None:
    shown = replay(name).view()
    for metric, total in (
        (ledger.GPU_TIME, ledger.GPU_OBSERVED),
        (ledger.RUN_TIME, ledger.RUN_HELD),
    ):
        sums: dict[tuple[str, ...], float] = defaultdict(float)
        for labels, value in found(shown, metric).items():
            sums[tuple(label(metric, labels, name) for name in total.labels)] += value
        assert sums == pytest.approx(dict(found(shown, total)))
        assert len(sums) >= 1


def test_a_source_says_whether_it_is_up() -> None:
    samples = found(view(), source.UP)
    assert set(samples) == {(name,) for name in SOURCES}
    assert samples[("stacks",)] == 1
    down = {"t": T, "kind": "source", "source": "stacks", "up": False}
    shown = view(facts={"source": {"stacks/None/None": down}})
    assert found(shown, source.UP)[("stacks",)] == 0, "its own word counts, not its last data"


def test_of_a_source_in_parts_one_that_is_up_is_enough() -> None:
    parts = {
        str(n): {"t": T, "source": "gpm", "up": n == 1, "uuid": str(n), "lost_s": 0.5, "lag_s": n}
        for n in range(3)
    }
    shown = view(facts={"source": parts})
    assert found(shown, source.UP)[("gpm",)] == 1
    lost = next(metric for metric, field in source.SUMS if field == "lost_s")
    assert found(shown, lost)[("gpm",)] == 1.5
    lag = next(metric for metric, field in source.LATEST if field == "lag_s")
    assert found(shown, lag)[("gpm",)] == 2
    assert found(shown, source.PARTS_DOWN)[("gpm",)] == 2
    dead = {key: {**part, "up": False} for key, part in parts.items()}
    assert found(view(facts={"source": dead}), source.UP)[("gpm",)] == 0


def test_what_one_gpu_does_not_give_is_counted() -> None:
    def shown(*missing: str) -> View:
        whole = {"t": T, "source": "nvml", "up": True}
        part = {**whole, "uuid": "GPU-1", **({"missing": list(missing)} if missing else {})}
        return view(facts={"source": {"nvml": whole, "nvml/GPU-1": part}})

    assert found(shown("power_w", "reasons"), source.MISSING)[("nvml",)] == 2
    assert found(shown(), source.MISSING)[("nvml",)] == 0


def test_the_budget_in_force_is_told_beside_what_was_used() -> None:
    report = {"t": T, "source": "stacks", "up": True, "cpu_s": 1.25, "share": 0.01}
    shown = view(facts={"source": {"stacks/None/None": report}})
    limit = next(metric for metric, field in source.LATEST if field == "share")
    used = next(metric for metric, field in source.SUMS if field == "cpu_s")
    assert found(shown, limit)[("stacks",)] == 0.01
    assert found(shown, used)[("stacks",)] == 1.25
    assert ("host",) not in found(shown, limit), "a source without a budget"


def test_without_any_report_a_source_is_up_if_it_served_the_last_second() -> None:
    served = view(facts={}, second=second(sources={"gpm"}))
    assert found(served, source.UP)[("gpm",)] == 1
    assert found(served, source.UP)[("stacks",)] == 0
    assert found(view(facts={}, second=None), source.UP)[("gpm",)] == 0


def test_a_verdict_has_a_series_for_every_answer() -> None:
    samples = found(view(), verdict.ACTIVE)
    active = {labels[-1]: value for labels, value in samples.items()}
    assert set(active) == set(verdict.ANSWERS)
    assert [cause for cause, value in active.items() if value] == ["data"]
    assert list(found(view(), verdict.CODE).values()) == [verdict.ANSWERS.index("data")]


def test_codes_of_verdicts_stay_as_dashboards_know_them() -> None:
    assert (
        *("none", "data", "launch", "host", "comm", "shared"),
        *("copy", "throttle", "quota", "stalled", "unknown"),
    ) == verdict.ANSWERS


@pytest.mark.parametrize("answer", ["none", "unknown"])
def test_an_answer_that_is_no_cause_is_exposed_as_such(answer: str) -> None:
    entry = {**VERDICTS["gpus"][0], "cause": answer, "causes": []}
    shown = view(verdicts={**VERDICTS, "gpus": [entry]})
    active = {labels[-1] for labels, value in found(shown, verdict.ACTIVE).items() if value}
    assert active == {answer}
    assert not found(shown, verdict.LOST)


def test_a_process_on_two_gpus_is_told_for_each() -> None:
    from gpuwhy.expose.families import process

    both = {**PROCESS, "gpus": [UUID, "GPU-2"]}
    worker = {**PROCESS, "pid": 101, "role": "worker"}
    facts = {"processes": {"": {"t": T, "processes": [both, worker]}}}
    gpus = {UUID: Seen(T, "0", ""), "GPU-2": Seen(T, "1", "")}
    samples = found(view(facts=facts, gpus=gpus), process.INFO)
    assert {(labels[0], labels[1]) for labels in samples} == {(UUID, "0"), ("GPU-2", "1")}
    assert {label(process.INFO, labels, "pid") for labels in samples} == {"100"}


def test_kills_for_want_of_memory_are_told_of_the_rank_in_the_group() -> None:
    samples = found(view(), cgroup.OOM_KILLS)
    assert samples == {(UUID, "0", "", RUN, "0"): 1}
    pressure = {labels[-2:]: value for labels, value in found(view(), cgroup.PRESSURE).items()}
    assert pressure == {("memory", "some"): 2.5, ("memory", "full"): 0.5}
    elsewhere = {**PROCESS, "cgroup": "/another"}
    facts = {**view().facts, "processes": {"": {"t": T, "processes": [elsewhere]}}}
    assert not found(view(facts=facts), cgroup.OOM_KILLS)


def test_the_xid_of_a_gpu_that_is_gone_stays_under_its_number() -> None:
    """It fell off the bus: no second has it, and the Xid is what says so."""
    shown = view(gpus={}, known={UUID: Seen(T - 90, "3", "")}, second=second(rows=[]))
    assert list(found(shown, health.XID_LAST)) == [(UUID, "3", "", "79")]


def test_mig_instances_are_kept_apart() -> None:
    shown = view(gpus={UUID: Seen(T, "0", "7/0")})
    assert list(found(shown, ledger.GPU_OBSERVED)) == [(UUID, "0", "7/0")]


def test_a_view_of_nothing_exposes_sources_and_the_exporter() -> None:
    body, _, collected = exposition.render(replace(View(now=0.0)), "")
    assert not collected.failures
    assert b"gpuwhy_source_up" in body and b"gpuwhy_recorded 0.0" in body
    assert b"gpuwhy_last_second" not in body
    assert RUN.encode() not in body


def test_progress_is_a_step_or_a_change_of_stack() -> None:
    def age(steps: list[int | None], stuck: float | None) -> float | None:
        seconds = [rank(step=step, stuck_s=stuck) for step in steps]
        return training.progress_age(seconds)

    assert age([1, 1, 1, 2, 2, 2], 30.0) == 2.0, "a starved loop sits in one line and goes on"
    assert age([1, 1, 1, 1], 30.0) == 30.0
    assert age([1, 2], 0.3) == 0.0
    assert age([None, 1, None, 2], 7.0) == 7.0, "a gap is no step"
    assert age([None], None) is None
    assert age([1, 1], None) is None, "how long is not known"
