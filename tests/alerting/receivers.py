"""The real Alertmanager with settings of a test, and receivers that keep what they get."""

from __future__ import annotations

import contextlib
import json
import shutil
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scripts.stack import packages, processes
from scripts.stack.shorten import shorten
from tests.stack.ports import free_port

from gpuwhy.expose import alerting

ROOT = Path(__file__).parents[2]


class Posts:
    """A server that keeps what is posted to it, by path; it answers as Slack and WeCom do."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, Any]] = []
        kept = self.kept

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = json.dumps(
                    {"ok": True, "errcode": 0, "access_token": "t", "expires_in": 7200}
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                kept.append((self.path.partition("?")[0], json.loads(body)))
                self._answer()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def to(self, path: str) -> list[Any]:
        return [body for where, body in self.kept if where == path]


class Mails:
    """The least of an SMTP server."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []
        kept = self.kept

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(b"220 test\r\n")
                while line := self.rfile.readline():
                    verb = line[:4].upper()
                    if verb == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        kept.append(b"".join(iter(self.rfile.readline, b".\r\n")))
                    self.wfile.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 test\r\n")

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"


@contextlib.contextmanager
def serving(*servers: socketserver.BaseServer) -> Iterator[None]:
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


@contextlib.contextmanager
def alertmanager(
    folder: Path, settings: Mapping[str, Any], edit: Callable[[str], str] = str
) -> Iterator[str]:
    """The real one with these settings; its URL. ``edit`` changes the templates."""
    shutil.copytree(ROOT / "alerting/templates", folder / "templates")
    template = folder / "templates/gpuwhy.tmpl"
    template.write_text(edit(template.read_text()))
    config = shorten(alerting.render(alerting.parse(dict(settings))), 30)
    (folder / "alertmanager.yml").write_text(config)
    program, port = packages.programs("alertmanager")["alertmanager"], free_port()
    command = [
        str(program),
        f"--config.file={folder}/alertmanager.yml",
        f"--storage.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        "--web.external-url=http://alertmanager",
        "--web.route-prefix=/",
    ]
    url = f"http://127.0.0.1:{port}"
    cwd = packages.working_folder(program)
    service = processes.Service("alertmanager", command, f"{url}/-/ready", folder, cwd, {})
    processes.start(service)
    try:
        processes.wait_ready(service)
        yield url
    finally:
        processes.stop_all(folder)
