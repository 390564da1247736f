"""One observation as one line of JSON: what the observer's pipe and a recording both carry."""

from __future__ import annotations

import json
import math
from typing import Any

from gpuwhy.observe.observation import Observation

MAX_LINE = 4 << 20
"""Longest line accepted, bytes. A real one is below 100 kB (64 workers in one process table)."""


class WireError(ValueError):
    """The line is no observation; the message says in what."""


def encode(observation: Observation) -> bytes:
    """One line, with its newline. Numbers that are not finite become absent (null in a list)."""
    try:
        text = json.dumps(observation, separators=(",", ":"), allow_nan=False)
    except ValueError:
        finite = _finite(observation)
        text = json.dumps(finite, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"


def decode(line: bytes) -> Observation:
    """The observation of a line; raises WireError for anything else than a JSON object with both
    ``t`` (a finite number) and ``kind``."""
    return checked(decode_object(line))


def checked(observation: dict[str, Any]) -> Observation:
    """The same object, if it is an observation; raises WireError."""
    if not isinstance(observation.get("kind"), str):
        raise WireError("it has no kind")
    t = observation.get("t")
    if isinstance(t, bool) or not isinstance(t, int | float) or not abs(t) < math.inf:
        raise WireError("its time t is no number")
    return observation


def decode_object(line: bytes) -> dict[str, Any]:
    """The JSON object of a line; raises WireError."""
    try:
        value = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise WireError(f"it is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise WireError("it is no JSON object")
    return value


def _refuse(name: str) -> Any:
    raise WireError(f"{name} is no number")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items() if not _not_finite(item)}
    if isinstance(value, list | tuple):
        return [None if _not_finite(item) else _finite(item) for item in value]
    return value


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
