"""When an alert counts as come and as resolved, and a trial with the real stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripts.stack import packages

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT / "tests/recordings"

if sys.version_info < (3, 11):
    pytest.skip("Popen's process_group", allow_module_level=True)

from bench import alert_timing  # noqa: E402


def alert(status: str, run: str = "a", severity: str = "warning") -> dict[str, Any]:
    return {"status": status, "labels": {"run": run, "severity": severity}}


def is_ours(labels: Any) -> bool:
    return bool(labels["run"] == "a")


def test_the_first_notification_of_our_run_counts() -> None:
    came = [(1.0, [alert("firing", "b")]), (2.0, [alert("firing")]), (3.0, [alert("firing")])]
    found = alert_timing.first(came, "firing", is_ours)
    assert found
    assert found[0] == 2.0
    assert alert_timing.first(came, "resolved", is_ours) is None


def test_an_alert_that_still_fires_with_less_severity_is_not_resolved() -> None:
    weaker = [alert("resolved"), alert("firing", severity="info")]
    came = [(1.0, weaker), (2.0, [alert("resolved"), alert("firing", "b")])]
    found = alert_timing.first(came, "resolved", is_ours)
    assert found
    assert found[0] == 2.0


def test_what_was_not_reached_has_no_time() -> None:
    spans = alert_timing.spans({"onset": 10.0, "verdict": 14.5, "stopped": 60.0})
    assert spans["verdict_s"] == 4.5
    assert spans["notified_s"] is None
    assert spans["resolved_after_stop_s"] is None


@pytest.mark.full
@pytest.mark.skipif(packages.find("prometheus") is None, reason="Prometheus is not here")
@pytest.mark.skipif(packages.find("alertmanager") is None, reason="Alertmanager is not here")
def test_the_real_stack_on_recordings(tmp_path: Path) -> None:
    played = [str(RECORDINGS / f"{name}.gpuwhy.gz") for name in ("data_slow", "healthy")]
    options = ["--play", *played, "--factor", "30", "--seconds", "110", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.alert_timing", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "exporter")},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "alerts.json").read_text())
    assert found["alert"] == "GPUDataStarved"
    assert "tokenize" in found["notification"]["description"]
    moments = found["moments"]
    assert moments["onset"] <= moments["verdict"] <= moments["firing"] <= moments["notified"]
    assert moments["notified"] <= moments["stopped"] < moments["resolved"]
