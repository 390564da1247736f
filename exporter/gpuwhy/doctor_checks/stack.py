"""Checks of what the exporter's stack needs: containers, ports, disk."""

from __future__ import annotations

import json
from pathlib import Path

from gpuwhy.doctor_checks.check import (
    Check,
    Result,
    degraded,
    failed,
    not_applicable,
    ok,
    parts_of,
)
from gpuwhy.doctor_checks.host import Host

PORTS = {9877: "gpuwhy", 9090: "Prometheus", 9093: "Alertmanager", 3000: "Grafana"}
OLDEST_COMPOSE = (2, 24)  # an overlay file may reset a list of devices from here on
WANTED_BYTES = 2 << 30
LEAST_BYTES = 100 << 20


def docker(host: Host) -> Result:
    """An engine that answers us."""
    if host.which("docker") is None:
        return not_applicable("no docker; ./run up needs none")
    version = host.tool(["docker", "version", "--format", "{{.Server.Version}}"])
    if not version:
        return degraded(
            "docker is installed, its engine does not answer",
            "docker compose up",
            "systemctl start docker; as an ordinary user: join the group docker, or use sudo",
        )
    return ok(version)


def compose(host: Host) -> Result:
    """Compose, recent enough."""
    if host.which("docker") is None:
        return not_applicable("no docker")
    version = host.tool(["docker", "compose", "version", "--short"])
    if not version:
        return degraded("no docker compose", "docker compose up", "install docker-compose-plugin")
    if parts_of(version)[:2] < OLDEST_COMPOSE:
        return degraded(version, "docker compose up", "install docker-compose-plugin 2.24 or newer")
    return ok(version)


def container_runtime(host: Host) -> Result:
    """NVIDIA's runtime, set up in the container engine."""
    if host.which("docker") is None and host.which("podman") is None:
        return not_applicable("no container engine")
    if not host.gpus() and host.read("/proc/driver/nvidia/version") is None:
        return not_applicable("no driver")
    lost = "GPUs in containers: the exporter's and dcgm-exporter's"
    if host.which("nvidia-ctk") is None and host.which("nvidia-container-runtime") is None:
        return failed(
            "the NVIDIA container toolkit is not installed",
            lost,
            "install nvidia-container-toolkit; sudo nvidia-ctk runtime configure "
            "--runtime=docker; sudo systemctl restart docker",
        )
    specifications = [*host.glob("/etc/cdi", "*.y*ml"), *host.glob("/var/run/cdi", "*.y*ml")]
    if _docker_knows(host) or specifications:
        return ok("runtime" if _docker_knows(host) else "CDI")
    return failed(
        "the toolkit is installed, the engine is not set up for it",
        lost,
        "sudo nvidia-ctk runtime configure --runtime=docker; sudo systemctl restart docker",
    )


def ports(host: Host) -> Result:
    """The ports that the stack listens on."""
    taken = [f"{port} ({name})" for port, name in PORTS.items() if not host.port_free(port)]
    if not taken:
        return ok(", ".join(map(str, PORTS)))
    return degraded(
        f"taken: {', '.join(taken)}",
        "nothing if these servers are yours; else what should listen there",
        "ss -ltnp tells who; --web.listen-address, or the port variables of the compose file",
    )


def disk(host: Host) -> Result:
    """Room for recordings and for what Prometheus keeps."""
    free = host.free_bytes(host.path(str(Path.cwd())) if host.root != Path("/") else Path.cwd())
    found = f"{free / (1 << 30):.1f} GiB free here"
    if free < LEAST_BYTES:
        return failed(found, "recordings and Prometheus' data", "free some space: df -h, du -sh *")
    if free < WANTED_BYTES:
        return degraded(found, "Prometheus' retention", "free some space, or shorten the retention")
    return ok(found)


def _docker_knows(host: Host) -> bool:
    try:
        runtimes = json.loads(host.read("/etc/docker/daemon.json") or "{}")["runtimes"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return False
    return isinstance(runtimes, dict) and "nvidia" in runtimes


CHECKS = (
    Check("docker", docker),
    Check("docker-compose", compose),
    Check("nvidia-container-runtime", container_runtime),
    Check("ports", ports),
    Check("disk", disk),
)
