"""The eleven recorded H200 jobs: right as a whole, over windows, and with sources taken away."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from gpuwhy.ledger.entry import Entry
from gpuwhy.ledger.verdict import verdict
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline

FOLDER = Path(__file__).parent.parent / "recordings"
NAMES = sorted(p.name.removesuffix(".expected.json") for p in FOLDER.glob("*.expected.json"))
KINDS = {
    "gpm": {"gpm"},
    "stacks": {"stack", "locals"},
    "cgroup": {"cgroup"},
    "gpu_processes": {"gpu_processes", "sm_share"},
}


def expected(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.expected.json").read_text())["gpus"]
    return found


@lru_cache(maxsize=64)
def entries(name: str, without: str | None = None) -> tuple[Entry, ...]:
    _, observations = read(FOLDER / f"{name}.gpuwhy.gz")
    pipeline = Pipeline()
    pipeline.feed(_without(observations, without))
    pipeline.finish()
    return tuple(pipeline.book.entries())


def _without(observations: Iterable[Observation], source: str | None) -> Iterable[Observation]:
    dropped = KINDS.get(source or "", set())
    return (o for o in observations if o["kind"] not in dropped)


def held(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [g for g in found["gpus"] if g["run"] is not None]


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_recording(name: str) -> None:
    found = held(verdict(entries(name)))
    assert [g["cause"] for g in found] == [e["cause"] for e in expected(name)]
    for gpu, wanted in zip(found, expected(name), strict=True):
        assert sum(gpu["accounts"].values()) == pytest.approx(1.0, abs=0.002)
        assert gpu["accounts"].get("unknown", 0.0) <= 0.05
        if wanted["cause"] == "none":
            assert gpu["causes"] == []
            continue
        first = gpu["causes"][0]
        assert first["evidence"]
        assert first["next_action"]
        if "function" in wanted:
            assert wanted["function"] in first["function"]["name"]
        if "reason" in wanted:
            assert first["reason"] == wanted["reason"]
        if "lost_ratio" in wanted:
            assert first["lost_ratio"] == pytest.approx(wanted["lost_ratio"], abs=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_windows_of_five_seconds(name: str) -> None:
    whole = entries(name)
    wanted = [e["cause"] for e in expected(name)]
    windows = [whole[i : i + 5] for i in range(len(whole) - 4)]
    right = sum([g["cause"] for g in held(verdict(w))] == wanted for w in windows)
    assert right >= 0.9 * len(windows)


@pytest.mark.parametrize("source", sorted(KINDS))
def test_with_a_source_missing_it_is_right_or_says_so(source: str) -> None:
    right = 0
    for name in NAMES:
        found = held(verdict(entries(name, source)))
        good = True
        for gpu, wanted in zip(found, expected(name), strict=True):
            if gpu["cause"] != wanted["cause"]:
                good = False
                assert gpu["cause"] == "unknown", name
                assert source in [b["signal"] for b in gpu["cannot_see"]], name
        right += good
    assert right >= len(NAMES) / 2 or source == "stacks"


def test_the_run_is_as_its_straggler() -> None:
    (run,) = verdict(entries("ddp_straggler"))["runs"]
    assert run["cause"] == "host"
    assert "rank 1" in run["summary"]
    assert "slow" in run["summary"]


def test_the_shape_is_the_documented_one() -> None:
    found = verdict(entries("data_slow"))
    assert found["schema"] == 1
    assert set(found) == {"schema", "window", "gpus", "runs"}
    gpu = found["gpus"][0]
    assert {"gpu", "uuid", "mig", "run", "rank", "cause", "causes", "accounts"} <= set(gpu)
    assert "cannot_see" in gpu
    cause = gpu["causes"][0]
    for item in cause["evidence"]:
        assert set(item) == {"text", "value", "unit", "source"}
    assert set(cause["function"]) == {"name", "file", "line"}
    json.dumps(found)
