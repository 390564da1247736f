"""A real Prometheus on series from a file, with the recording rules evaluated over them."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from scripts.stack import packages

RULES = Path(__file__).parents[2] / "prometheus/rules/recording.yml"
DEADLINE_S = 60.0


class QueryError(Exception):
    """Prometheus refuses a query; the message is its own."""


class Prometheus:
    """A Prometheus that answers at ``url``."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, path: str, **parameters: str | float) -> Any:
        """The data of an answer of the API."""
        body = urllib.parse.urlencode(parameters).encode()
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", data=body)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise QueryError(json.load(error).get("error", str(error))) from error

    def at(self, query: str, t: float) -> list[dict[str, Any]]:
        """The series of an instant query."""
        return self.call("query", query=query, time=t)["result"]  # type: ignore[no-any-return]

    def over(self, query: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """The series of a range query."""
        found = self.call("query_range", query=query, start=start, end=end, step=step)
        return found["result"]  # type: ignore[no-any-return]

    def labels(self, selector: str, start: float, end: float) -> list[Mapping[str, str]]:
        """Label sets of the series that a selector finds."""
        return self.call("series", **{"match[]": selector}, start=start, end=end)  # type: ignore[no-any-return]


@contextlib.contextmanager
def serving(folder: Path, lines: Iterable[str], start: float, end: float) -> Iterator[Prometheus]:
    """A Prometheus with these OpenMetrics lines and what the recording rules make of them."""
    programs = packages.programs("prometheus", "promtool")
    text, database = folder / "series.om", folder / "data"
    with text.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    _run(programs["promtool"], "tsdb", "create-blocks-from", "openmetrics", text, database)
    for rules in _one_after_the_other(folder):
        with _running(programs["prometheus"], folder, database) as server:
            _run(
                programs["promtool"], "tsdb", "create-blocks-from", "rules",
                f"--start={start:.0f}", f"--end={end + 1:.0f}", "--eval-interval=15s",
                f"--url={server.url}", f"--output-dir={database}", rules,
            )  # fmt: skip
    with _running(programs["prometheus"], folder, database) as server:
        yield server


def _one_after_the_other(folder: Path) -> Iterator[Path]:
    """Rules that others need first: promtool shows a rule's result to the next call only."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    first = [rule for rule in rules if rule["record"] == "gpu:mig_key:info"]
    for number, part in enumerate((first, [rule for rule in rules if rule not in first])):
        file = folder / f"rules-{number}.yml"
        file.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": part}]}))
        yield file


def _run(*command: object) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def _running(program: Path, folder: Path, database: Path) -> Iterator[Prometheus]:
    configuration = folder / "prometheus.yml"
    configuration.write_text("{}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        str(program),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={database}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={address}",
        "--log.level=error",
    ]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait(f"http://{address}/-/ready", process, folder / "prometheus.log")
        yield Prometheus(f"http://{address}")
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2):
            return
        time.sleep(0.1)
    raise AssertionError(f"Prometheus is not ready after {DEADLINE_S:.0f} s: {log.read_text()}")
