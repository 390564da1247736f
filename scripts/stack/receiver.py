"""A receiver of Alertmanager's webhooks that prints and keeps what arrives."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Arrived:
    """One alert of one notification."""

    status: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @property
    def text(self) -> str:
        """All that a reader sees."""
        return "\n".join(self.annotations.values())


class Receiver:
    """Listens on a port of loopback (0: any that is free) until it is closed."""

    def __init__(self, port: int = 0, *, shows: bool = True) -> None:
        self._arrived: list[Arrived] = []
        self._lock = threading.Lock()
        self._shows = shows
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where to post to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def arrived(self) -> list[Arrived]:
        """What has arrived so far."""
        with self._lock:
            return list(self._arrived)

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()

    def take(self, notification: Mapping[str, Any]) -> None:
        """Keep and print one notification."""
        alerts = [
            Arrived(one["status"], one.get("labels", {}), one.get("annotations", {}))
            for one in notification.get("alerts", [])
        ]
        with self._lock:
            self._arrived += alerts
            if self._shows:
                print(shown(notification, alerts), flush=True)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        take = self.take

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length", "0"))
                try:
                    take(json.loads(self.rfile.read(min(size, MOST_BYTES))))
                    status = 200
                except (ValueError, KeyError, TypeError) as error:
                    sys.stderr.write(f"not understood: {error}\n")
                    status = 400
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """The notifications are the log."""

        return Handler


def shown(notification: Mapping[str, Any], alerts: list[Arrived]) -> str:
    """A notification as it is printed."""
    mark = "[recorded] " if notification.get("commonLabels", {}).get("recorded") else ""
    about = notification.get("groupLabels", {})
    subject = about.get("run") or about.get("instance") or "?"
    lines = [f"\n--- {mark}notification: {subject}"]
    for alert in alerts:
        severity = alert.labels.get("severity", "")
        lines.append(f"{alert.status} ({severity}) {alert.annotations.get('summary', '')}")
        if alert.status == "firing":
            told = alert.annotations.get("description", "").splitlines()
            lines += [f"    {line}" for line in told]
    return "\n".join(lines)
