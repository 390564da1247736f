"""The exposition: isolated, bounded, complete, and without what is not known."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.expose.samples import RUN, UUID, T, gpu, rank, second, view

from gpuwhy.expose import exposition
from gpuwhy.expose.catalogue import FAMILIES
from gpuwhy.expose.families import gpu as gpu_family
from gpuwhy.expose.families import python as python_family
from gpuwhy.expose.limits import FUNCTIONS_PER_RANK, LABEL_LENGTH
from gpuwhy.expose.metric import Metric, Samples
from gpuwhy.expose.view import View
from gpuwhy.signals.row import GpuRow, GpuSignals

Found = dict[tuple[str, frozenset[tuple[str, str]]], float]


def rendered(of: View, accept: str = "") -> Found:
    body, _, _ = exposition.render(of, accept)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def values(found: Found, name: str) -> list[float]:
    return [value for (of, _), value in found.items() if of == name]


def family(collect: Any) -> ModuleType:
    made = ModuleType("family")
    made.collect = collect  # type: ignore[attr-defined]
    return made


def test_a_family_that_fails_is_left_out_whole_and_counted() -> None:
    broken = Metric("gpuwhy_broken", "gauge", (), 1, "host", "Broken.")

    def collect(_: View) -> Samples:
        yield broken, (), 1.0
        raise RuntimeError("a driver call went wrong")

    families = {"broken": family(collect), **FAMILIES}
    found = exposition.collect(view(), families=families)
    assert found.failures == {"broken": 1}
    assert broken not in found.samples, "half a family would look like a whole one"
    assert any(metric.name == "gpuwhy_gpu_busy_ratio" for metric in found.samples)


def test_failures_show_in_the_same_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: View) -> Samples:
        raise KeyError("gone")

    monkeypatch.setattr(gpu_family, "collect", fails)
    found = rendered(view())
    series = ("gpuwhy_scrape_family_failures_total", frozenset({("family", "gpu")}))
    assert found[series] == 1
    assert not values(found, "gpuwhy_gpu_busy_ratio")
    assert values(found, "gpuwhy_run_gpu_held_seconds_total") == [10.0]


def test_past_the_deadline_families_are_left_out_and_counted() -> None:
    ticks = iter(range(1000))
    found = exposition.collect(view(), deadline=5.0, clock=lambda: float(next(ticks)))
    assert found.samples and found.failures
    assert set(found.failures) | set(found.durations) == set(FAMILIES) - {"exporter"}


def test_what_is_not_known_has_no_sample() -> None:
    bare = GpuRow(GpuSignals(UUID, 0), (), frozenset())
    found = rendered(view(second=second(rows=[bare]), facts={}, verdicts=None))
    names = {name for name, _ in found}
    assert "gpuwhy_gpu_runs" in names
    assert not {n for n in names if n.startswith(("gpuwhy_training_", "gpuwhy_host_"))}
    assert not {n for n in names if n.startswith("gpuwhy_gpu_") and n.endswith("_ratio")}
    assert not any(math.isnan(value) for value in found.values())


def test_nan_and_infinity_of_a_driver_are_not_exposed() -> None:
    row = GpuRow(gpu(dram=math.nan, power_w=math.inf), (rank(),), frozenset())
    found = rendered(view(second=second(rows=[row])))
    assert not values(found, "gpuwhy_gpu_dram_active_ratio")
    assert not values(found, "gpuwhy_gpu_power_watts")
    assert values(found, "gpuwhy_gpu_tensor_active_ratio") == [0.35]


@pytest.mark.parametrize(
    "hostile",
    ['a"b', "a\\b", "a\nb", "a\0b", "\udcff\udcfe", "<script>", "x" * 70_000, "", "日本語"],
)
@pytest.mark.parametrize("accept", ["", "application/openmetrics-text"])
def test_hostile_names_come_through_as_valid_labels(hostile: str, accept: str) -> None:
    evil = rank(run=hostile, functions={"user": ((hostile, hostile, 1), 0.5)})
    row = GpuRow(gpu(), (evil,), frozenset())
    shown = view(
        second=second(rows=[row]),
        recent=(second(rows=[row]),),
        seen={(UUID, hostile, 0): T + 1.0},
    )
    body, _, found = exposition.render(shown, accept)
    assert not found.failures
    text = body.decode("utf-8")
    lines = [li for li in text.splitlines() if li.startswith("gpuwhy_python_function_ratio{")]
    functions = [line for line in lines if 'role="rank"' in line]
    assert len(functions) == 1
    assert len(functions[0]) < 4 * LABEL_LENGTH * 4


def test_printable_names_are_kept_as_they_are() -> None:
    assert exposition.label_value("Größe <lambda> 日本語") == "Größe <lambda> 日本語"
    assert exposition.label_value("a\nb") == "a\ufffdb"
    assert len(exposition.label_value("x" * 1000)) == LABEL_LENGTH


def test_no_metric_exceeds_its_bound_and_the_rest_is_counted() -> None:
    reasons = {f"reason-{n}": 1.0 for n in range(50)}
    facts = view().facts
    shown = view(facts={**facts, "gpu_reasons": {UUID: {"t": T, "uuid": UUID, "seconds": reasons}}})
    found = rendered(shown)
    assert len(values(found, "gpuwhy_gpu_event_reason_seconds_total")) == 10
    assert found[("gpuwhy_series_dropped_total", frozenset({("family", "health")}))] == 40


def test_functions_are_bounded_and_the_rest_is_counted() -> None:
    many = {f"phase{n}": ((f"f{n}", "/job/train.py", n), 0.04) for n in range(25)}
    row = GpuRow(gpu(), (rank(functions=many, worker_function=None),), frozenset())
    found = rendered(view(second=second(rows=[row]), recent=(second(rows=[row]),)))
    assert len(values(found, "gpuwhy_python_function_ratio")) == FUNCTIONS_PER_RANK
    assert values(found, "gpuwhy_python_functions_left_out") == [15]
    assert values(found, "gpuwhy_python_functions_left_out_ratio") == [pytest.approx(0.6)]
    assert python_family.FUNCTION.bound == FUNCTIONS_PER_RANK


def test_the_number_of_series_is_that_of_the_samples() -> None:
    found = rendered(view())
    assert values(found, "gpuwhy_series") == [len(found)]


def test_shares_of_functions_and_phases_are_means_over_their_seconds() -> None:
    half = [
        second(T - 1, [GpuRow(gpu(), (rank(phases={"sync": 1.0}, functions={}),), frozenset())]),
        second(T, [GpuRow(gpu(), (rank(phases={"forward": 1.0}),), frozenset())]),
    ]
    found = rendered(view(second=half[1], recent=tuple(half)))
    phases = {
        dict(labels)["phase"]: value
        for (name, labels), value in found.items()
        if name == "gpuwhy_training_phase_ratio"
    }
    assert phases == {"sync": 0.5, "forward": 0.5}
    functions = {
        dict(labels)["role"]: value
        for (name, labels), value in found.items()
        if name == "gpuwhy_python_function_ratio"
    }
    assert functions == {"rank": pytest.approx(0.3), "worker": pytest.approx(0.9)}


def test_a_rank_without_a_gpu_in_sight_is_exposed_with_empty_gpu_labels() -> None:
    row = GpuRow(None, (rank(),), frozenset({"stacks"}))
    found = rendered(view(second=second(rows=[row]), seen={(None, RUN, 0): T + 1.0}, gpus={}))
    step = [labels for (name, labels) in found if name == "gpuwhy_training_step"]
    assert len(step) == 1
    assert ("uuid", "") in step[0] and ("run", RUN) in step[0]
    assert not values(found, "gpuwhy_run_gpu_time_seconds_total"), "it has no accounts"
