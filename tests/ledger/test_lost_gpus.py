"""What is said of single GPUs: the lost ones, and those that give less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gpuwhy.ledger.lost_gpus import told
from gpuwhy.observe.observation import Observation
from gpuwhy.pipeline import Pipeline

T = 1796050000
OFF_THE_BUS = {"why": "the GPU has fallen off the bus", "remedy": "reset it"}
LOST = {"signal": "nvml", **OFF_THE_BUS}


def verdict(**blind: str) -> dict[str, Any]:
    """Of two GPUs; of the second a signal was not seen."""
    missing = [{"signal": s, "why": why, "remedy": "doctor"} for s, why in blind.items()]
    return {"gpus": [{"uuid": "a", "cannot_see": []}, {"uuid": "b", "cannot_see": missing}]}


def blind(found: dict[str, Any]) -> list[list[dict[str, str]]]:
    return [entry["cannot_see"] for entry in found["gpus"]]


def test_nothing_is_added_where_all_is_well() -> None:
    sources = {"nvml": {"up": True}, "nvml a": {"up": True}, "gpm": {"up": False, "why": "old"}}
    assert told(verdict(), sources) == verdict()


def test_a_lost_gpu_is_told_in_its_own_entry() -> None:
    sources = {"nvml": {"up": True}, "nvml b": {"up": False, **OFF_THE_BUS}}
    assert blind(told(verdict(nvml="not read"), sources)) == [[], [LOST]]


@pytest.mark.parametrize(
    ("key", "said", "why"),
    [
        ("nvml c", {"up": False, **OFF_THE_BUS}, "c: the GPU has fallen off the bus"),
        ("nvml", {"up": True, "why": "GPU 1: gone", "remedy": "reset it"}, "GPU 1: gone"),
    ],
)
def test_one_without_an_entry_is_told_in_all(key: str, said: dict[str, Any], why: str) -> None:
    found = told(verdict(gpm="none"), {key: said})
    assert [[one["why"] for one in of] for of in blind(found)] == [[why], [why, "none"]]


def test_a_gpu_that_gives_no_handle_any_more_is_told_once() -> None:
    by_number = {"up": True, **OFF_THE_BUS, "why": f"GPU 1: {OFF_THE_BUS['why']}"}
    found = told(verdict(), {"nvml": by_number, "nvml c": {"up": False, **OFF_THE_BUS}})
    assert [[one["why"] for one in of] for of in blind(found)] == [[by_number["why"]]] * 2


def test_what_is_said_of_one_gpu_counts_before_what_holds_of_any() -> None:
    shared = {"up": False, "why": "shared instance", "remedy": ""}
    found = blind(told(verdict(gpm="Hopper"), {"gpm": {"up": True}, "gpm b": shared}))
    assert found[1] == [{"signal": "gpm", "why": "shared instance", "remedy": "none"}]
    part = {"up": True, "why": "MIG", "missing": ["utilization"]}
    found = blind(told(verdict(nvml="not read"), {"nvml b": part}))
    assert found[1] == [{"signal": "nvml", "why": "not read: MIG", "remedy": "doctor"}]


def test_what_a_gpu_does_not_give_while_it_is_up_is_told_of_it() -> None:
    said = {"up": True, "missing": ["power_w", "memory_used"], "why": "a virtual GPU"}
    (_, found) = blind(told(verdict(gpm="none"), {"nvml b": said}))
    assert [one["signal"] for one in found] == ["gpm", "nvml"]
    assert found[1]["why"] == "power, memory in use not read: a virtual GPU"


def two_gpus(lost_at: int, until: int) -> Iterator[Observation]:
    for second in range(until):
        for uuid in ("a", "b"):
            if uuid == "b" and second >= lost_at:
                state = {"source": "nvml", "uuid": "b", "up": False, **OFF_THE_BUS}
                yield {"t": T + second, "kind": "source", **state}
                continue
            for part in (0.0, 0.5):
                gpu = {"uuid": uuid, "utilization": 0.5, "memory_used": 0}
                yield {"t": T + second + part, "kind": "gpu", **gpu}


def test_a_gpu_that_disappears_while_it_is_watched() -> None:
    pipeline = Pipeline()
    pipeline.feed(two_gpus(lost_at=15, until=20))
    pipeline.finish()
    entries = {entry["uuid"]: entry["cannot_see"] for entry in pipeline.verdicts(20)["gpus"]}
    assert LOST in entries["b"]
    assert LOST not in entries["a"]
    (left,) = pipeline.verdicts(3)["gpus"]
    assert "b: the GPU has fallen off the bus" in [one["why"] for one in left["cannot_see"]]
