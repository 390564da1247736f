"""Values of tables as a person writes them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def shown(value: Any, unit: str) -> str:
    """A value with its unit; a dash for one that is not known."""
    if value is None:
        return "-"
    if unit == "utc":
        return datetime.fromtimestamp(value, timezone.utc).strftime("%H:%M:%S.%f")[:-3]
    if unit == "s":
        return time(float(value))
    if unit in ("bytes", "bytes/s"):
        return size(float(value)) + unit[5:]
    if unit == "ratio":
        return f"{100 * value:.1f} %" if 0 < abs(value) < 0.1 else f"{100 * value:.0f} %"
    if unit in ("count", "1/s"):
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}" if unit == "number" else str(value)


def time(seconds: float) -> str:
    """``1.52 s``, ``87 ms``, ``4.1 us``."""
    for scale, name in _TIMES:
        if abs(seconds) >= scale:
            return f"{_three(seconds / scale)} {name}"
    return "0" if not seconds else f"{seconds * 1e9:.0f} ns"


def size(amount: float) -> str:
    """``19.3 MB``."""
    for scale, name in _BYTES:
        if abs(amount) >= scale:
            return f"{_three(amount / scale)} {name}"
    return "0 B"


def best_unit(seconds: float) -> tuple[float, str]:
    """A time and the unit in which it is best told: (69.1, "ms")."""
    for scale, name in _TIMES:
        if abs(seconds) >= scale:
            return seconds / scale, name
    return seconds * 1e6, "us"


def _three(value: float) -> str:
    """Three digits, or all of a whole number's."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
