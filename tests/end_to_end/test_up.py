"""``./run up`` and ``./run down``: the stack as plain processes beside a live training job."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts.stack import packages, processes
from tests.end_to_end.jobs import job
from tests.end_to_end.test_demo import clone
from tests.stack.ports import free_port

pytestmark = pytest.mark.full  # real stacks beside live jobs take minutes

NAMES = ("GPUWHY_PORT", "PROMETHEUS_PORT", "ALERTMANAGER_PORT")


class Up:
    """A clone, and the commands in it with ports of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ports = {name: free_port() for name in NAMES}

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        ports = {name: str(port) for name, port in self.ports.items()}
        return subprocess.run(
            ["sh", "run", *arguments],
            cwd=self.root,
            env={**os.environ, **ports, **variables},
            capture_output=True,
            text=True,
            timeout=200,
        )

    def get(self, name: str, path: str) -> str:
        url = f"http://127.0.0.1:{self.ports[name]}{path}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return str(answer.read().decode())

    def query(self, expression: str) -> list[dict[str, Any]]:
        quoted = urllib.request.quote(expression)  # type: ignore[attr-defined]
        told = json.loads(self.get("PROMETHEUS_PORT", f"/api/v1/query?query={quoted}"))
        return list(told["data"]["result"])

    def pids(self) -> list[int | None]:
        return [processes.running(file) for file in (self.root / ".run/up").glob("*.pid")]


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    packages.programs("prometheus", "alertmanager")
    (tmp_path / "clone").mkdir()
    found = Up(clone(tmp_path / "clone"))
    yield found
    found.run("down")


def test_up_watches_a_live_job_and_down_ends_it_all(up: Up, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    with job("mine", tmp_path / "job", Path(sys.executable)) as pid:
        started = up.run("up")
        assert started.returncode == 0, started.stderr
        assert "is not installed: gpuwhy's page stands in" in started.stdout
        assert f"http://127.0.0.1:{up.ports['GPUWHY_PORT']}/" in started.stdout
        assert until(lambda: up.query(f'gpuwhy_process_info{{pid="{pid}",run="mine",role="rank"}}'))
        assert until(lambda: len(up.query("up == 1")) == 3)
        phases = 'gpuwhy_training_phase_ratio{run="mine"}'
        assert until(lambda: {r["metric"]["phase"] for r in up.query(phases)} >= {"backward"})
    assert "gpuwhy" in up.get("GPUWHY_PORT", "/")
    groups = json.loads(up.get("PROMETHEUS_PORT", "/api/v1/rules"))["data"]["groups"]
    assert [r["lastError"] for g in groups for r in g["rules"] if r.get("lastError")] == []
    assert until(lambda: active_alertmanagers(up) == 1)

    again = up.run("up")
    assert again.returncode == 1
    assert "up already" in again.stderr

    assert len([pid for pid in up.pids() if pid]) == 3
    ended = up.run("down")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert sorted(ended.stdout.removeprefix("ended: ").strip().split(", ")) == [
        "alertmanager",
        "exporter",
        "prometheus",
    ]
    assert up.pids() == []
    assert up.run("down").stdout == "nothing was up\n"


def active_alertmanagers(up: Up) -> int:
    told = json.loads(up.get("PROMETHEUS_PORT", "/api/v1/alertmanagers"))
    return len(told["data"]["activeAlertmanagers"])


def test_a_taken_port_is_named_and_nothing_stays(up: Up) -> None:
    with socket.create_server(("127.0.0.1", up.ports["PROMETHEUS_PORT"])):
        refused = up.run("up")
    assert refused.returncode == 1
    assert f"port {up.ports['PROMETHEUS_PORT']} is taken" in refused.stderr
    assert "PROMETHEUS_PORT=" in refused.stderr
    assert up.pids() == []


def test_bad_settings_are_named_and_nothing_stays(up: Up, tmp_path: Path) -> None:
    settings = tmp_path / "receivers.yml"
    settings.write_text("receivers: [{slack: {channel: x}}]\n")
    refused = up.run("up", "--receivers", str(settings))
    assert refused.returncode == 1
    assert "url_file is missing" in refused.stderr
    assert "a port" in up.run("up", GPUWHY_PORT="many").stderr
    assert up.pids() == []


def test_one_that_does_not_start_is_told_and_the_others_end(up: Up) -> None:
    rules = up.root / "prometheus/rules/recording.yml"
    rules.write_text(rules.read_text().replace("sum by", "sum buy", 1))
    refused = up.run("up")
    assert refused.returncode == 1
    assert "prometheus ended" in refused.stderr
    assert up.pids() == []


def test_grafana_takes_part_where_it_is_installed(up: Up, tmp_path: Path) -> None:
    """A server of Grafana's name that answers its health check: what it is given is looked at."""
    server = tmp_path / "grafana-server"
    server.write_text(
        f"#!/bin/sh\nexec {sys.executable} -m http.server --bind $GF_SERVER_HTTP_ADDR "
        '--directory "$(dirname "$0")/www" $GF_SERVER_HTTP_PORT\n'
    )
    server.chmod(0o755)
    (tmp_path / "www/api").mkdir(parents=True)
    (tmp_path / "www/api/health").write_text("{}")
    port = free_port()
    started = up.run("up", PATH=f"{tmp_path}:{os.environ['PATH']}", GRAFANA_PORT=str(port))
    assert started.returncode == 0, started.stderr
    assert f"http://127.0.0.1:{port}/" in started.stdout
    folder = up.root / ".run/up"
    provisioned = "".join(p.read_text() for p in (folder / "grafana").rglob("*.yml"))
    assert f"http://127.0.0.1:{up.ports['PROMETHEUS_PORT']}" in provisioned
    assert f"path: {up.root}/grafana/dashboards" in provisioned
    assert len((folder / "grafana-admin-password").read_text()) >= 20
    assert "grafana" in up.run("down").stdout
