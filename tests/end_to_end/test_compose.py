"""The compose file for real: built, brought up healthy, watching jobs of others, delivering an
alert, gone without residue. See ``engine`` for the images that stand in for those of a registry.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripts.stack.shorten import shorten
from tests.end_to_end import engine as engines
from tests.end_to_end import jobs
from tests.end_to_end.engine import Engine
from tests.stack.ports import free_port

ROOT = Path(__file__).parents[2]
DEADLINE_S = 90
SHORTENED = 15
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


def until(condition: Callable[[], Any], seconds: float = DEADLINE_S) -> Any:
    """The first true value, or the last."""
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def get(url: str) -> str:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
        return str(answer.read().decode())
    return ""


class Stack:
    """The stack that is up, and its ports."""

    def __init__(self, engine: Engine, folder: Path, ports: dict[str, int]) -> None:
        self.engine, self.folder, self.ports = engine, folder, ports

    def metrics(self) -> list[tuple[str, dict[str, str], float]]:
        text = get(f"http://127.0.0.1:{self.ports['GPUWHY_PORT']}/metrics")
        return [
            (name, dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value))
            for name, labels, value in SAMPLE.findall(text)
        ]

    def values(self, name: str, label: str) -> dict[str, float]:
        """The samples of a metric by one label."""
        return {labels[label]: value for n, labels, value in self.metrics() if n == name}

    def sampled(self, wanted: set[str], seconds: float = DEADLINE_S) -> set[str]:
        """The tests' own runs whose stacks were seen, until all that are wanted were."""
        seen: set[str] = set()

        def enough() -> bool:
            samples = self.values("gpuwhy_training_stack_samples", "run")
            seen.update(run for run, count in samples.items() if count > 0 and run in jobs.RUNS)
            return seen >= wanted

        until(enough, seconds)
        return seen

    def api(self, path: str) -> Any:
        text = get(f"http://127.0.0.1:{self.ports['PROMETHEUS_PORT']}/api/v1/{path}")
        return json.loads(text)["data"] if text else {}

    def quotas(self) -> dict[str, float]:
        """CPU quotas of the tests' own runs."""
        found = self.values("gpuwhy_run_cpu_quota_cores", "run")
        return {run: cores for run, cores in found.items() if run in jobs.RUNS}

    def again(self, *changes: str) -> None:
        """The exporter anew, with lines of its service changed; the rest stays."""
        file = self.folder / "changed.yml"
        file.write_text("\n    ".join(["services:\n  exporter:", *changes]))
        files = [f"--file={name}" for name in (*FILES, str(self.folder / "test.yml"), str(file))]
        self.engine.compose(*files, "up", "-d", "--no-deps", "--force-recreate", "exporter")
        until(lambda: self.metrics())

    @contextlib.contextmanager
    def beside(self, *options: str) -> Iterator[Stack]:
        """Another exporter with the rights of the first, in the job's container's group."""
        exporter = yaml.safe_load((ROOT / FILES[0]).read_text())["services"]["exporter"]
        port = free_port()
        self.engine.docker(
            *("run", "-d", "--name=beside", "--pid=host", "--cap-drop=all", "--read-only"),
            *(f"--cap-add={right}" for right in exporter["cap_add"]),
            *(f"--volume={volume}" for volume in exporter["volumes"]),
            *(f"--publish=127.0.0.1:{port}:9877", *options),
            f"--cgroup-parent=/{jobs.group_name('of-a-container')}",
            *(exporter["image"], *exporter["command"][:3]),
        )
        try:
            yield Stack(self.engine, self.folder, {**self.ports, "GPUWHY_PORT": port})
        finally:
            self.engine.docker("rm", "-f", "beside")

    def on_a_gpu_host(self, *changes: str) -> tuple[int, str]:
        """What ``up`` of a GPU host says, see ``checked``. The driver is played by a file that is
        there, the host's first process by this one."""
        played = f"environment: {{DRIVER: /etc/passwd, HOST_ROOT: /proc/{os.getpid()}/root}}"
        return self.checked(played, *changes)

    def checked(self, *changes: str) -> tuple[int, str]:
        """``up`` of the compose file by itself, as far as the check of the host's driver and
        toolkit, with lines of that changed: status, and what is told."""
        check = [f"services:\n  {CHECK}:", "network_mode: none", *changes]
        file = self.folder / "check.yml"
        file.write_text("\n    ".join(check) + "\n  exporter:\n    deploy: !reset null\n")
        files = [f"--file={name}" for name in (FILES[0], str(self.folder / "test.yml"), str(file))]
        told = self.engine.compose(*files, "up", "-d", "exporter", check=False)
        (found,) = json.loads(self.engine.docker("inspect", f"gpuwhy-{CHECK}-1"))
        log = self.engine.docker("logs", f"gpuwhy-{CHECK}-1")
        self.engine.docker("rm", "--volumes", f"gpuwhy-{CHECK}-1")
        return int(found["State"]["ExitCode"]), " ".join((told + log).split())


pytestmark = pytest.mark.timeout(600)  # images are made in the first fixture
FILES = ("docker-compose.yml", "docker-compose.no-gpu.yml")
CHECK = "needs-nvidia-driver-and-container-toolkit"
CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE = 2, 19  # linux/capability.h
RUNNING: dict[str, list[int]] = {
    "exporter": [CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE],
    "prometheus": [],
    "alertmanager": [],
    "grafana": [],
}
"""What each may do, at most and in effect."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack, up and healthy; afterwards down, with nothing left."""
    reason = engines.unavailable()
    if reason:
        pytest.skip(f"no container engine: {reason}")
    folder = tmp_path_factory.mktemp("engine")
    names = ("GPUWHY_PORT", "PROMETHEUS_PORT", "ALERTMANAGER_PORT", "GRAFANA_PORT")
    ports = {name: free_port() for name in names}
    override = quick(folder)
    variables = {name: str(port) for name, port in ports.items()}
    variables["COMPOSE_FILE"] = ":".join((*FILES, str(override)))
    with engines.engine(variables) as engine:
        engines.make_images(engine)
        engine.compose("up", "-d", "--wait", "--build")
        yield Stack(engine, folder, ports)
        engine.compose("down", "-v", "-t", "3")
        assert engine.docker("ps", "-aq").split() == []
        assert engine.docker("volume", "ls", "-q").split() == []
        assert "gpuwhy" not in engine.docker("network", "ls")


def quick(folder: Path) -> Path:
    """An override: the same rules with shorter durations, and a dcgm-exporter that is not there."""
    rules, targets = folder / "alerts", folder / "dcgm.yml"
    rules.mkdir()
    for path in (ROOT / "alerting/rules").glob("*.yml"):
        (rules / path.name).write_text(shorten(path.read_text(), SHORTENED))
    alertmanager = folder / "alertmanager.yml"
    alertmanager.write_text(shorten((ROOT / "alerting/alertmanager.yml").read_text(), SHORTENED))
    targets.write_text("- targets: [dcgm-exporter:9400]\n  labels: {host: localhost}\n")
    mounts = {
        "prometheus": {
            str(rules): "/etc/prometheus/alerts",
            str(targets): "/etc/prometheus/targets/dcgm.yml",
        },
        "alertmanager": {str(alertmanager): "/etc/alertmanager/alertmanager.yml"},
    }
    services = {
        name: {"volumes": [f"{source}:{target}:ro" for source, target in of_service.items()]}
        for name, of_service in mounts.items()
    }
    file = folder / "test.yml"
    file.write_text(json.dumps({"services": services}))
    return file


@pytest.fixture(scope="module")
def watched(stack: Stack) -> Iterator[None]:
    """Jobs of others are running."""
    with jobs.jobs(stack.engine):
        yield


def test_prometheus_finds_the_exporter_by_name(stack: Stack) -> None:
    def targets() -> dict[str, str]:
        active = stack.api("targets").get("activeTargets", [])
        return {target["labels"]["instance"]: target["health"] for target in active}

    wanted = dict.fromkeys(("exporter:9877", "alertmanager:9093", "localhost:9090"), "up")
    wanted["dcgm-exporter:9400"] = "down"
    until(lambda: targets() == wanted)
    assert targets() == wanted
    groups = stack.api("rules")["groups"]
    assert [r["lastError"] for g in groups for r in g["rules"] if r.get("lastError")] == []


def test_everything_runs_with_the_rights_that_are_written(stack: Stack) -> None:
    for service, rights in RUNNING.items():
        (told,) = json.loads(stack.engine.docker("inspect", f"gpuwhy-{service}-1"))
        assert told["HostConfig"]["ReadonlyRootfs"] is True
        status = Path(f"/proc/{told['State']['Pid']}/status").read_text()
        assert "NoNewPrivs:\t1" in status
        for of in ("CapEff", "CapBnd"):
            (held,) = re.findall(rf"^{of}:\s*(\w+)", status, re.MULTILINE)
            assert int(held, 16) == sum(1 << right for right in rights), service


def test_the_password_is_there_to_be_read(stack: Stack) -> None:
    told = stack.engine.docker("exec", "gpuwhy-grafana-1", "cat", "/run/gpuwhy/admin-password")
    assert len(told.strip()) >= 20


def test_an_alert_is_delivered_to_the_page(stack: Stack) -> None:
    page = f"http://127.0.0.1:{stack.ports['GPUWHY_PORT']}/"
    assert until(lambda: "dcgm-exporter is down" in get(page))
    assert "notification without a receiver" in stack.engine.docker("logs", "gpuwhy-exporter-1")


@pytest.mark.usefixtures("watched")
def test_jobs_of_root_another_user_and_a_container_are_seen(stack: Stack) -> None:
    assert stack.sampled(jobs.RUNS) == jobs.RUNS


@pytest.mark.usefixtures("watched")
def test_limits_of_a_host_job_and_of_a_container_are_read(stack: Stack) -> None:
    until(lambda: stack.quotas() == jobs.QUOTAS, 30)
    assert stack.quotas() == jobs.QUOTAS


@pytest.mark.usefixtures("watched")
def test_without_ptrace_no_stack_is_seen(stack: Stack) -> None:
    stack.again("cap_add: !override [DAC_READ_SEARCH]")
    until(lambda: stack.values("gpuwhy_source_up", "source").get("stacks") == 0, 20)
    assert stack.sampled(jobs.RUNS, 3) == set()


@pytest.mark.usefixtures("watched")
def test_as_another_user_than_root_no_right_is_in_effect(stack: Stack) -> None:
    """Docker gives the capabilities of `cap_add` to root alone."""
    stack.again('user: "65534:65534"')
    until(lambda: stack.values("gpuwhy_source_up", "source").get("stacks") == 0, 20)
    assert stack.sampled(jobs.RUNS, 3) == set()


@pytest.mark.usefixtures("watched")
def test_without_reading_everywhere_the_job_of_another_user_is_lost(stack: Stack) -> None:
    stack.again("cap_add: !override [SYS_PTRACE]")
    assert "of-root" in stack.sampled({"of-root"})
    assert "of-another" not in stack.sampled({"of-another"}, 5)


@pytest.mark.usefixtures("watched")
def test_without_the_host_s_cgroups_a_limit_above_a_container_is_lost(stack: Stack) -> None:
    stack.again("volumes: !reset null")
    assert "of-a-container" in stack.sampled({"of-a-container"})
    assert until(lambda: "of-root" in stack.quotas(), 30)
    assert "of-a-container" not in stack.quotas()


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize(("namespace", "seen"), [("host", True), ("private", False)])
def test_in_a_cgroup_namespace_of_its_own_a_limit_above_a_neighbour_is_lost(
    stack: Stack, namespace: str, seen: bool
) -> None:
    """Beside the exporter of Compose, which is in the host's."""
    with stack.beside(f"--cgroupns={namespace}") as other:
        assert "of-a-container" in other.sampled({"of-a-container"})
        assert until(lambda: "of-root" in other.quotas(), 30)
        until(lambda: ("of-a-container" in other.quotas()) == seen, 20)
        assert ("of-a-container" in other.quotas()) == seen


@pytest.mark.usefixtures("watched")
def test_in_a_pid_namespace_of_its_own_nothing_is_seen(stack: Stack) -> None:
    stack.again("pid: !reset null")
    assert until(lambda: stack.values("gpuwhy_source_up", "source").get("processes") == 0, 30)
    assert not set(stack.values("gpuwhy_training_age_seconds", "run")) & jobs.RUNS


@pytest.mark.skipif(shutil.which("nvidia-ctk") is not None, reason="the toolkit is installed here")
def test_a_gpu_host_without_the_toolkit_is_told_what_to_install(stack: Stack) -> None:
    status, told = stack.on_a_gpu_host()
    assert status == 1
    assert f'service "{CHECK}" didn\'t complete successfully: exit 1' in told
    assert "install the NVIDIA Container Toolkit" in told
    for right in ("cap_add: !reset null", "pid: !reset null"):
        assert stack.on_a_gpu_host(right)[0] == 0, right  # the host's files are out of its sight


@pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="this host has a driver")
def test_a_host_without_a_driver_is_told_of_the_overlay(stack: Stack) -> None:
    status, told = stack.checked()
    assert status == 1
    assert f'service "{CHECK}" didn\'t complete successfully: exit 1' in told
    assert "docker compose -f docker-compose.yml -f docker-compose.no-gpu.yml up -d" in told
