"""Understanding what NCCL's RAS service answers: pure text in, plain communicators out.

The form is that of NCCL's ``src/ras/client_support.cc`` (2.28 and newer): ``communicators[]`` with
``ranks[]`` (status, collective counts) and ``missing_ranks[]``. NCCL 2.28.9 leaves a comma out
inside ``missing_ranks``, so what does not parse is mended first.
"""

from __future__ import annotations

import json
import re
from typing import Any

IN_PROGRESS = 7
"""ncclInProgress, as ``init_state`` of a communicator that is being set up."""

COMMA_LEFT_OUT = re.compile(r'(["\d\]}]|true|false|null)(\s*\n\s*)(?=")')
"""A value, a line break and the next key. Valid JSON never has that, and RAS breaks no strings."""

COMMA_TOO_MANY = re.compile(r",(?=\s*[\]}])")


def parse(text: str) -> dict[str, Any]:
    """The JSON object of an answer, mended if need be. Raises ValueError if it is none."""
    try:
        answer = _loads(text)
    except ValueError:
        answer = _loads(COMMA_TOO_MANY.sub("", COMMA_LEFT_OUT.sub(r"\1,\2", text)))
    if not isinstance(answer, dict) or not isinstance(answer.get("communicators"), list):
        raise ValueError("an answer without communicators")
    return answer


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def communicators(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """As in ``observation.Nccl``. What is not of the expected form is left out."""
    found = []
    for entry in answer["communicators"]:
        if not isinstance(entry, dict) or "hash" not in entry:
            continue
        ranks = [r for r in map(_rank, _dicts(entry.get("ranks"))) if r]
        missing = [r for r in map(_missing_rank, _dicts(entry.get("missing_ranks"))) if r]
        communicator: dict[str, Any] = {"hash": str(entry["hash"]), "ranks": ranks + missing}
        _put_integer(communicator, "size", entry.get("size"))
        found.append(communicator)
    return found


def state(status: dict[str, Any]) -> str:
    """One word for the flags of a rank: the latest stage of its life that it has reached."""
    if status.get("abort_flag"):
        return "aborted"
    if status.get("finalize_called") or status.get("destroy_flag"):
        return "finalizing"
    init = status.get("init_state", 0)
    return "running" if init == 0 else "initializing" if init == IN_PROGRESS else "failed"


def _rank(entry: dict[str, Any]) -> dict[str, Any] | None:
    out = _identity(entry)
    status, counts = entry.get("status"), entry.get("collective_counts")
    if out is None:
        return None
    if isinstance(status, dict):
        out["state"] = state(status)
        _put_integer(out, "async_error", status.get("async_error"))
    if isinstance(counts, dict):
        out["counts"] = {str(k): v for k, v in counts.items() if _is_count(v)}
    out["missing"] = False
    return out


def _missing_rank(entry: dict[str, Any]) -> dict[str, Any] | None:
    out, status = _identity(entry), entry.get("status")
    if out is None:
        return None
    out |= {"state": "missing", "missing": True}
    if isinstance(status, dict):
        for flag in ("considered_dead", "unresponsive"):
            if isinstance(status.get(flag), bool):
                out[flag] = status[flag]
    return out


def _identity(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Rank, host, PID, GPU. RAS writes -1 and "unknown" where it does not know."""
    out: dict[str, Any] = {}
    _put_integer(out, "rank", entry.get("rank"))
    if not out:
        return None
    if entry.get("host") not in (None, "", "unknown"):
        out["host"] = str(entry["host"])
    _put_integer(out, "pid", entry.get("pid"), least=1)
    _put_integer(out, "gpu", entry.get("nvml_dev"))
    return out


def _put_integer(out: dict[str, Any], name: str, value: Any, least: int = 0) -> None:
    if _is_count(value) and value >= least:
        out[name] = value


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []
