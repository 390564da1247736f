"""The next action fits what was measured, on every recording that rules may be chosen on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.accuracy_jobs import jobs

from gpuwhy.ledger.verdict import verdict
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline

SHARED = Path(__file__).parent.parent / "recordings"
Cause = dict[str, Any]


def recordings() -> list[Path]:
    tuned = [path for path, ranks in jobs() if not any(rank.held_back for rank in ranks)]
    return [*sorted(SHARED.glob("*.gpuwhy.gz")), *tuned]


def causes(path: Path) -> Iterator[tuple[Cause, dict[str, float]]]:
    pipeline = Pipeline()
    pipeline.feed(read(path)[1])
    pipeline.finish()
    for gpu in verdict(pipeline.book.entries(20))["gpus"]:
        for cause in gpu["causes"]:
            yield cause, {item["text"]: item["value"] for item in cause["evidence"]}


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.name.split(".")[0])
def test_advice_and_evidence(path: Path) -> None:
    for cause, seen in causes(path):
        advice = cause["next_action"]
        assert seen, (cause, "no number to check")
        if "add workers" in advice:
            busy, workers = seen["workers at work"], seen["workers in all"]
            assert busy >= 0.8 * workers, "workers that idle are enough"
            assert seen["CPU used by a worker"] >= 0.4, "more would wait for the same storage"
            assert seen.get("workers waited for a CPU", 0.0) < 0.25, "no core to run them on"
        if "hardly use a CPU" in advice:
            assert seen["CPU used by a worker"] < 0.4
        if "num_workers" in advice:
            assert seen["host time making the batch itself"] >= 0.1
        if "quota" in advice:
            throttled = seen.get("CPU periods throttled", 0.0) >= 0.25
            assert throttled or seen["main thread waited for a CPU"] > 0.0
        if "share" in advice and cause["cause"] == "quota":
            assert seen["CPUs allowed to a worker"] < seen["DataLoader workers"]
        if "pin the memory" in advice:
            assert seen["PCIe to the device"] + seen["PCIe from the device"] >= 2e8
        if "gc.freeze" in advice:
            assert seen["host time collecting garbage"] >= 0.1
        if "Kernels are tiny" in advice:
            assert seen["SM active"] < 0.1
        assert "<module>" not in advice, "nobody calls it so"
        if cause["function"]:
            assert cause["function"]["name"]
