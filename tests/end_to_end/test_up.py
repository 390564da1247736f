"""``./run up`` and ``./run down``: the stack as plain processes beside a live training job."""

from __future__ import annotations

import contextlib
import http.server
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.stack import processes
from tests.end_to_end.clones import Up, hasten, until
from tests.end_to_end.jobs import job
from tests.stack.ports import free_port

PUBLIC = Path(__file__).parents[3] / "shared/public-data/dcgm-exporter"
SERVICES = ["alertmanager", "exporter", "prometheus"]
SHORTENED = 30


def test_up_watches_a_live_job_and_down_ends_it_all(up: Up, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    with job("mine", tmp_path / "job", Path(sys.executable)) as pid:
        started = up.run("up")
        assert started.returncode == 0, started.stderr
        assert "is not installed: gpuwhy's page stands in" in started.stdout
        assert up.url("GPUWHY_PORT", "/") in started.stdout
        assert until(lambda: up.query(f'gpuwhy_process_info{{pid="{pid}",run="mine",role="rank"}}'))
        assert until(lambda: len(up.query("up == 1")) == 3)
        phases = 'gpuwhy_training_phase_ratio{run="mine"}'
        assert until(lambda: {r["metric"]["phase"] for r in up.query(phases)} >= {"backward"})
    assert "gpuwhy" in up.get("GPUWHY_PORT", "/")
    told = re.findall(r"http://\S+", started.stdout)
    assert len(told) == 3
    assert [url for url in told if not processes.answers(url)] == []
    rules = [rule for group in up.api("rules")["groups"] for rule in group["rules"]]
    assert [rule["lastError"] for rule in rules if rule.get("lastError")] == []
    assert until(lambda: len(up.api("alertmanagers")["activeAlertmanagers"]) == 1)

    again = up.run("up")
    assert again.returncode == 1
    assert "up already" in again.stderr

    assert len([pid for pid in up.pids().values() if pid]) == 3
    ended = up.run("down")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert sorted(ended.stdout.removeprefix("ended: ").strip().split(", ")) == SERVICES
    assert up.pids() == {}
    assert up.run("down").stdout == "nothing was up\n"


@contextlib.contextmanager
def serving(text: bytes) -> Iterator[int]:
    """The text at every path, of the type that exporters say; the port."""

    class Serving(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Serving)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="no real outputs of dcgm-exporter here")
def test_a_dcgm_exporter_is_scraped_and_its_loss_is_told(up: Up) -> None:
    """A real output, served as it is; then it is gone, and the page shows the notification."""
    real = (PUBLIC / "l4.prom").read_bytes()
    hasten(up.root, SHORTENED)
    with serving(real) as port:
        started = up.run("up", DCGM_PORT=str(port))
        assert started.returncode == 0, started.stderr
        assert f"http://127.0.0.1:{port}/metrics" in started.stdout
        uuids = set(re.findall(r'DCGM_FI_DEV_GPU_TEMP\{.*UUID="([^"]+)"', real.decode()))
        until(lambda: up.query("gpu:temperature:celsius"))
        assert {r["metric"]["uuid"] for r in up.query("gpu:temperature:celsius")} == uuids
    assert until(lambda: "dcgm-exporter is down" in up.get("GPUWHY_PORT", "/"), 90)
    log = (up.root / ".run/up/exporter.log").read_text()
    assert "notification without a receiver" in log


def test_what_gives_no_metrics_is_no_dcgm_exporter(up: Up) -> None:
    with serving(b"something else\n") as port:
        started = up.run("up", DCGM_PORT=str(port))
    assert started.returncode == 0, started.stderr
    assert "dcgm-exporter" not in started.stdout
    assert not (up.root / ".run/up/prometheus/targets/dcgm.yml").exists()


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
    assert up.url("PROMETHEUS_PORT", "") in provisioned
    assert f"path: {up.root}/grafana/dashboards" in provisioned
    assert len((folder / "grafana-admin-password").read_text()) >= 20
    assert "grafana" in up.run("down").stdout


def test_a_signal_while_it_comes_up_ends_what_it_started(up: Up, tmp_path: Path) -> None:
    """A Prometheus that never becomes ready keeps it waiting."""
    slow = tmp_path / "prometheus"
    slow.write_text("#!/bin/sh\n[ $1 = --version ] && echo version 3.5.0 && exit\nexec sleep 100\n")
    slow.chmod(0o755)
    environment = {**os.environ, **up.ports, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    starting = subprocess.Popen(["sh", "run", "up"], cwd=up.root, env=environment)
    assert until(lambda: sorted(name for name, pid in up.pids().items() if pid) == SERVICES)
    starting.send_signal(signal.SIGTERM)
    assert starting.wait(60) == 130
    assert up.pids() == {}
