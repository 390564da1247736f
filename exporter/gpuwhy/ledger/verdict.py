"""The verdict over a window: causes, largest first, with evidence and a next action."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from gpuwhy.ledger import ended, lost_gpus
from gpuwhy.ledger import thresholds as th
from gpuwhy.ledger.accounts import ACCOUNTS, CAUSES
from gpuwhy.ledger.advice import next_action
from gpuwhy.ledger.entry import Entry
from gpuwhy.ledger.evidence import evidence_for, function_for
from gpuwhy.ledger.phases_only import losses_from_phases, reason_from_phases
from gpuwhy.ledger.sight import UNDECIDED, UNKNOWN_SIGNALS, cannot_see, cannot_see_holders
from gpuwhy.ledger.stalled import in_hindsight
from gpuwhy.ledger.summary import Window, spoken
from gpuwhy.signals.row import Function, GpuRow, GpuSignals

INFORMATION = ("throttle", "at-default-limit")
"""Named, but no fault: a card that works hard at its factory power limit is well used."""

Verdict = dict[str, Any]


def verdict(entries: Sequence[Entry]) -> Verdict:
    """The object of ``gpuwhy diagnose --json`` (schema 1) over these entries."""
    if not entries:
        return {"schema": 1, "window": {"start": None, "end": None}, "gpus": [], "runs": []}
    gpus = [_held(key, window, entries) for key, window in _windows(entries).items()]
    gpus += _free(entries)
    gpus.sort(key=lambda g: (g["gpu"] is None, g["gpu"] or 0, str(g["run"]), g["rank"] or 0))
    found = {
        "schema": 1,
        "window": {"start": utc(entries[0].second.t), "end": utc(entries[-1].second.t + 1)},
        "gpus": gpus,
        "runs": _runs(gpus, entries),
    }
    return lost_gpus.told(ended.told(found, entries), _sources(entries))


def utc(t: float) -> str:
    return datetime.fromtimestamp(t, timezone.utc).isoformat().replace("+00:00", "Z")


def _windows(entries: Sequence[Entry]) -> dict[Any, Window]:
    out: dict[Any, Window] = {}
    for entry in entries:
        for row in entry.second.rows:
            uuid = row.gpu.uuid if row.gpu else None
            for run in row.runs:
                key = (uuid, run.run, run.rank, run.pid)
                window = out.setdefault(key, Window([], [], []))
                window.rows.append(row)
                window.runs.append(run)
                window.shares.append(entry.shares[(uuid, (run.run, run.rank), run.pid)].shares)
    for window in out.values():
        window.shares = in_hindsight(window.runs, window.shares)
    # A run that was seen for only a sliver of the window has no verdict of its own.
    enough = [k for k, w in out.items() if w.seconds >= min(3, 0.2 * len(entries))]
    return {key: out[key] for key in enough}


def _identity(gpu: GpuSignals | None) -> dict[str, Any]:
    if gpu is None:
        return {"gpu": None, "uuid": None, "mig": None}
    return {"gpu": gpu.gpu, "uuid": gpu.uuid, "mig": gpu.mig}


def _held(key: Any, window: Window, entries: Sequence[Entry]) -> Verdict:
    _, run, rank, pid = key
    accounts = {a: v for a, v in window.accounts().items() if v > 0}
    blind = cannot_see(window, _sources(entries))
    losses = accounts if accounts else losses_from_phases(window)
    causes = [_cause(account, losses, window) for account in _named(losses)]
    cause = answer(losses, blind, window)
    return {
        **_identity(window.last_row.gpu),
        "run": run,
        "rank": rank,
        "pid": pid,
        "cause": cause,
        "causes": causes,
        "accounts": {a: round(accounts[a], 4) for a in ACCOUNTS if a in accounts},
        "cannot_see": _with_deciding(blind, window) if cause == "unknown" else blind,
    }


def _sources(entries: Sequence[Entry]) -> Any:
    return entries[-1].second.sources


def _named(losses: dict[str, float]) -> list[str]:
    named = [c for c in CAUSES if losses.get(c, 0.0) >= th.CAUSE_RATIO]
    return sorted(named, key=lambda c: -losses[c])


def answer(losses: dict[str, float], blind: list[dict[str, str]], window: Window) -> str:
    """The one word: the first cause, ``none``, or ``unknown`` where what is not known is larger, or
    would make a loss to be told of the largest cause that is too small to be named."""
    named = _named(losses)
    largest = losses.get(named[0], 0.0) if named else 0.0
    if window.last_row.gpu is None:  # how much of a wait reached the GPU is not known
        largest = min(largest, th.SUM_RATIO)
    if losses.get("unknown", 0.0) >= max(th.UNKNOWN_RATIO, largest):
        return "unknown"
    if named:
        return named[0]
    if _may_be_more(losses, window):
        return "unknown"
    missing = {b["signal"] for b in blind}
    if window.last_row.gpu is None and ("stacks" in missing or window.last.holds_gpu):
        return "unknown"
    return "none"


def _may_be_more(losses: dict[str, float], window: Window) -> bool:
    """Might the largest loss that is no information, and what is not known, be one cause?"""
    unknown = losses.get("unknown", 0.0)
    faults = [c for c in CAUSES if c in losses and (c, _reason(c, window)) != INFORMATION]
    known = max((losses[c] for c in faults), default=0.0)
    return unknown > 0 and known + unknown >= th.SUM_RATIO


def _cause(account: str, losses: dict[str, float], window: Window) -> Verdict:
    reason = _reason(account, window)
    function = function_for(account, reason, window)
    found: Verdict = {
        "cause": account,
        "reason": reason,
        "lost_ratio": round(losses[account], 4),
        "confidence": confidence(account, losses, window),
        "evidence": evidence_for(account, reason, window),
        "function": _function(function),
        "next_action": next_action(account, reason, window),
    }
    if (account, reason) == INFORMATION:
        found["information"] = True
    return found


def _reason(account: str, window: Window) -> str | None:
    reasons = {r: v for (a, r), v in window.reasons().items() if a == account}
    if not reasons:
        return reason_from_phases(account, window)
    return max(reasons, key=lambda r: reasons[r]) or None


def _function(function: Function | None) -> Verdict | None:
    if function is None:
        return None
    name, file, line = function
    return {"name": name, "file": file, "line": line}


def confidence(account: str, losses: dict[str, float], window: Window) -> float:
    """From 0 to 1: how far the loss stands above the threshold, less what is not known, less for
    few seconds. An order, not a probability."""
    size = min(1.0, losses[account] / (2 * th.CAUSE_RATIO))
    known = 1.0 - losses.get("unknown", 0.0)
    length = min(1.0, window.seconds / 10.0)
    return round(max(0.05, min(0.99, (0.4 + 0.6 * size) * known * (0.7 + 0.3 * length))), 2)


def _with_deciding(blind: list[dict[str, str]], window: Window) -> list[dict[str, str]]:
    """The signal whose absence left most of it unknown must be in the list."""
    reasons = {r: v for (a, r), v in window.reasons().items() if a == "unknown"}
    if not reasons:
        return blind
    reason = max(reasons, key=lambda r: reasons[r])
    signal = UNKNOWN_SIGNALS.get(reason, "evidence")
    if any(b["signal"] == signal for b in blind):
        return blind
    why, remedy = UNDECIDED.get(
        reason, (f"{signal} was not seen, and it decides here", "see gpuwhy doctor")
    )
    return [*blind, {"signal": signal, "why": why, "remedy": remedy}]


# -- GPUs without a run, and runs as a whole -----------------------------------------------------


def _free(entries: Sequence[Entry]) -> list[Verdict]:
    rows: dict[str, list[GpuRow]] = {}
    for entry in entries:
        for row in entry.second.rows:
            if row.gpu is not None and not row.runs and not row.gpu.divided:
                rows.setdefault(row.gpu.uuid, []).append(row)
    out = []
    for free in rows.values():
        if len(free) * 2 <= len(entries) or free[-1].gpu is None:
            continue
        busy = [r.gpu.busy for r in free if r.gpu is not None and r.gpu.busy is not None]
        used = sum(busy) / len(busy) if busy else None
        accounts = {"unknown": 1.0} if used is None else {"free": 1 - used, "compute": used}
        blind = cannot_see_holders(free[-1], used)
        out.append(
            {
                **_identity(free[-1].gpu),
                "run": None,
                "rank": None,
                "cause": "unknown" if blind else "none",
                "causes": [],
                "accounts": {a: round(v, 4) for a, v in accounts.items() if v > 0},
                "cannot_see": blind,
            }
        )
    return out


def _runs(gpus: Sequence[Verdict], entries: Sequence[Entry]) -> list[Verdict]:
    late = {run.pid for e in entries for row in e.second.rows for run in row.runs if run.straggler}
    out = []
    for name in dict.fromkeys(g["run"] for g in gpus if g["run"] is not None):
        members = [g for g in gpus if g["run"] == name]
        decisive = _decisive(members, late)
        out.append(
            {
                "run": name,
                "ranks": sorted({m["rank"] for m in members if m["rank"] is not None}),
                "cause": decisive["cause"],
                "summary": _summary(members, decisive, late),
            }
        )
    return out


def _decisive(members: Sequence[Verdict], late: set[int]) -> Verdict:
    """The rank the others wait for, where it has a cause; else the one that lost the most."""
    guilty = [m for m in members if m.get("pid") in late and m["causes"]]
    return max(guilty or members, key=_weight)


def _weight(member: Verdict) -> float:
    largest = member["causes"][0]["lost_ratio"] if member["causes"] else 0.0
    return float(max(largest, member["accounts"].get("unknown", 0.0)))


def _summary(members: Sequence[Verdict], decisive: Verdict, late: set[int]) -> str:
    cause = decisive["cause"]
    if cause == "none":
        return "healthy: no cause takes a noticeable share of " + (
            "the host's time" if decisive["uuid"] is None else "GPU time"
        )
    if cause == "unknown":
        missing = ", ".join(b["signal"] for b in decisive["cannot_see"]) or "evidence"
        return f"cannot tell: {missing} missing"
    first = decisive["causes"][0]
    whose = "the host's" if decisive["uuid"] is None else "GPU"
    text = f"{first['lost_ratio']:.0%} of {whose} time lost to {cause}"
    if decisive["rank"] is not None and len(members) > 1:
        text += f" on rank {decisive['rank']}"
        if decisive.get("pid") in late:
            text += ", which the other ranks wait for"
    if first["function"]:
        text += f", at {spoken(**first['function'])}"
    return text
