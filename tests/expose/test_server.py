"""`gpuwhy serve` as a process of its own: addresses, signals, TLS, recordings, bad input."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.expose.samples import RECORDINGS
from tests.expose.test_web_config import FIXTURES, HASH, TLS, touch, write

DATA_SLOW = RECORDINGS / "data_slow.gpuwhy.gz"
HEALTHY = RECORDINGS / "healthy.gpuwhy.gz"
DEADLINE_S = 60.0


class Served:
    """A running exporter on a port that was free a moment ago."""

    def __init__(self, *arguments: object, scheme: str = "http") -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.process = start("--web.listen-address", f"127.0.0.1:{self.port}", *arguments)

    def get(self, path: str, **headers: str) -> str:
        context = ssl.create_default_context(cafile=str(FIXTURES / "cert.pem"))
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=10, context=context) as response:
            return response.read().decode()

    def wait(self, path: str, until: Callable[[str], bool]) -> str:
        """The answer once it is as wanted; the exporter's log where it never is."""
        give_up = time.monotonic() + DEADLINE_S
        while time.monotonic() < give_up and self.process.poll() is None:
            try:
                answer = self.get(path)
                if until(answer):
                    return answer
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.2)
        self.process.kill()
        raise AssertionError(self.process.communicate()[1])

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        log = self.process.communicate(timeout=DEADLINE_S)[1]
        return self.process.returncode, log


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gpuwhy", "serve", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def refused(*arguments: object) -> tuple[int, str]:
    process = start(*arguments)
    log = process.communicate(timeout=DEADLINE_S)[1]
    return process.returncode, log


@pytest.fixture(scope="module")
def played() -> Iterator[Served]:
    served = Served("--recording", DATA_SLOW, HEALTHY, "--loop", "--gpu-hour-price", "2.5")
    yield served
    served.process.kill()
    served.process.communicate()


def test_recordings_are_played_as_one_host_to_metrics_and_verdicts(played: Served) -> None:
    played.wait("/-/ready", lambda answer: "ready" in answer)
    metrics = played.wait("/metrics", lambda text: text.count("gpuwhy_verdict_cause_code{") == 2)
    assert "gpuwhy_recorded 1.0" in metrics
    assert "gpuwhy_gpu_hour_price 2.5" in metrics
    indices = {line.split('gpu="')[1][0] for line in metrics.splitlines() if 'gpu="' in line}
    assert indices == {"0", "1"}
    entries = json.loads(played.get("/api/v1/verdicts"))["gpus"]
    assert len({entry["run"] for entry in entries}) == 2
    assert "Recorded" in played.get("/")


def test_values_go_on_while_it_plays(played: Served) -> None:
    def second(text: str) -> float:
        line = next(li for li in text.splitlines() if li.startswith("gpuwhy_last_second"))
        return float(line.split()[1])

    first = second(played.wait("/metrics", lambda text: "\ngpuwhy_last_second" in text))
    played.wait("/metrics", lambda text: second(text) >= first + 2)


def test_the_port_taken_is_told_with_exit_status_1(played: Served) -> None:
    played.wait("/-/healthy", bool)
    status, log = refused("--web.listen-address", f"127.0.0.1:{played.port}")
    assert status == 1
    assert "is taken" in log and "--web.listen-address" in log
    assert "Traceback" not in log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(number: int) -> None:
    served = Served("--recording", HEALTHY)
    served.wait("/-/healthy", bool)
    status, log = served.end(number)
    assert status == 0
    assert "msg=ended" in log and "Traceback" not in log


def test_it_observes_this_host_and_leaves_no_process_behind() -> None:
    served = Served()
    text = served.wait("/metrics", lambda text: "\ngpuwhy_host_cpus " in text)
    assert "gpuwhy_recorded 0.0" in text
    tasks = Path(f"/proc/{served.process.pid}/task").glob("*/children")
    observers = [int(pid) for task in tasks for pid in task.read_text().split()]
    assert observers
    status, log = served.end()
    assert status == 0, log
    assert not [pid for pid in observers if Path(f"/proc/{pid}").exists()]


def test_tls_and_passwords(tmp_path: Path) -> None:
    file = write(tmp_path, TLS + f"basic_auth_users: {{ada: {HASH}}}\n")
    served = Served("--recording", HEALTHY, "--web.config.file", file, scheme="https")
    password = {"Authorization": "Basic YWRhOnNlY3JldA=="}
    give_up = time.monotonic() + DEADLINE_S
    while True:
        try:
            assert "healthy" in served.get("/-/healthy", **password)
            break
        except urllib.error.URLError:
            assert time.monotonic() < give_up and served.process.poll() is None
            time.sleep(0.2)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        served.get("/metrics")
    touch(file, TLS)
    served.wait("/metrics", lambda text: "gpuwhy_build_info" in text)
    assert served.end()[0] == 0


def test_bad_input_is_told_with_exit_status_2(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.gpuwhy.gz"
    foreign.write_bytes(b"no gzip")
    bad = write(tmp_path, "basic_auth_users: {ada: clear}")
    for arguments, said in (
        (("--recording", foreign), "is no gpuwhy recording"),
        (("--recording", tmp_path / "none.gpuwhy.gz"), "none.gpuwhy.gz"),
        (("--web.config.file", bad), "basic_auth_users.ada"),
        (("--web.config.file", tmp_path / "none.yml"), "cannot be read"),
    ):
        status, log = refused("--web.listen-address", "127.0.0.1:0", *arguments)
        assert status == 2, log
        assert said in log and "Traceback" not in log


def test_a_recording_that_breaks_off_ends_it_with_exit_status_2(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gpuwhy.gz"
    broken.write_bytes(HEALTHY.read_bytes()[:3000])
    status, log = refused("--web.listen-address", "127.0.0.1:0", "--recording", broken)
    assert status == 2, log
    assert "breaks off" in log and "Traceback" not in log
