"""What could not be seen: the source's own words, those about the very process first."""

from __future__ import annotations

from gpuwhy.pipeline import Pipeline

RANK = {"pid": 7, "ppid": 1, "role": "rank", "run": "r", "rank": 0, "start": 0.0, "state": "S"}


def verdict_with(*extra: dict[str, object]) -> dict[str, object]:
    pipeline = Pipeline()
    for t in range(1000, 1020):
        pipeline.feed([{"kind": "processes", "t": float(t), "processes": [RANK]}])
        pipeline.feed([{"t": float(t), **observation} for observation in extra])
    pipeline.finish()
    (gpu,) = pipeline.verdicts()["gpus"]
    return {b["signal"]: (b["why"], b["remedy"]) for b in gpu["cannot_see"]} | {
        "cause": gpu["cause"]
    }


def test_a_refusal_of_this_process_is_told_in_its_own_words() -> None:
    said = {"kind": "source", "source": "stacks", "pid": 7, "up": False}
    found = verdict_with({**said, "why": "ptrace is forbidden by Yama", "remedy": "sysctl"})
    assert found["stacks"] == ("ptrace is forbidden by Yama", "sysctl")
    assert found["cause"] == "unknown"


def test_a_refusal_of_another_source_or_process_is_not_taken_for_it() -> None:
    other = {"kind": "source", "up": False, "why": "other", "remedy": "other"}
    found = verdict_with(
        {**other, "source": "stacks", "pid": 8}, {**other, "source": "processes", "pid": 7}
    )
    assert "other" not in found["stacks"]


def test_without_a_driver_it_says_so() -> None:
    said = {"kind": "source", "source": "nvml", "up": False, "why": "no driver", "remedy": "get it"}
    assert verdict_with(said)["nvml"] == ("no driver", "get it")


def test_a_gpu_held_by_a_process_out_of_sight_is_not_called_free() -> None:
    pipeline = Pipeline()
    for t in range(1000, 1020):
        pipeline.feed(
            [
                {"kind": "processes", "t": float(t), "processes": []},
                {"kind": "gpu", "t": t + 0.1, "uuid": "g", "utilization": 0.9},
                {"kind": "gpu_processes", "t": t + 0.1, "uuid": "g", "processes": [{"pid": 4711}]},
            ]
        )
    pipeline.finish()
    (gpu,) = pipeline.verdicts()["gpus"]
    assert (gpu["run"], gpu["cause"]) == (None, "unknown")
    (blind,) = gpu["cannot_see"]
    assert blind["signal"] == "processes"
    assert "4711" in blind["why"]
