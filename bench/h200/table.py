"""One row for each variant of a slot: what the truth says, and what gpuwhy answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench import truth

COLUMNS = (
    "slot",
    "variant",
    "rank",
    "fault",
    "steps/s",
    "ms",
    "lost",
    "busy",
    "kB",
    "verdict",
    "note",
)


def rows(result: dict[str, Any], folder: Path) -> list[list[str]]:
    """Rows of a slot from its result and the truth files beside it."""
    table: list[list[str]] = []
    for place in result["places"]:
        path = folder / f"{place['variant']}.truth.jsonl"
        try:
            ranks = truth.load(path)
        except (OSError, ValueError) as error:
            ranks = {}
            place.setdefault("error", str(error))
        for number, rank in ranks.items() or {0: None}.items():
            table.append(_row(result, place, number, rank))
    return table


def _row(
    result: dict[str, Any], place: dict[str, Any], number: int, rank: truth.Rank | None
) -> list[str]:
    note = place.get("error") or result.get("error") or ""
    cells = [str(result["slot"]), place["variant"], str(number), "", "", "", "", "", "", "", note]
    if rank is None:
        return cells
    cells[3] = "+".join(rank.causes) or "none"
    t0, t1 = result.get("t0"), result.get("t1")
    if not t0 or not t1:
        return cells
    rate = truth.progress(rank, t0, t1) / (t1 - t0)
    share = truth.lost(rank, t0, t1)
    busy = truth.busy(rank, t0, t1)
    pace = rank.header.get("step_s")
    cells[4] = f"{rate:.2f}"
    cells[5] = f"{1e3 / rate:.1f}/{1e3 * pace:.1f}" if rate and pace else ""
    cells[6] = "" if share is None else f"{share:.2f}"
    cells[7] = " ".join(f"{k}={v:.2f}" for k, v in busy.items() if v > 0.005) if busy else ""
    cells[8] = str(result.get("recording_bytes", 0) // 1000)
    own = entries_of(result.get("verdict"), gpu_of(place, number), rank.header["pid"])
    cells[9] = verdict_of(own, truth.expected(rank, t0, t1))
    return cells


def gpu_of(place: dict[str, Any], rank: int) -> int:
    """The index of a rank's GPU."""
    gpus = place["gpus"]
    return int(gpus[rank] if rank < len(gpus) else gpus[0])


def entries_of(answer: Any, gpu: int, pid: int | None) -> list[dict[str, Any]]:
    """The entries of ``diagnose --json`` for a rank: by its pid, else by its GPU."""
    found = answer.get("gpus", []) if isinstance(answer, dict) else []
    own = [entry for entry in found if pid is not None and entry.get("pid") == pid]
    return own or [entry for entry in found if entry.get("gpu") == gpu]


def verdict_of(entries: list[dict[str, Any]], due: truth.Expected | None = None) -> str:
    """The causes named with their shares, after ``ok`` or ``NO`` where the truth decides."""
    told = []
    for entry in entries:
        causes = [f"{c['cause']} {c.get('lost_ratio') or 0:.2f}" for c in entry.get("causes", [])]
        told.append("+".join(causes) or str(entry.get("cause")))
    if not entries or due is None:
        return " | ".join(told)
    named = {
        str(cause["cause"])
        for cause in entries[0].get("causes", [])
        if cause.get("reason") != "at-default-limit" or cause["cause"] in due.must
    }
    return ("ok " if due.holds(named) else "NO ") + " | ".join(told)


def text(table: list[list[str]]) -> str:
    """The rows in columns."""
    lines = [list(COLUMNS), *table]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def answer_of(output: str) -> Any:
    """The JSON object in a command's output, or the end of what it said instead."""
    try:
        return json.loads(output)
    except ValueError:
        return output[-2000:]
