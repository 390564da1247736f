"""Logs: logfmt lines on standard error, with a level, in UTC, and bounded in number.

Modules use the standard library, ``logging.getLogger(__name__)``, and pass values as
``log.warning("scrape cut", extra={"family": "gpu"})``: each becomes ``family=gpu``.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

BURST = 5  # lines of one message that pass in each period
PERIOD_S = 60.0
KEPT = 1000  # messages whose counts are kept; bounds the memory

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,[]()")


def setup(level: str = "info", stream: TextIO | None = None) -> None:
    """Send every log line of this process to ``stream`` (standard error) from ``level`` on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LogfmtFormatter())
    handler.addFilter(RateLimit())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


class LogfmtFormatter(logging.Formatter):
    """``ts=2026-01-02T03:04:05.678Z level=info logger=gpuwhy.cli msg="..." key=value``."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "ts": _timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        fields |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return " ".join(f"{key}={_quoted(str(value))}" for key, value in fields.items())


class RateLimit(logging.Filter):
    """Lets a message pass ``burst`` times in a period; the next line says how many were held."""

    def __init__(
        self,
        burst: int = BURST,
        period_s: float = PERIOD_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._burst, self._period, self._clock = burst, period_s, clock
        self._counts: dict[tuple[str, int, str], tuple[float, int]] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        key = (record.name, record.levelno, str(record.msg))  # the template, not its values
        now = self._clock()
        with self._lock:
            since, count = self._counts.get(key, (now, 0))
            held = max(0, count - self._burst)
            if now - since >= self._period:
                since, count = now, 0
            if key not in self._counts and len(self._counts) >= KEPT:
                self._counts.clear()
            self._counts[key] = (since, count + 1)
        if count == 0 and held:
            record.suppressed = held
        return count < self._burst


def _timestamp(created: float) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(created))
    return f"{seconds}.{int(created % 1 * 1000):03d}Z"


def _quoted(text: str) -> str:
    if text and all(character in _PLAIN for character in text):
        return text
    return json.dumps(text)  # escapes quotes, control characters and newlines
