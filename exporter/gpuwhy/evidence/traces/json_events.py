"""The Trace Event format, read event by event: memory does not grow with the file.

The file is an object with a list ``traceEvents``, or that list alone
(https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from gpuwhy.evidence.traces.trace import TraceError

LONGEST = 32 << 20
"""Characters of the longest event, or value beside the events, that is read."""

_FAR = 1 << 16
_BLANK = re.compile(r"[ \t\r\n]*")
_BETWEEN = re.compile(r"[ \t\r\n,]*")
_NEXT_EVENT = re.compile(r"\}\s*,\s*\{\s*\"|\}\s*\]")
_NOT_FINITE = re.compile(r":\s*-?(?:inf|nan)(?:\((?:ind|snan)\))?(?=\s*[,}\]])", re.IGNORECASE)
_scan = json.JSONDecoder(strict=False).raw_decode  # control characters in names do occur


class EventReader:
    """Iterates over the events; ``header`` has filled with what stands beside them at the end."""

    def __init__(self, name: str, pieces: Iterator[str]) -> None:
        self.header: dict[str, Any] = {}
        self.count = 0
        self._name = name
        self._pieces = pieces
        self._text = ""
        self._at = 0
        self._read = 0  # characters of the file in the pieces taken so far

    def __iter__(self) -> Iterator[Any]:
        first = self._peek()
        if first == "[":
            yield from self._events()
        elif first == "{":
            yield from self._object()
        else:
            raise TraceError(f"{self._name} is no trace: it is not JSON, it begins {self._near()}")

    def _object(self) -> Iterator[Any]:
        """Keys and values at the top; the events where their key comes."""
        self._at += 1
        while (found := self._peek(_BETWEEN)) != "}":
            if found != '"':
                raise self._damaged("a key was expected")
            key = self._value()
            if self._peek() != ":":
                raise self._damaged("a colon was expected")
            self._at += 1
            if key == "traceEvents" and self._peek() == "[":
                yield from self._events()
            else:
                self._peek()
                self.header[key] = self._value()

    def _events(self) -> Iterator[Any]:
        self._at += 1
        while self._peek(_BETWEEN) != "]":
            event = self._value()
            self.count += 1
            yield event
        self._at += 1

    def _peek(self, skipped: re.Pattern[str] = _BLANK) -> str:
        """The next character that is no blank, without taking it."""
        while True:
            found = skipped.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                raise self._cut()

    def _value(self) -> Any:
        """Take the value that begins here."""
        while True:
            try:
                value, end = _scan(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._surely_wrong(error) or len(self._text) - self._at > LONGEST:
                    return self._mended()
                if not self._more():
                    return self._mended(final=True)
            except RecursionError:
                raise self._damaged("it is nested too deeply") from None
            else:
                # A number at the edge may go on in the next piece.
                if end < len(self._text) or not self._more():
                    self._at = end
                    return value

    def _surely_wrong(self, error: json.JSONDecodeError) -> bool:
        """Far from the end of the piece, so that reading on does not help."""
        return error.pos < len(self._text) - _FAR and not error.msg.startswith("Unterminated")

    def _mended(self, final: bool = False) -> Any:
        """Some versions write ``inf`` and ``nan`` bare, which JSON does not know: as if absent."""
        edge = _NEXT_EVENT.search(self._text, self._at)
        if edge is None:
            raise self._cut() if final else self._damaged("no end of a value in sight")
        end = edge.start() + 1
        text = _NOT_FINITE.sub(": null", self._text[self._at : end])
        try:
            value, length = _scan(text, 0)
        except json.JSONDecodeError as error:
            raise self._damaged(error.msg) from None
        if length != len(text):
            raise self._damaged("something follows a value")
        self._at = end
        return value

    def _more(self) -> bool:
        piece = next(self._pieces, None)
        if piece is None:
            return False
        self._text = self._text[self._at :] + piece
        self._at = 0
        self._read += len(piece)
        return True

    def _near(self) -> str:
        return repr(self._text[self._at : self._at + 30])

    def _damaged(self, why: str) -> TraceError:
        return TraceError(
            f"{self._name} is damaged near character {self._position}, after {self.count} events: "
            f"{why} at {self._near()}"
        )

    def _cut(self) -> TraceError:
        return TraceError(
            f"{self._name} breaks off after {self.count} events: it was written or copied only in "
            "part. Let the profiler finish before the job ends, or copy the file again"
        )

    @property
    def _position(self) -> int:
        return self._read - len(self._text) + self._at
