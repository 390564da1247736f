"""Basic authentication against bcrypt hashes, and the web configuration that is read again."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import secrets
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

import bcrypt

from gpuwhy.expose.web_config import (
    WebConfig,
    WebConfigError,
    context_for,
    load,
    load_certificates,
)

log = logging.getLogger(__name__)

KEPT = 256
"""Wrong answers remembered, beside the last right one of each user: a scrape every few seconds must
not cost a bcrypt each time."""
SLOTS = 2
"""bcrypt checks at a time: wrong passwords in plenty must not take every CPU from the jobs."""
PATIENCE_S = 5.0
WRONG_PAUSE_S = 0.2
"""A slot rests after a wrong password: ten tries a second at most, and half a core."""

_NOBODY = bcrypt.hashpw(secrets.token_bytes(16), bcrypt.gensalt(10))
"""Checked for an unknown user, so that the time taken does not tell which users there are."""


class Authenticator:
    """Whether an ``Authorization`` header fits one of the users."""

    def __init__(self, users: Mapping[str, bytes]) -> None:
        self._users = users
        self._salt = secrets.token_bytes(16)
        self._right: dict[str, bytes] = {}  # apart: wrong ones in plenty must not push them out
        self._wrong: OrderedDict[bytes, None] = OrderedDict()
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(SLOTS)

    def allows(self, header: str | None) -> bool:
        """True for a known user with the right password, or where there are no users at all."""
        if not self._users:
            return True
        user, password = credentials(header)
        key = hmac.digest(self._salt, f"{user}\0{password}".encode(), hashlib.sha256)
        with self._lock:
            if hmac.compare_digest(self._right.get(user, b""), key):
                return True
            if key in self._wrong:
                self._wrong.move_to_end(key)
                return False
        answer = self._check(user, password)
        with self._lock:
            if answer:
                self._right[user] = key
            elif answer is not None:
                self._wrong[key] = None
                if len(self._wrong) > KEPT:
                    self._wrong.popitem(last=False)
        return bool(answer)

    def _check(self, user: str, password: str) -> bool | None:
        """None where too many others are being checked to tell in time."""
        hashed, raw = self._users.get(user), password.encode()
        if len(raw) > 72:  # the most that bcrypt looks at; the library refuses longer ones
            return False
        if not self._slots.acquire(timeout=PATIENCE_S):
            return None
        try:
            right = bcrypt.checkpw(raw, hashed or _NOBODY) and hashed is not None
            if not right:
                time.sleep(WRONG_PAUSE_S)
            return right
        finally:
            self._slots.release()


def credentials(header: str | None) -> tuple[str, str]:
    """User and password of a ``Basic`` header; two empty strings where it holds none."""
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:  # no base64, no UTF-8, no ASCII
        return "", ""
    return (user, password) if colon else ("", "")


class Web:
    """The web configuration in force. ``refresh`` reads it again when one of its files changed."""

    def __init__(self, path: Path | None) -> None:
        """Raises WebConfigError."""
        self.path = path
        self.config = load(path) if path else WebConfig()
        self.authenticator = Authenticator(self.config.users)
        tls = self.config.tls
        self.context: ssl.SSLContext | None = context_for(tls, path) if tls and path else None
        self._stamps = self._files()

    def refresh(self) -> None:
        """A file that became invalid is logged, and what was in force stays so."""
        stamps = self._files()
        if self.path is None or stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            config = load(self.path)
            if (config.tls is None) != (self.config.tls is None):
                raise WebConfigError(f"{self.path}: turning TLS on or off needs a restart")
            if config.tls is not None and self.context is not None:
                load_certificates(self.context, config.tls, self.path)
        except WebConfigError as error:
            log.error("web configuration not taken over", extra={"reason": str(error)})
            return
        self.config, self.authenticator = config, Authenticator(config.users)
        self._stamps = self._files()
        log.info("web configuration read again", extra={"file": str(self.path)})

    def _files(self) -> list[tuple[int, int]]:
        tls = self.config.tls
        files = [self.path, *((tls.cert_file, tls.key_file, tls.client_ca_file) if tls else ())]
        return [_stamp(file) for file in files if file is not None]


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_ino)
