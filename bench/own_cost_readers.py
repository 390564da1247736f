"""Who reads the exporter: a scraper that is timed, and a crowd that presses."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
import urllib.request
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

PATHS = ("/metrics", "/", "/api/v1/verdicts?window=60s", "/api/v1/history", "/api/v1/processes")
READERS = 4


class Scraper:
    """Asks for ``/metrics`` every ``period_s``; ``took`` holds the seconds of each answer."""

    def __init__(self, url: str, period_s: float) -> None:
        self.took: list[float] = []
        self._url, self._period_s = f"{url}/metrics", period_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Scraper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._period_s):
            began = time.monotonic()
            read(self._url)
            self.took.append(time.monotonic() - began)


class Crowd:
    """Parallel readers of everything, one that takes a byte at a time, one that goes away."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._address = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        self._stop = threading.Event()
        kinds = [self._read] * READERS + [self._read_slowly, self._go_away]
        self._threads = [threading.Thread(target=kind, daemon=True) for kind in kinds]

    def __enter__(self) -> Crowd:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _read(self) -> None:
        """Each path about once in two seconds."""
        chance = random.Random(threading.get_ident())
        while not self._stop.wait(chance.uniform(0.2, 0.6)):
            with contextlib.suppress(OSError):
                read(self._url + chance.choice(PATHS))

    def _read_slowly(self) -> None:
        while not self._stop.wait(0.1):
            with contextlib.suppress(OSError), self._asked() as connection:
                for _ in range(20):
                    if self._stop.wait(0.1) or not connection.recv(1):
                        break

    def _go_away(self) -> None:
        while not self._stop.wait(0.5):
            with contextlib.suppress(OSError), self._asked() as connection:
                connection.recv(100)

    def _asked(self) -> socket.socket:
        connection = socket.create_connection(self._address, timeout=5)
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: gpuwhy\r\nConnection: close\r\n\r\n")
        return connection


def read(url: str) -> bytes:
    """The body, however it is coded. Raises OSError."""
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return bytes(response.read())


def series(url: str) -> dict[str, Any]:
    """How many series there are: in all, of the host, and the most of any one GPU."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as response:
        lines = [line for line in response.read().decode().splitlines() if line[:1] not in "#"]
    of_gpus = Counter(line.split('uuid="')[1].split('"')[0] for line in lines if 'uuid="' in line)
    of_gpus.pop("", None)
    return {
        "all": len(lines),
        "most_of_a_gpu": max(of_gpus.values(), default=0),
        "all_by_gpus": round(len(lines) / max(1, len(of_gpus))),
    }
