"""Who may ask for an action on the job: off unless switched on, behind a token, from this page
alone, and seldom.

The token is the content of a file, read at each request, so that it can be changed while serving.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

SHORTEST = 16
"""Characters of a token: too many to be tried out at ``WRONG_PER_MINUTE``."""
WRONG_PER_MINUTE = 10
PAUSE_S = 10.0
"""Between two actions: what they cost stays a share of the time."""

HEADER = "Gpuwhy-Token"
"""Not a header that a page of another origin may send without being asked for consent."""


class RefusedError(Exception):
    """The action is not taken: the HTTP status, the reason, and when to ask again."""

    def __init__(self, status: int, reason: str, retry_s: float | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.retry_s = status, reason, retry_s


class TokenError(Exception):
    """The file holds no token that can be used; the message names it and says what to do."""


def read_token(path: Path) -> str:
    """The token in a file. Raises TokenError."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no UTF-8 text"
        raise TokenError(f"{path}: the token cannot be read: {reason}") from error
    if len(token) < SHORTEST or not (token.isascii() and token.isprintable()):
        raise TokenError(
            f"{path}: the token is one line of {SHORTEST} ASCII characters or more; "
            f"make one with `openssl rand -hex 16 > {path}`"
        )
    return token


class Actions:
    """The gate before actions. ``begin`` lets one in at a time; ``done`` ends it.

    ``ended`` is set when the exporter stops: an action under way gives up then.
    """

    def __init__(
        self, token_file: Path | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Raises TokenError where there is a file without a good token."""
        self._file, self._clock = token_file, clock
        self._lock = threading.Lock()
        self._wrong: deque[float] = deque(maxlen=WRONG_PER_MINUTE)
        self._busy = False
        self._free_at = 0.0
        self.ended = threading.Event()
        if token_file is not None:
            read_token(token_file)

    @property
    def on(self) -> bool:
        """Whether actions are switched on."""
        return self._file is not None

    def begin(self, headers: Mapping[str, str]) -> None:
        """Let a request in, by its headers (any case). Raises RefusedError."""
        if self._file is None:
            raise RefusedError(404, "off: gpuwhy serve --web.token-file FILE switches it on")
        if not same_origin(headers):
            raise RefusedError(403, "a page of another origin may not ask for it")
        if not headers.get("content-type", "").startswith("application/json"):
            raise RefusedError(415, "Content-Type must be application/json")
        with self._lock:
            self._check_token(headers.get(HEADER, ""), self._file)
            now = self._clock()
            if self._busy:
                raise RefusedError(429, "another one is being taken", 5.0)
            if now < self._free_at:
                wait = self._free_at - now
                raise RefusedError(429, f"one was just taken; in {wait:.0f} s again", wait)
            self._busy = True

    def done(self, *, acted: bool) -> None:
        """The request has ended; ``acted``: the job was looked at, well or not."""
        with self._lock:
            self._busy = False
            if acted:
                self._free_at = self._clock() + PAUSE_S

    def _check_token(self, given: str, path: Path) -> None:
        now = self._clock()
        while self._wrong and now - self._wrong[0] > 60:
            self._wrong.popleft()
        if len(self._wrong) == WRONG_PER_MINUTE:
            raise RefusedError(429, "too many wrong tokens", 60 - (now - self._wrong[0]))
        try:
            token = read_token(path)
        except TokenError as error:
            raise RefusedError(503, str(error)) from error
        if not hmac.compare_digest(_digest(given), _digest(token)):
            self._wrong.append(now)
            raise RefusedError(403, "wrong token")


def _digest(token: str) -> bytes:
    """Of one length whatever the token's: neither its content nor its length shows in the time."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def same_origin(headers: Mapping[str, str]) -> bool:
    """False for a browser that asks on behalf of another page; programs send neither header."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == headers.get("host")
    except ValueError:  # "http://[" is no address
        return False
