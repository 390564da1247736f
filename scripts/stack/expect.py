"""What a recording is expected to be: its ``NAME.expected.json``, against what was delivered.

For each GPU of the recording: the ``cause`` of the verdict, the ``function`` in it, and ``says``,
what else a notification must name (a limit, another process, a rank). A healthy GPU, and one whose
cause is only information, must bring no notification.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.stack.receiver import Arrived

from gpuwhy.observe import recording

SUFFIX = recording.SUFFIX
INFORMATION = ("throttle", "at-default-limit")


class ExpectationError(Exception):
    """A recording cannot be judged; the message says why."""


@dataclass(frozen=True)
class Expected:
    """What one recording must bring, and the runs that it holds."""

    name: str
    gpus: Sequence[Mapping[str, Any]]
    runs: frozenset[str]

    @property
    def faults(self) -> list[Mapping[str, Any]]:
        """The GPUs that must bring a notification."""
        return [gpu for gpu in self.gpus if not _quiet(gpu)]


def _quiet(gpu: Mapping[str, Any]) -> bool:
    return gpu["cause"] == "none" or (gpu["cause"], gpu.get("reason")) == INFORMATION


def load(path: Path) -> Expected:
    """What is expected of the recording at ``path``. Raises ExpectationError."""
    name = path.name.removesuffix(SUFFIX)
    file = path.with_name(f"{name}.expected.json")
    try:
        gpus = json.loads(file.read_text())["gpus"]
        runs = _runs(path)
    except (OSError, ValueError, KeyError, recording.RecordingError) as error:
        raise ExpectationError(f"{file}: {error}") from error
    return Expected(name, gpus, runs)


def _runs(path: Path) -> frozenset[str]:
    _, observations = recording.read(path)
    return frozenset(
        str(process["run"])
        for observation in observations
        if observation["kind"] == "processes"
        for process in observation["processes"]
        if process.get("run")
    )


def wanting(expected: Sequence[Expected], arrived: Sequence[Arrived]) -> list[str]:
    """What is missing, and what should not have arrived; empty where all is as expected."""
    firing = [alert for alert in arrived if alert.status == "firing"]
    complaints: list[str] = []
    for one in expected:
        own = [alert for alert in firing if alert.labels.get("run") in one.runs]
        complaints += [_missing(one, gpu) for gpu in one.faults if not _told(gpu, own)]
        if not one.faults:
            complaints += [f"{one.name}: {_named(alert)} should not have arrived" for alert in own]
    known = frozenset().union(*(one.runs for one in expected)) if expected else frozenset()
    strays = [alert for alert in firing if alert.labels.get("run") not in known]
    return complaints + [f"{_named(alert)} should not have arrived" for alert in strays]


def _told(gpu: Mapping[str, Any], alerts: Sequence[Arrived]) -> bool:
    wanted = [*([gpu["function"]] if "function" in gpu else []), *gpu.get("says", [])]
    return any(
        alert.labels.get("cause") == gpu["cause"]
        and gpu.get("run") in (None, alert.labels.get("run"))
        and all(text in alert.text for text in wanted)
        for alert in alerts
    )


def _missing(one: Expected, gpu: Mapping[str, Any]) -> str:
    wanted = [*([gpu["function"]] if "function" in gpu else []), *gpu.get("says", [])]
    naming = f" naming {' and '.join(wanted)}" if wanted else ""
    return f"{one.name}: no notification of {gpu['cause']}{naming}"


def _named(alert: Arrived) -> str:
    where = alert.labels.get("run") or alert.labels.get("uuid") or alert.labels.get("instance", "")
    return f"{alert.labels.get('alertname')} ({where})"


def misjudged(expected: Sequence[Expected], verdicts: Mapping[str, Any]) -> list[str]:
    """GPUs whose verdict, as the exporter has it, is another than expected."""
    complaints = []
    for one in expected:
        found = [entry for entry in verdicts.get("gpus", []) if entry.get("run") in one.runs]
        wanted = [(gpu["cause"], gpu.get("function", "")) for gpu in one.gpus]
        if len(found) != len(wanted):
            complaints.append(f"{one.name}: {len(found)} verdicts instead of {len(wanted)}")
        for entry, (cause, function) in zip(found, wanted, strict=False):
            first = entry["causes"][0] if entry["causes"] else {}
            named = (first.get("function") or {}).get("name", "")
            if entry["cause"] != cause or function not in named:
                complaints.append(f"{one.name}: verdict {entry['cause']} {named} is not {cause}")
    return complaints
