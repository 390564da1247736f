"""The compose file for real: built, brought up healthy, watching jobs of others, delivering an
alert, gone without residue. See ``engine`` for what stands in for Docker.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
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

    def sampled(self) -> set[str]:
        """Runs whose stacks are seen now."""
        samples = self.values("gpuwhy_training_stack_samples", "run")
        return {run for run, count in samples.items() if count > 0}

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


pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]  # images are made in the first fixture
FILES = ("docker-compose.yml", "docker-compose.no-gpu.yml")


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
        assert engine.podman("ps", "-aq").split() == []
        assert engine.podman("volume", "ls", "-q").split() == []
        assert "gpuwhy" not in engine.podman("network", "ls")


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
    for service, rights in (("exporter", ["DAC_READ_SEARCH", "SYS_PTRACE"]), ("grafana", [])):
        (told,) = json.loads(stack.engine.podman("inspect", f"gpuwhy-{service}-1"))
        assert sorted(told["EffectiveCaps"] or []) == [f"CAP_{right}" for right in rights]
        assert told["HostConfig"]["ReadonlyRootfs"] is True


def test_the_password_is_there_to_be_read(stack: Stack) -> None:
    told = stack.engine.podman("exec", "gpuwhy-grafana-1", "cat", "/run/gpuwhy/admin-password")
    assert len(told.strip()) >= 20


def test_an_alert_is_delivered_to_the_page(stack: Stack) -> None:
    page = f"http://127.0.0.1:{stack.ports['GPUWHY_PORT']}/"
    assert until(lambda: "dcgm-exporter is down" in get(page))
    assert "notification without a receiver" in stack.engine.podman("logs", "gpuwhy-exporter-1")


@pytest.mark.usefixtures("watched")
def test_jobs_of_root_another_user_and_a_container_are_seen(stack: Stack) -> None:
    until(lambda: stack.sampled() >= jobs.RUNS)
    assert stack.sampled() >= jobs.RUNS


@pytest.mark.usefixtures("watched")
def test_limits_of_a_host_job_and_of_a_container_are_read(stack: Stack) -> None:
    until(lambda: stack.quotas() == jobs.QUOTAS, 30)
    assert stack.quotas() == jobs.QUOTAS


@pytest.mark.usefixtures("watched")
def test_without_ptrace_no_stack_is_seen(stack: Stack) -> None:
    stack.again("cap_add: !override [DAC_READ_SEARCH]")
    until(lambda: stack.values("gpuwhy_source_up", "source").get("stacks") == 0, 20)
    assert not stack.sampled() & jobs.RUNS


@pytest.mark.usefixtures("watched")
def test_without_reading_everywhere_the_job_of_another_user_is_lost(stack: Stack) -> None:
    stack.again("cap_add: !override [SYS_PTRACE]")
    until(lambda: "of-root" in stack.sampled())
    time.sleep(5)
    assert "of-root" in stack.sampled()
    assert "of-another" not in stack.sampled()


@pytest.mark.usefixtures("watched")
def test_without_the_host_s_cgroups_a_limit_above_a_container_is_lost(stack: Stack) -> None:
    stack.again("cgroup: private", "volumes: !reset null")
    until(lambda: "of-a-container" in stack.sampled())
    assert "of-a-container" in stack.sampled()
    assert "of-a-container" not in stack.quotas()


@pytest.mark.usefixtures("watched")
def test_in_a_pid_namespace_of_its_own_nothing_is_seen(stack: Stack) -> None:
    stack.again("pid: !reset null")
    time.sleep(10)
    assert stack.metrics()
    assert not set(stack.values("gpuwhy_training_age_seconds", "run")) & jobs.RUNS
