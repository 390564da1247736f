"""The list of variants, the lots and the held-back part agree with the jobs that are there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpuwhy.ledger.accounts import CAUSES

ROOT = Path(__file__).resolve().parents[2]
VARIANTS: dict[str, dict[str, Any]] = json.loads(
    (ROOT / "bench" / "jobs" / "variants.json").read_text()
)
OWN = {name: entry for name, entry in VARIANTS.items() if name.startswith("c")}
HELD = [
    line.split()
    for line in (ROOT / "bench" / "heldout.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def faults(entry: dict[str, Any]) -> list[str]:
    fault = entry["fault"]
    if isinstance(fault, dict):
        return list(fault.values())
    return fault if isinstance(fault, list) else [fault]


def held(entry: dict[str, Any]) -> bool:
    return any(entry[kind] == name for kind, name in HELD)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_complete(name: str, jobs: Path) -> None:
    entry = VARIANTS[name]
    source = (jobs / entry["job"]).read_text()
    assert set(faults(entry)) <= {*CAUSES, "none"}
    assert (entry["strength"] is None) == (faults(entry) == ["none"])
    assert entry["strength"] in (None, "mild", "medium", "severe")
    if "baseline" in entry:
        baseline = VARIANTS[entry["baseline"]]
        assert faults(baseline) == ["none"]
        assert baseline["job"] == entry["job"]
    texts = source + "".join(path.read_text() for path in jobs.glob("*.py"))
    for function in entry.get("functions", []):
        assert f"def {function.split('.')[-1]}(" in texts
    for setting in entry["settings"]:
        assert f'"{setting}"' in texts, f"{setting} is read by no job"


def test_nothing_a_job_shows_to_the_outside_gives_the_answer_away(jobs: Path) -> None:
    words = [*CAUSES, "fault", "plant", "severe", "mild", "straggler", "slow"]
    for common in ("data", "copy", "host"):  # as likely in a healthy job
        words.remove(common)
    for path in jobs.glob("*.py"):
        shown = [path.stem, *re.findall(r"(?:def|class) (\w+)", path.read_text())]
        shown = [name for name in shown if (path.name, name) != ("options.py", "fault")]
        assert not [name for name in shown for word in words if word in name.lower()]
    assert all(re.fullmatch(r"[cn]\d\d", name) for name in VARIANTS)


def test_every_cause_framework_and_strength_is_there() -> None:
    planted = [fault for entry in OWN.values() for fault in faults(entry)]
    assert set(CAUSES) <= set(planted)
    assert planted.count("none") >= 12
    frameworks = {entry["framework"] for entry in OWN.values()}
    assert frameworks == {"pytorch", "hf_trainer", "accelerate", "lightning", "jax"}
    assert {entry["gpus"] for entry in OWN.values()} == {1, 2}
    assert {entry["strength"] for entry in OWN.values()} >= {"mild", "medium", "severe"}


def test_about_half_is_held_back_and_holds_most_causes() -> None:
    for kind, name in HELD:
        assert any(entry[kind] == name for entry in OWN.values()), f"{kind} {name} is nowhere"
    kept = [entry for entry in OWN.values() if held(entry)]
    assert 0.4 <= len(kept) / len(OWN) <= 0.6
    planted = {fault for entry in kept for fault in faults(entry)}
    assert {"data", "host", "copy", "launch", "comm", "shared", "quota", "none"} <= planted


def test_the_lots_for_two_gpus_hold_every_variant_once() -> None:
    lots = json.loads((ROOT / "bench" / "h200" / "lots.json").read_text())
    listed = sorted(name for lot, names in lots.items() if lot.startswith("pair") for name in names)
    assert listed == sorted(OWN)
    for lot, names in lots.items():
        assert all(VARIANTS[name]["gpus"] == 1 for name in names) or lot.startswith("pair")
