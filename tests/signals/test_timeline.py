"""A clock that steps: the seconds between are neither made up nor waited for."""

from __future__ import annotations

from gpuwhy.pipeline import Pipeline


def observed(pipeline: Pipeline, start: int, seconds: int) -> list[int]:
    out = []
    for t in range(start, start + seconds):
        seen = {"t": float(t), "kind": "gpu", "uuid": "G", "utilization": 0.5}
        out += [second.t for second in pipeline.feed([seen])]
    return out


def test_a_clock_set_back_begins_anew() -> None:
    pipeline = Pipeline()
    pipeline.feed([{"t": 10_000.0, "kind": "gpu_info", "uuid": "G", "gpu": 3}])
    assert observed(pipeline, 10_000, 20)[-1] == 10_015
    again = observed(pipeline, 6_400, 20)
    assert again == list(range(6_400, 6_416))
    assert pipeline.latest is not None
    assert pipeline.latest.rows[0].gpu is not None
    assert pipeline.latest.rows[0].gpu.gpu == 3, "what a GPU is called does not depend on time"
    assert pipeline.book.observed["G"] == 32, "each second once, none of the hour"
    assert {entry.second.t for entry in pipeline.book.entries()} == set(again)


def test_a_clock_set_forward_leaves_a_gap() -> None:
    pipeline = Pipeline()
    observed(pipeline, 10_000, 20)
    assert observed(pipeline, 20_000, 20)[-1] == 20_015
    assert pipeline.book.observed["G"] < 40


def test_what_comes_a_little_late_is_no_clock_set_back() -> None:
    pipeline = Pipeline()
    observed(pipeline, 10_000, 20)
    assert observed(pipeline, 9_995, 3) == []
    assert observed(pipeline, 10_020, 2) == [10_016, 10_017]
