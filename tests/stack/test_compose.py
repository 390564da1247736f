"""The compose files without an engine: valid, pinned, on loopback, with least rights."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripts.stack import packages

from gpuwhy import settings

ROOT = Path(__file__).parents[2]
ONE_SHOT = {"needs-nvidia-driver-and-container-toolkit", "grafana-password"}
NO_GPU = ("docker-compose.yml", "docker-compose.no-gpu.yml")


def compose(*files: str, **variables: str) -> dict[str, Any]:
    """The configuration as Docker Compose understands it."""
    tool = packages.programs("docker-compose")["docker-compose"]
    command = [str(tool), *(f"--file={name}" for name in files or NO_GPU[:1]), "config"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return dict(yaml.safe_load(done.stdout))


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    return dict(compose()["services"])


def test_both_forms_are_valid() -> None:
    assert set(compose(*NO_GPU)["services"]) == {
        "exporter",
        "prometheus",
        "alertmanager",
        "grafana",
        "grafana-password",
    }


def test_images_are_pinned(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        if "build" not in service:
            assert re.search(r":v?\d+\.\d+\.\d+", service["image"]), name


def test_everything_drops_all_rights(services: dict[str, dict[str, Any]]) -> None:
    added = {name: service.get("cap_add", []) for name, service in services.items()}
    assert {name: rights for name, rights in added.items() if rights} == {
        "exporter": ["SYS_PTRACE", "DAC_READ_SEARCH"],
        "dcgm-exporter": ["SYS_ADMIN"],
        "needs-nvidia-driver-and-container-toolkit": ["SYS_PTRACE"],
    }
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service.get("privileged") is not True
        assert service.get("read_only") or name == "dcgm-exporter"
        # Podman adds them to a read-only container by itself, Docker does not.
        assert "/tmp" in service.get("tmpfs", []) or name == "dcgm-exporter"


def test_what_is_mounted_is_read_only(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        for mount in service.get("volumes", []):
            if mount["type"] == "bind":
                assert mount.get("read_only"), (name, mount)
                inside = Path(mount["source"]).is_relative_to(ROOT)
                assert inside or mount["source"] == "/sys/fs/cgroup"
                assert Path(mount["source"]).exists(), mount


def test_options_of_the_exporter_are_variables_and_unset_by_default(
    services: dict[str, dict[str, Any]],
) -> None:
    variables = {option.variable for option in settings.OPTIONS.values()}
    given = services["exporter"]["environment"]
    assert given.keys() <= variables
    assert not any(given.values())
    priced = compose(GPUWHY_GPU_HOUR_PRICE="2.5")["services"]["exporter"]["environment"]
    assert priced["GPUWHY_GPU_HOUR_PRICE"] == "2.5"


def test_ports_are_on_loopback_unless_told_otherwise(services: dict[str, dict[str, Any]]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == 5
    assert {port["host_ip"] for port in ports} == {"127.0.0.1"}
    chosen = compose(LISTEN="10.0.0.1", PROMETHEUS_PORT="19090")["services"]["prometheus"]["ports"]
    assert [(port["host_ip"], port["published"]) for port in chosen] == [("10.0.0.1", "19090")]


def test_everything_is_watched_and_comes_back(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        if name in ONE_SHOT:
            assert service["restart"] == "no"
        else:
            assert service["restart"] == "unless-stopped"
            assert service["healthcheck"]["test"][0] == "CMD-SHELL"


def test_gpus_are_reserved_and_dcgm_collects_each_second(
    services: dict[str, dict[str, Any]],
) -> None:
    for name in ("exporter", "dcgm-exporter"):
        (device,) = services[name]["deploy"]["resources"]["reservations"]["devices"]
        assert (device["driver"], "gpu" in device["capabilities"]) == ("nvidia", True)
    assert services["dcgm-exporter"]["command"][:2] == ["-c", "1000"]
    exporter = compose(*NO_GPU)["services"]["exporter"]
    assert not exporter.get("deploy")
    assert not exporter.get("depends_on")


def test_retention_is_by_time_and_size(services: dict[str, dict[str, Any]]) -> None:
    flags = services["prometheus"]["command"]
    assert any(flag.startswith("--storage.tsdb.retention.time=") for flag in flags)
    assert any(flag.startswith("--storage.tsdb.retention.size=") for flag in flags)


def test_grafana_has_a_random_password_and_no_anonymous_user(
    services: dict[str, dict[str, Any]],
) -> None:
    environment = services["grafana"]["environment"]
    assert environment["GF_AUTH_ANONYMOUS_ENABLED"] == "false"
    assert "GF_SECURITY_ADMIN_PASSWORD" not in environment
    home = Path(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]).name
    assert (ROOT / "grafana/dashboards" / home).is_file()


def test_the_password_is_made_once(services: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    """The service's own script, in a shell: another one each time, and kept once it is there."""

    def made(name: str) -> str:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        script = services["grafana-password"]["command"][0].replace("$$", "$")
        script = script.replace("/run/gpuwhy", str(folder))
        subprocess.run(["/bin/sh", "-ec", script], check=True)
        return (folder / "admin-password").read_text()

    assert len(made("a")) >= 20
    assert made("a") == made("a") != made("b")


def check_nvidia(tmp_path: Path, *files: str) -> tuple[int, str]:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    done = subprocess.run(
        ["/bin/sh", ROOT / "exporter/container/check-nvidia.sh"],
        env={"HOST_ROOT": str(tmp_path / "root"), "DRIVER": str(tmp_path / "driver")},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout


def test_a_host_without_a_gpu_is_told_of_the_overlay(tmp_path: Path) -> None:
    status, told = check_nvidia(tmp_path)
    assert status == 1
    assert "docker-compose.no-gpu.yml" in told


def test_a_gpu_host_without_the_toolkit_is_told_what_to_install(tmp_path: Path) -> None:
    status, told = check_nvidia(tmp_path, "driver", "root/usr/bin/ls")
    assert status == 1
    assert "NVIDIA Container Toolkit" in re.sub(r"\s+", " ", told)
    assert "./run up" in told


@pytest.mark.parametrize("tool", ["usr/bin/nvidia-container-runtime", "usr/local/bin/nvidia-ctk"])
def test_a_gpu_host_with_the_toolkit_goes_on(tmp_path: Path, tool: str) -> None:
    assert check_nvidia(tmp_path, "driver", f"root/{tool}", "root/usr/bin/ls")[0] == 0


def test_a_host_out_of_sight_goes_on(tmp_path: Path) -> None:
    status, told = check_nvidia(tmp_path, "driver")
    assert status == 0
    assert "out of sight" in told
