"""Grafana as a plain process, where one is installed: provisioned with our dashboards."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from scripts.stack.layout import ADDRESS, Ports
from scripts.stack.packages import ROOT
from scripts.stack.processes import Service

SERVER = "grafana-server"
PROVISIONING = ROOT / "grafana/provisioning"
IN_COMPOSE = {"prometheus": "http://prometheus:9090", "dashboards": "/etc/grafana/dashboards"}
"""What the provisioning files name, as they are mounted in the compose file."""


def installed() -> Path | None:
    """The server, if there is one on PATH."""
    found = shutil.which(SERVER)
    return Path(found) if found else None


def password_file(folder: Path) -> Path:
    """Where the admin's password is: made at random once, readable for this user alone."""
    return folder / "grafana-admin-password"


def service(server: Path, folder: Path, ports: Ports) -> Service:
    """The service; its configuration is written anew, its data and password stay."""
    _provision(folder / "grafana/provisioning", ports)
    password = password_file(folder)
    if not password.is_file():
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(18))
    home = Path(os.environ.get("GF_PATHS_HOME", "/usr/share/grafana"))
    settings = {
        "GF_SERVER_HTTP_ADDR": ADDRESS,
        "GF_SERVER_HTTP_PORT": str(ports.grafana),
        "GF_PATHS_DATA": str(folder / "data/grafana"),
        "GF_PATHS_LOGS": str(folder / "data/grafana/log"),
        "GF_PATHS_PROVISIONING": str(folder / "grafana/provisioning"),
        "GF_SECURITY_ADMIN_PASSWORD__FILE": str(password),
        "GF_AUTH_ANONYMOUS_ENABLED": "false",
        "GF_ANALYTICS_REPORTING_ENABLED": "false",
        "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH": str(ROOT / "grafana/dashboards/why.json"),
    }
    ready = f"http://{ADDRESS}:{ports.grafana}/api/health"
    command = [str(server), f"--homepath={home}"]
    return Service("grafana", command, ready, folder, folder, settings)


def _provision(target: Path, ports: Ports) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(PROVISIONING, target)
    here = {
        "prometheus": f"http://{ADDRESS}:{ports.prometheus}",
        "dashboards": str(ROOT / "grafana/dashboards"),
    }
    for path in target.rglob("*.yml"):
        text = path.read_text()
        for name, place in IN_COMPOSE.items():
            text = text.replace(place, here[name])
        path.write_text(text)
