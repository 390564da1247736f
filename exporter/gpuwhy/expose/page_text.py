"""What the parts of the page share: names, figures and small drawings, safe to put into HTML."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from html import escape
from typing import Any

from gpuwhy.evidence.terminal import printable, ranges
from gpuwhy.evidence.words import INFORMATION

Entry = Mapping[str, Any]
"""One (GPU, run, rank) of the object of ``gpuwhy diagnose --json``."""


def text(value: object) -> str:
    """A foreign text: control characters shown as escapes, cut when endless, markup made plain."""
    return escape(printable(value))


def code(value: object) -> str:
    """The same, set as code."""
    return f"<code>{text(value)}</code>"


def percent(share: float) -> str:
    """A share as whole per cent."""
    return f"{share * 100:.0f} %"


def clock_time(t: float) -> str:
    """A time element in UTC."""
    moment = datetime.fromtimestamp(t, timezone.utc)
    return f'<time datetime="{moment:%Y-%m-%dT%H:%M:%SZ}">{moment:%Y-%m-%d %H:%M:%S} UTC</time>'


def window_seconds(verdicts: Mapping[str, Any] | None) -> float:
    """Length of the window of a verdict; 0 where there is none."""
    window = (verdicts or {}).get("window") or {}
    start, end = window.get("start"), window.get("end")
    return 0.0 if start is None or end is None else _moment(end) - _moment(start)


def _moment(value: float | str) -> float:
    if isinstance(value, int | float):
        return float(value)
    return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()


def gpu_name(entry: Entry) -> str:
    """``GPU 3``, with the MIG instance where it is one; not yet escaped."""
    if entry["gpu"] is None and entry["uuid"] is None:
        return "No GPU in sight"
    name = f"GPU {entry['gpu']}" if entry["gpu"] is not None else f"GPU {entry['uuid']}"
    return f"{name} MIG {entry['mig']}" if entry.get("mig") else name


def names(entries: Sequence[Entry]) -> str:
    """``GPUs 0-3, ranks 0-3`` of several, ``GPU 0, rank 0`` of one; not yet escaped."""
    if len(entries) == 1 or any(entry.get("mig") or entry["gpu"] is None for entry in entries):
        name = ", ".join(dict.fromkeys(gpu_name(entry) for entry in entries))
    else:
        gpus = {entry["gpu"] for entry in entries}
        name = f"GPU{'s' if len(gpus) > 1 else ''} {ranges(gpus)}"
    ranks = [entry["rank"] for entry in entries if entry["rank"] is not None]
    if ranks:
        name += f", rank{'s' if len(ranks) > 1 else ''} {ranges(ranks)}"
    return name


def lost(entry: Entry) -> float:
    """The share that weighs in an entry: of its first cause, or of what cannot be told."""
    first = entry["causes"][0]["lost_ratio"] if entry["causes"] else 0.0
    return float(entry["accounts"].get("unknown", 0.0) if entry["cause"] == "unknown" else first)


def tone(entry: Entry) -> str:
    """``well``, ``lost``, ``unknown`` or ``free``: the class that colours it."""
    if entry["run"] is None:
        return "free"
    reason = entry["causes"][0].get("reason") if entry["causes"] else None
    if entry["cause"] == "none" or reason in INFORMATION:
        return "well"
    return "unknown" if entry["cause"] == "unknown" else "lost"


def gravity(entry: Entry) -> tuple[int, int]:
    """To sort by, the worst last: faults, then what cannot be told, then the rest. In tenths: what
    differs by less keeps its place, so that a page that is read does not change its order."""
    return {"lost": 2, "unknown": 1}.get(tone(entry), 0), round(10 * lost(entry))


def mean_accounts(entries: Sequence[Entry]) -> dict[str, float]:
    """The mean of the accounts of those whose GPU is in sight, largest first."""
    known = [entry["accounts"] for entry in entries if entry["accounts"]]
    found = dict.fromkeys(name for accounts in known for name in accounts)
    means = {name: sum(a.get(name, 0.0) for a in known) / len(known) for name in found}
    return dict(sorted(means.items(), key=lambda item: -item[1]))


def bar(shares: Mapping[str, float]) -> str:
    """Shares beside one another, each in its account's colour; the figures stand beside it."""
    drawn, x = [], 0.0
    for name, share in shares.items():
        width = 100 * share
        drawn.append(
            f'<rect class="account-{slug(name)}" x="{x:.1f}" width="{width:.1f}" height="1"/>'
        )
        x += width
    return (
        '<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(drawn)}</svg>"
    )


def slug(name: str) -> str:
    """A name as part of a class."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name)[:32]


def anchor(run: str | None) -> str:
    """The id of a run's part of the page: the same as long as the run has this name."""
    return "no-run" if run is None else f"run-{zlib.crc32(run.encode(errors='replace')):08x}"
