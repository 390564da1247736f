"""What is compared: a trace or a recording as units of time with their accounts."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpuwhy.evidence.bootstrap import Values
from gpuwhy.evidence.replay import replay
from gpuwhy.evidence.traces.analysis import analyse
from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.read import read_trace
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import Header, RecordingError, read
from gpuwhy.signals.row import Second

RECORDING = (".gpuwhy.gz", ".gpuwhy.gz.partial")
SECONDS_ALIKE = 5
"""Seconds of a recording that are taken together: a loader's burst or a step may last as long."""
PROFILERS = ("nsys", "ncu", "nsight")


@dataclass(slots=True)
class Sample:
    """One of the two. ``weights`` are seconds, ``accounts`` the seconds of each unit in them."""

    name: str
    form: str  # "trace" or "recording"
    weights: Values
    accounts: dict[str, Values]
    block: int = 1  # units that are alike
    step_seconds: Values = field(default_factory=lambda: np.empty(0))
    steps: Values = field(default_factory=lambda: np.empty(0))
    power: Values | None = None  # W by unit, NaN where not known
    causes: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)  # what may differ between the two
    runs: int = 1  # jobs in it, taken together


def load(path: Path) -> Sample:
    """A trace (one file, or a folder of the ranks' files) or a recording.

    Raises TraceError or RecordingError for a file that is neither.
    """
    if path.name.endswith(RECORDING):
        return of_recording(path)
    return of_traces(path)


# -- traces ----------------------------------------------------------------------------------------


def of_traces(path: Path) -> Sample:
    """Units are steps; without steps, slices of the window."""
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    analysis = analyse([trace for file in files for trace in read_trace(file)])
    units = [unit for gpu in analysis.gpus for unit in _units(gpu)]
    accounts = {name for _, shares in units for name in shares}
    stepped = [gpu for gpu in analysis.gpus if gpu.steps is not None]
    durations = [gpu.steps.durations / 1e9 for gpu in stepped if gpu.steps is not None]
    seconds = np.concatenate(durations) if durations else np.empty(0)
    return Sample(
        name=path.name,
        form="trace",
        weights=np.array([weight for weight, _ in units]),
        accounts={a: np.array([shares.get(a, 0.0) for _, shares in units]) for a in accounts},
        step_seconds=seconds,
        steps=np.ones(len(seconds)),
        causes=max((entry["causes"] for entry in analysis.ranks), key=_largest),
        facts=_facts_of_traces(analysis.gpus),
    )


def _units(gpu: Gpu) -> list[tuple[float, dict[str, float]]]:
    """(seconds, account -> seconds) of each step, or of the whole window."""
    bounds = [gpu.window.start, gpu.window.end]
    if gpu.steps is not None:
        bounds = gpu.steps.bounds.tolist()
    made = []
    for start, end in itertools.pairwise(bounds):
        shares: dict[str, float] = defaultdict(float)
        for (account, _), ns in gpu.shares_of(start, end).items():
            shares[account] += ns / 1e9
        made.append(((end - start) / 1e9, dict(shares)))
    return made


def _largest(causes: Sequence[dict[str, Any]]) -> float:
    return float(causes[0]["lost_ratio"]) if causes else 0.0


def _facts_of_traces(gpus: Sequence[Gpu]) -> dict[str, str]:
    trace = gpus[0].trace
    facts = {f"profiler: {key}": str(value) for key, value in trace.about.items()}
    facts["profiler"] = trace.form
    facts["profiler: stacks"] = "yes" if trace.stacks or _has_python(gpus[0]) else "no"
    cards = sorted({gpu.trace.devices.get(gpu.device, "") for gpu in gpus} - {""})
    if cards:
        facts["hardware"] = ", ".join(cards)
    facts["GPUs"] = str(len(gpus))
    return facts


def _has_python(gpu: Gpu) -> bool:
    from gpuwhy.evidence.traces.trace import PYTHON

    return bool((gpu.trace.spans.kind == PYTHON).any())


# -- recordings ------------------------------------------------------------------------------------


def of_recording(path: Path) -> Sample:
    """Units are seconds, of every run on every GPU."""
    header, observations = read(path)
    facts = _facts_of_header(header)
    pipeline = replay(_noting(observations, facts))
    entries = [entry for entry in pipeline.book.recent if entry.shares]
    if not entries:
        raise RecordingError(f"{path} holds no run on a GPU: nothing to compare")
    units: list[dict[str, float]] = []
    power: list[float] = []
    for entry in entries:
        watts = {row.gpu.uuid: row.gpu.power_w for row in entry.second.rows if row.gpu is not None}
        for (uuid, _, _), split in entry.shares.items():
            units.append({})
            for (account, _), share in split.shares.items():
                units[-1][account] = units[-1].get(account, 0.0) + share
            seen = watts.get(uuid) if uuid is not None else None
            power.append(float("nan") if seen is None else seen)
    accounts = {name for unit in units for name in unit}
    seconds, steps = _progress(entry.second for entry in entries)
    known = not np.isnan(power).all()
    verdicts = pipeline.verdicts()["gpus"]
    return Sample(
        name=path.name,
        form="recording",
        weights=np.ones(len(units)),
        accounts={a: np.array([unit.get(a, 0.0) for unit in units]) for a in accounts},
        block=SECONDS_ALIKE * max(1, round(len(units) / len(entries))),
        step_seconds=seconds,
        steps=steps,
        power=np.array(power) if known else None,
        causes=max((entry["causes"] for entry in verdicts), key=_largest, default=[]),
        facts=facts,
        runs=len({run for entry in entries for _, (run, _), _ in entry.shares}),
    )


def _progress(seconds: Iterable[Second]) -> tuple[Values, Values]:
    """(seconds, steps) from one sight of a step counter to the next, of each rank."""
    seen: dict[tuple[str, int | None, int], list[tuple[float, int]]] = defaultdict(list)
    for second in seconds:
        for row in second.rows:
            for run in row.runs:
                if run.step is None or run.step_t is None:
                    continue
                marks = seen[run.run, run.rank, run.pid]
                if not marks or run.step_t > marks[-1][0]:
                    marks.append((run.step_t, run.step))
    pairs = [
        (later[0] - earlier[0], later[1] - earlier[1])
        for marks in seen.values()
        for earlier, later in itertools.pairwise(marks)
    ]
    kept = [(t, n) for t, n in pairs if n > 0]  # a counter that begins anew tells nothing
    return np.array([t for t, _ in kept]), np.array([float(n) for _, n in kept])


def _facts_of_header(header: Header) -> dict[str, str]:
    gpus = header["hardware"].get("gpus", [])
    cards = sorted({str(gpu.get("name", "")) for gpu in gpus if isinstance(gpu, dict)})
    facts = {"hardware": ", ".join(cards), "GPUs": str(len(gpus))}
    facts |= {f"host: {k}": str(v) for k, v in header["host"].items() if k not in _EVER_DIFFERENT}
    facts |= {f"version: {key}": str(value) for key, value in header["software"].items()}
    return facts | {f"limit: {key}": str(value) for key, value in header["limits"].items()}


_EVER_DIFFERENT = ("boot", "boot_time", "uptime")
_GPU_LIMITS = ("power_limit_w", "application_sm_mhz", "locked_sm_mhz")


def _noting(observations: Iterable[Observation], facts: dict[str, str]) -> Iterable[Observation]:
    """Passes observations on, noting what may differ: command lines, limits, a profiler."""
    for seen in observations:
        if seen["kind"] == "processes":
            for process in seen["processes"]:
                _note_process(process, facts)
        elif seen["kind"] == "gpu_limits":
            for key in _GPU_LIMITS:
                if key in seen:
                    facts[f"limit: {key}"] = str(seen[key])
        elif seen["kind"] == "cgroup" and (seen.get("unlimited") or "quota_cores" in seen):
            quota = "none" if seen.get("unlimited") else f"{seen['quota_cores']:g} cores"
            facts["limit: cpu_quota"] = quota
        yield seen


def _note_process(process: dict[str, Any], facts: dict[str, str]) -> None:
    command, name = str(process.get("command", "")), str(process.get("name", ""))
    if any(word in f"{name} {command[:60]}".lower() for word in PROFILERS):
        facts["profiler"] = name
    if process.get("role") != "rank":
        return
    if command:
        facts["command line"] = command
    for key, words in (("python", "version: python"), ("world_size", "ranks"),
                       ("affinity", "limit: CPUs allowed")):  # fmt: skip
        if key in process:
            facts[words] = str(process[key])
