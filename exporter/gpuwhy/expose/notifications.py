"""Notifications that had no receiver: the last webhooks that Alertmanager posted, for the page."""

from __future__ import annotations

import ipaddress
import json
import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

log = logging.getLogger(__name__)

KEPT = 50
LONGEST = 2000
"""Characters of one text that are kept."""
MOST_BYTES = 1 << 20
"""Size of a request's body; Alertmanager's own are some kB."""
MOST_ALERTS = 200
"""Alerts of one webhook that are looked at."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One alert of one webhook, as far as it could be read."""

    received: str  # UTC
    status: str
    name: str
    severity: str
    run: str
    summary: str
    description: str


class Notifications:
    """The last ``KEPT``, newest first; safe to use from several threads."""

    def __init__(self) -> None:
        self._kept: deque[Notification] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    def add(self, found: Sequence[Notification]) -> None:
        """Keep and log them."""
        with self._lock:
            self._kept.extendleft(found)
        for one in found:
            log.warning(
                "notification without a receiver",
                extra={"alert": one.name, "status": one.status, "summary": one.summary},
            )

    def latest(self) -> list[Notification]:
        """Newest first."""
        with self._lock:
            return list(self._kept)


def parse(body: bytes) -> list[Notification]:
    """The alerts of an Alertmanager webhook. Raises ValueError if the body is no JSON object.

    Alertmanager repeats a webhook that is refused: whatever else is odd in it is passed over.
    """
    try:
        found = json.loads(body)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    alerts = found.get("alerts")
    received = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    listed = alerts[:MOST_ALERTS] if isinstance(alerts, list) else []
    return [_notification(alert, received) for alert in listed if isinstance(alert, dict)]


def _notification(alert: Mapping[str, Any], received: str) -> Notification:
    labels, annotations = _mapping(alert, "labels"), _mapping(alert, "annotations")
    return Notification(
        received,
        _text(alert, "status"),
        _text(labels, "alertname"),
        _text(labels, "severity"),
        _text(labels, "run"),
        _text(annotations, "summary"),
        _text(annotations, "description"),
    )


def _mapping(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = found.get(key)
    return value if isinstance(value, dict) else {}


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    return "" if value is None else str(value)[:LONGEST]


def may_post(host: str | None, networks: Sequence[str] = ()) -> bool:
    """Whether a client may post: from this host, or from one of ``networks`` (CIDR)."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped or address
    return address.is_loopback or any(address in ipaddress.ip_network(n) for n in networks)
