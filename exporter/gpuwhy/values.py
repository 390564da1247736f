"""What the text of an option may be: each function makes a value, or raises ValueError saying why.

The messages say what was given and what is expected; the caller puts the option's name before them.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from pathlib import Path

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)


def seconds(text: str) -> float:
    """Seconds of a duration such as ``20s``, ``5m``, ``1h30m`` or ``500ms``."""
    if not _DURATION.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is no duration: write a number and a unit, such as 20s or 5m")
    return sum(float(number) * UNITS[unit] for number, unit in _PART.findall(text))


def duration(least: float, most: float) -> Callable[[str], float]:
    """A duration in seconds, within a range."""

    def parse(text: str) -> float:
        return _within(seconds(text), text, least, most, lambda value: f"{value:g}s")

    return parse


def number(least: float, most: float) -> Callable[[str], float]:
    """A finite number within a range."""

    def parse(text: str) -> float:
        return _within(_float(text), text, least, most, lambda value: f"{value:g}")

    return parse


def integer(least: int, most: int) -> Callable[[str], int]:
    """A whole number within a range."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?\d{1,18}", text.strip(), re.ASCII):
            raise ValueError(f"{text!r} is no whole number")
        return int(_within(int(text), text, least, most, str))

    return parse


def ratio(least: float, most: float) -> Callable[[str], float]:
    """A share, as ``2%`` or ``0.02``."""

    def parse(text: str) -> float:
        stripped = text.strip()
        value = _float(stripped[:-1]) / 100 if stripped.endswith("%") else _float(stripped)
        return _within(value, text, least, most, lambda edge: f"{edge:.4g}")

    return parse


def boolean(text: str) -> bool:
    """``true``, ``yes``, ``on``, ``1`` or their contrary, in any case."""
    word = text.strip().lower()
    if word in ("true", "yes", "on", "1"):
        return True
    if word in ("false", "no", "off", "0"):
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def one_of(*words: str) -> Callable[[str], str]:
    """One of a few words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is none of {', '.join(words)}")
        return text

    return parse


def text(text: str) -> str:
    """Any text that is not empty."""
    if not text.strip():
        raise ValueError("is empty")
    return text.strip()


def path(text: str) -> Path:
    """A path, with ``~`` expanded; whether it exists is the reader's business."""
    if not text or "\0" in text:
        raise ValueError(f"{text!r} is no path")
    return Path(text).expanduser()


def address(text: str) -> str:
    """``HOST:PORT``, ``[IPv6]:PORT`` or ``:PORT``; port 0 lets the system choose."""
    host, colon, port = text.rpartition(":")
    if not colon or not re.fullmatch(r"\d{1,5}", port, re.ASCII) or int(port) > 65535:
        raise ValueError(f"{text!r} is no address: write HOST:PORT, such as 127.0.0.1:9877")
    if not re.fullmatch(r"\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]*", host):
        raise ValueError(f"{text!r} is no address: an IPv6 host stands in brackets, [::1]:9877")
    return text


def networks(text: str) -> tuple[str, ...]:
    """Networks in CIDR form, separated by commas: ``172.16.0.0/12,fd00::/8``."""
    found = []
    for part in text.split(","):
        try:
            found.append(str(ipaddress.ip_network(part.strip())))
        except ValueError:
            raise ValueError(f"{part.strip()!r} is no network: write 172.16.0.0/12") from None
    return tuple(found)


def _float(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is no finite number")
    return value


def _within(
    value: float, text: str, least: float, most: float, shown: Callable[[float], str]
) -> float:
    if not least <= value <= most:
        raise ValueError(f"{text!r} is outside the range {shown(least)} to {shown(most)}")
    return value
