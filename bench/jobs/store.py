"""A small object store over HTTP, slow to answer as far ones are."""

from __future__ import annotations

import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

BODY = os.urandom(16384)


class Objects(BaseHTTPRequestHandler):
    """Answers ``GET /name?wait=seconds``."""

    def do_GET(self) -> None:
        """Wait, then send the object."""
        query = parse_qs(urlsplit(self.path).query)
        time.sleep(min(float(query.get("wait", ["0"])[0]), 10.0))
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""


class Store(ThreadingHTTPServer):
    """Takes bursts of connections."""

    request_queue_size = 512


if __name__ == "__main__":
    Store(("127.0.0.1", int(os.environ.get("STORE_PORT", "8765"))), Objects).serve_forever()
