"""What the demonstration judges: each fault told, nothing else told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripts.stack import expect
from scripts.stack.expect import Expected
from scripts.stack.receiver import Arrived

RECORDINGS = Path(__file__).parents[1] / "recordings"
FAULTY = Expected(
    "slow", [{"gpu": 0, "cause": "data", "function": "tokenize"}], frozenset({"slow"})
)
HEALTHY = Expected("well", [{"gpu": 0, "cause": "none"}], frozenset({"well"}))
CAPPED = Expected(
    "cap", [{"gpu": 0, "cause": "throttle", "reason": "at-default-limit"}], frozenset({"cap"})
)
SHARED = Expected(
    "two",
    [
        {"gpu": 0, "cause": "shared", "run": "two-1", "says": ["two-2"]},
        {"gpu": 0, "cause": "shared", "run": "two-2", "says": ["two-1"]},
    ],
    frozenset({"two-1", "two-2"}),
)


def alert(run: str, cause: str, text: str, status: str = "firing") -> Arrived:
    labels = {"alertname": "A", "run": run, "cause": cause}
    return Arrived(status, labels, {"description": text})


TOLD = alert("slow", "data", "Function: TextDataset.tokenize (train.py:24)")


def test_all_as_expected() -> None:
    assert expect.wanting([FAULTY, HEALTHY, CAPPED], [TOLD]) == []


@pytest.mark.parametrize(
    "arrived",
    [
        [],
        [alert("slow", "host", "tokenize")],  # another cause
        [alert("slow", "data", "in <module>")],  # another function
        [alert("well", "data", "tokenize")],  # another run
        [alert("slow", "data", "tokenize", "resolved")],
    ],
)
def test_a_fault_that_is_not_told(arrived: list[Arrived]) -> None:
    complaints = expect.wanting([FAULTY, HEALTHY], arrived)
    assert "slow: no notification of data naming tokenize" in complaints


@pytest.mark.parametrize("run", ["well", "cap", "", "unknown"])
def test_what_should_not_arrive(run: str) -> None:
    complaints = expect.wanting([FAULTY, HEALTHY, CAPPED], [TOLD, alert(run, "host", "x")])
    assert len(complaints) == 1
    assert "should not have arrived" in complaints[0]


def test_each_of_two_runs_names_the_other() -> None:
    both = [alert("two-1", "shared", "run two-2"), alert("two-2", "shared", "run two-1")]
    assert expect.wanting([SHARED], both) == []
    assert len(expect.wanting([SHARED], both[:1])) == 1


def verdict(run: str, cause: str, function: str = "") -> dict[str, Any]:
    first = [{"cause": cause, "function": {"name": function}}] if cause != "none" else []
    return {"run": run, "cause": cause, "causes": first}


def test_verdicts() -> None:
    good = [verdict("slow", "data", "TextDataset.tokenize"), verdict("well", "none")]
    assert expect.misjudged([FAULTY, HEALTHY], {"gpus": good}) == []
    bad = [verdict("slow", "data", "burn"), verdict("well", "host", "x")]
    assert len(expect.misjudged([FAULTY, HEALTHY], {"gpus": bad})) == 2
    assert expect.misjudged([FAULTY], {"gpus": []}) == ["slow: 0 verdicts instead of 1"]


def test_every_recording_has_its_expectation() -> None:
    names = {path.name.removesuffix(expect.SUFFIX) for path in RECORDINGS.glob(f"*{expect.SUFFIX}")}
    files = {
        path.name.removesuffix(".expected.json") for path in RECORDINGS.glob("*.expected.json")
    }
    assert names == files
    for name in names:
        one = expect.load(RECORDINGS / f"{name}{expect.SUFFIX}")
        assert one.runs
        for gpu in one.faults:
            assert gpu.get("function") or gpu.get("says"), f"{name}: nothing to look for"


def test_a_recording_without_an_expectation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / f"x{expect.SUFFIX}"
    path.write_bytes((RECORDINGS / f"healthy{expect.SUFFIX}").read_bytes())
    with pytest.raises(expect.ExpectationError, match=r"x\.expected\.json"):
        expect.load(path)
    path.with_name("x.expected.json").write_text(json.dumps({"gpu": []}))
    with pytest.raises(expect.ExpectationError):
        expect.load(path)
