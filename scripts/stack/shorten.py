"""Rules and routes with every duration made shorter by one factor, for the demonstration.

It works on the text of the real files, so that what is shown is what is shipped: a rule that is
missing there is missing here.
"""

from __future__ import annotations

import re

DURATION = re.compile(r"(?<![\w.])([1-9]\d*)(s|m|h|d)(?!\w)")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def shorten(text: str, factor: float, least_s: int = 1) -> str:
    """``5m`` becomes ``20s`` with a factor of 15; nothing becomes shorter than ``least_s``."""

    def shorter(match: re.Match[str]) -> str:
        seconds = int(match[1]) * SECONDS[match[2]] / factor
        return f"{max(least_s, round(seconds))}s"

    return DURATION.sub(shorter, text)
