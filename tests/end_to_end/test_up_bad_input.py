"""``./run up`` where something is wrong: a message with the remedy, and nothing stays."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from scripts.stack.receiver import Receiver
from tests.end_to_end.clones import Up, clone, hasten, until

ALONE = ("unshare", "--net")
"""A machine without a network: not even loopback is up."""
SHORTENED = 30


def can(*command: str) -> bool:
    try:
        return subprocess.run([*command, "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def test_a_taken_port_is_named_and_nothing_stays(up: Up) -> None:
    with socket.create_server(("127.0.0.1", int(up.ports["PROMETHEUS_PORT"]))):
        refused = up.run("up")
    assert refused.returncode == 1
    assert f"port {up.ports['PROMETHEUS_PORT']} is taken" in refused.stderr
    assert "PROMETHEUS_PORT=" in refused.stderr
    assert up.pids() == {}


def test_bad_settings_are_named_and_nothing_stays(up: Up, tmp_path: Path) -> None:
    settings = tmp_path / "receivers.yml"
    settings.write_text("receivers: [{slack: {channel: x}}]\n")
    refused = up.run("up", "--receivers", str(settings))
    assert refused.returncode == 1
    assert "url_file is missing" in refused.stderr
    assert "a port" in up.run("up", GPUWHY_PORT="many").stderr
    assert up.pids() == {}


def test_one_that_does_not_start_is_told_and_the_others_end(up: Up) -> None:
    rules = up.root / "prometheus/rules/recording.yml"
    rules.write_text(rules.read_text().replace("sum by", "sum buy", 1))
    refused = up.run("up")
    assert refused.returncode == 1
    assert "prometheus ended" in refused.stderr
    assert up.pids() == {}


@pytest.mark.skipif(not can(*ALONE), reason="no namespace without a network can be made here")
def test_without_a_network_the_remedy_is_named(tmp_path: Path) -> None:
    for made, remedy in (
        (("requirements-none",), "dependencies could not be fetched: look at the network"),
        ((".run/venv", ".venv"), "Look at the network and the space on this disk, or put"),
    ):
        up = Up(clone(tmp_path / remedy[:4], made=made))
        path = without_prometheus(tmp_path / "bin")
        refused = up.run("up", before=ALONE, PATH=path, PIP_RETRIES="0")
        assert refused.returncode == 1
        assert remedy in refused.stderr
        assert up.pids() == {}


def without_prometheus(folder: Path) -> str:
    """A PATH with all of this one's programs but those of the stack."""
    folder.mkdir(exist_ok=True)
    for place in os.get_exec_path():
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / program.name
            if "prometheus" not in program.name and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


@pytest.mark.skipif(not can("unshare", "--mount"), reason="nothing can be mounted here")
@pytest.mark.parametrize(
    ("options", "told"),
    [("size=2m", "2 MB are left on the disk"), ("ro", "Read-only file system")],
)
def test_a_disk_that_takes_nothing_is_told_with_the_remedy(up: Up, options: str, told: str) -> None:
    (up.root / ".run/up").mkdir()
    mount = f'mount -t tmpfs -o {options} none .run/up && exec "$@"'
    refused = up.run("up", before=("unshare", "--mount", "sh", "-c", mount, "mount"))
    assert refused.returncode == 1
    assert told in refused.stderr
    assert "df -h" in refused.stderr


@contextmanager
def refusing() -> Iterator[str]:
    """A receiver that answers 400; its URL."""

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_error(400)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def silent() -> Iterator[str]:
    """A receiver that takes what it is sent and never answers; its URL."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def test_receivers_that_fail_are_told_to_those_that_do_not(up: Up, tmp_path: Path) -> None:
    """And to the page, which is there even where nobody else can be reached."""
    hasten(up.root, SHORTENED)
    rules = up.root / "alerting/rules/monitor.yml"
    rules.write_text(rules.read_text().replace('up{job="gpuwhy"} == 0', 'up{job="gpuwhy"} == 1'))
    good = Receiver(shows=False)
    settings = tmp_path / "receivers.yml"
    with refusing() as bad, silent() as never:
        urls = (bad, never, good.url)
        listed = [{"webhook": {"url": url}} for url in urls]
        settings.write_text(yaml.safe_dump({"receivers": listed}))
        started = up.run("up", "--receivers", str(settings))
        assert started.returncode == 0, started.stderr
        failing = "webhook messages fail"
        until(lambda: failing in "".join(alert.text for alert in good.arrived()), 120)
        until(lambda: failing in up.get("GPUWHY_PORT", "/"), 30)
    names = {alert.labels["alertname"] for alert in good.arrived()}
    assert names >= {"GpuwhyDown", "NotificationsFailing"}
    assert failing in up.get("GPUWHY_PORT", "/")
    good.close()


def test_the_exporter_goes_on_without_the_others(up: Up) -> None:
    assert up.run("up").returncode == 0
    pids = up.pids()
    for name in ("prometheus", "alertmanager"):
        pid = pids[name]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    assert until(lambda: sorted(n for n, pid in up.pids().items() if pid) == ["exporter"])
    assert "gpuwhy_build_info" in up.get("GPUWHY_PORT", "/metrics")
    again = up.run("up")
    assert again.returncode == 1
    assert "alertmanager, prometheus ended" in again.stderr
    assert "./run down" in again.stderr
