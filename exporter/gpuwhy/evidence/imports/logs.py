"""Several logs of one job on one axis, through the same pipeline as a live host.

Logs do not say which process holds a GPU. Where the memory of one is used, one rank on it is
assumed, and said to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpuwhy.evidence.imports import dmon, dstat_csv, nvidia_smi_csv, pyspy_raw
from gpuwhy.evidence.imports.text_table import LogError
from gpuwhy.evidence.replay import replay
from gpuwhy.evidence.traces.opened import pieces
from gpuwhy.evidence.traces.trace import TraceError
from gpuwhy.observe.observation import Observation

MOST_CHARACTERS = 256 << 20
USED_BYTES = 600 << 20
"""More memory in use than the driver's own and a desktop's: somebody's job."""
RUN = "imported"
FIRST_PID = 1000
AGE_S = 600.0
"""The job is taken to be past its start: a log cannot say."""

ASSUMED = {
    "signal": "processes",
    "why": "logs do not say which process holds a GPU: one rank on each used GPU was assumed",
    "remedy": "gpuwhy diagnose on the host sees them",
}
NO_ZONE = {
    "signal": "time zone",
    "why": "these logs write local time without its zone: taken as the offset given, UTC if none",
    "remedy": "--utc-offset +02:00",
}
NO_TIMES = {
    "signal": "stack times",
    "why": "py-spy's raw form tells no times: its stacks were spread over the whole window",
    "remedy": "gpuwhy record keeps both on one axis",
}


def kind_of(head: bytes) -> str | None:
    """Which log a file's first bytes are of; None for none of them."""
    text = head.decode("utf-8", "replace").lstrip("\ufeff")
    kinds = (("nvidia-smi", nvidia_smi_csv), ("dmon", dmon), ("dstat", dstat_csv),
             ("py-spy", pyspy_raw))  # fmt: skip
    return next((kind for kind, module in kinds if module.is_it(text)), None)


def diagnose(files: Sequence[tuple[Path, str]], zone_s: float = 0.0) -> dict[str, Any]:
    """The object of ``gpuwhy diagnose --json`` over logs, each a path and its kind.

    Raises LogError (or TraceError for a file that cannot be read).
    """
    timed: list[Observation] = []
    stacks: list[list[pyspy_raw.Stack]] = []
    for path, kind in files:
        if kind == "py-spy":
            stacks.append(pyspy_raw.parse(_text(path), path.name))
        else:
            timed += _timed(path, kind, zone_s)
    gpus = _used_gpus(timed)
    if not any(seen["kind"] == "gpu" for seen in timed):
        raise LogError(
            "none of these logs is of a GPU: give one of nvidia-smi --query-gpu or dmon as well"
        )
    ranks = {uuid: FIRST_PID + place for place, uuid in enumerate(gpus)}
    seconds = sorted({float(int(seen["t"])) for seen in timed if seen["kind"] == "gpu"})
    timed += _processes(ranks, stacks, seconds)
    for pid, own in zip(ranks.values(), stacks, strict=False):
        timed += pyspy_raw.observations(own, pid, seconds)
    verdict = replay(sorted(timed, key=lambda seen: float(seen["t"]))).verdicts()
    if verdict["window"]["start"] is None:
        raise LogError(
            "these logs hold a single moment, and time is told between two: log for some seconds "
            "(nvidia-smi --query-gpu=... --format=csv -l 1, or dmon -o DT)"
        )
    for entry in verdict["gpus"]:
        notes = [NO_ZONE, *([ASSUMED] if entry["run"] else []), *([NO_TIMES] if stacks else [])]
        entry["cannot_see"] = [*entry["cannot_see"], *notes]
    return verdict


def _timed(path: Path, kind: str, zone_s: float) -> list[Observation]:
    text, ends = _text(path), path.stat().st_mtime
    if kind == "nvidia-smi":
        return nvidia_smi_csv.parse(text, path.name, zone_s)
    if kind == "dmon":
        return dmon.parse(text, path.name, zone_s, ends)
    return dstat_csv.parse(text, path.name, zone_s, dstat_csv.year_of(ends))


def _text(path: Path) -> str:
    made, size = [], 0
    for piece in pieces(path):
        size += len(piece)
        if size > MOST_CHARACTERS:
            raise TraceError(f"{path} is larger than {MOST_CHARACTERS >> 20} MB: cut out a part")
        made.append(piece)
    return "".join(made)


def _used_gpus(timed: Sequence[Observation]) -> list[str]:
    """GPUs whose memory is in use, or of which the log does not tell it."""
    used: dict[str, float] = {}
    for seen in timed:
        if seen["kind"] == "gpu":
            amount = float(seen.get("memory_used", float("inf")))
            used[seen["uuid"]] = max(used.get(seen["uuid"], 0.0), amount)
    return [uuid for uuid, most in used.items() if most > USED_BYTES]


def _processes(
    ranks: dict[str, int], stacks: Sequence[Sequence[pyspy_raw.Stack]], seconds: Sequence[float]
) -> list[Observation]:
    several = len(ranks) > 1
    table: list[dict[str, Any]] = []
    for place, (uuid, pid) in enumerate(ranks.items()):
        one = {"pid": pid, "ppid": 1, "role": "rank", "run": RUN, "name": "python", "gpus": [uuid]}
        one |= {"rank": place, "world_size": len(ranks)} if several else {}
        table.append({**one, "start": seconds[0] - AGE_S})
        own = stacks[place] if place < len(stacks) else ()
        for worker in dict.fromkeys(s.process for s in own if s.worker and s.process):
            table.append({"pid": worker, "ppid": pid, "role": "worker", "run": RUN,
                          "name": "python", "start": seconds[0] - AGE_S})  # fmt: skip
    return [{"t": t, "kind": "processes", "processes": table} for t in seconds]
