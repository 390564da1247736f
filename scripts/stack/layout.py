"""The stack's folder and commands: what ``up`` and ``demo`` share.

Everything lives under ``.run/NAME``: configuration, data, logs, PID files. Prometheus's own
configuration is the one of the compose file; only targets and ports differ.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.stack.packages import ROOT, RUN, programs, working_folder
from scripts.stack.processes import Service, port_taken

ADDRESS = "127.0.0.1"
LEAST_BYTES = 100 << 20
Edit = Callable[[str], str]


class LayoutError(Exception):
    """The stack cannot be laid out; the message names the remedy."""


@dataclass(frozen=True)
class Ports:
    """Ports on loopback, each a variable of the environment."""

    exporter: int
    prometheus: int
    alertmanager: int
    grafana: int = 0  # 0: none is started
    dcgm: int = 0  # a dcgm-exporter that is somebody else's; 0: there is none

    @staticmethod
    def from_environment(environ: Mapping[str, str], **defaults: int) -> Ports:
        """``GPUWHY_PORT``, ``PROMETHEUS_PORT``, ...; raises LayoutError for what is no port."""
        found = {}
        for name, default in defaults.items():
            variable = VARIABLES[name]
            text = environ.get(variable) or str(default)
            if not text.isdecimal() or not 0 < int(text) < 65536:
                raise LayoutError(f"{variable}={text}: a port from 1 to 65535 is wanted")
            found[name] = int(text)
        return Ports(**found)

    def check_free(self) -> None:
        """Raises LayoutError for a port that is taken."""
        for name, variable in VARIABLES.items():
            port = 0 if name == "dcgm" else getattr(self, name)
            if port and port_taken(ADDRESS, port):
                raise LayoutError(
                    f"port {port} is taken (`ss -ltnp 'sport = :{port}'` shows by what): end that, "
                    f"or choose another with {variable}=..."
                )


def unwritable(error: OSError) -> str:
    """What to do where a file of the stack cannot be written."""
    return (
        f"{error.filename or RUN}: {error.strerror or error}. Everything is kept under {RUN}: it "
        "needs some 500 MB there (df -h), and this user must own it (ls -ld)"
    )


VARIABLES = {
    "exporter": "GPUWHY_PORT",
    "prometheus": "PROMETHEUS_PORT",
    "alertmanager": "ALERTMANAGER_PORT",
    "grafana": "GRAFANA_PORT",
    "dcgm": "DCGM_PORT",
}


def same(text: str) -> str:
    """No edit."""
    return text


@dataclass(frozen=True)
class Stack:
    """A stack under a folder. ``edit`` changes the texts of rules and configurations."""

    folder: Path
    ports: Ports
    host: str
    edit: Edit = same
    edit_prometheus: Edit = same

    def lay_out(self, alertmanager: str) -> None:
        """Write the configuration anew. Raises LayoutError where there is no room for data."""
        self._check_room()
        for name in ("prometheus", "alertmanager"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self._prometheus(self.folder / "prometheus")
        self._alertmanager(self.folder / "alertmanager", alertmanager)

    def _check_room(self) -> None:
        """A Prometheus without room ends without a word."""
        self.folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.folder).free
        if free < LEAST_BYTES:
            raise LayoutError(
                f"{free >> 20} MB are left on the disk of {self.folder}, and {LEAST_BYTES >> 20} "
                "are wanted to begin with: free some space (df -h, du -sh *)"
            )

    def _prometheus(self, folder: Path) -> None:
        (folder / "targets").mkdir(parents=True)
        configuration = (ROOT / "prometheus/prometheus.yml").read_text()
        (folder / "prometheus.yml").write_text(self.edit_prometheus(configuration))
        for source, target in (("prometheus/rules", "rules"), ("alerting/rules", "alerts")):
            (folder / target).mkdir()
            for path in (ROOT / source).glob("*.yml"):
                (folder / target / path.name).write_text(self.edit(path.read_text()))
        targets = {
            "gpuwhy": self.ports.exporter,
            "alertmanager": self.ports.alertmanager,
            "prometheus": self.ports.prometheus,
            **({"dcgm": self.ports.dcgm} if self.ports.dcgm else {}),
        }
        for name, port in targets.items():
            (folder / "targets" / f"{name}.yml").write_text(
                f"- targets: [{ADDRESS}:{port}]\n  labels: {{host: {self.host}}}\n"
            )

    def _alertmanager(self, folder: Path, configuration: str) -> None:
        shutil.copytree(ROOT / "alerting/templates", folder / "templates")
        (folder / "alertmanager.yml").write_text(self.edit(configuration))

    def services(self, serve: list[str]) -> list[Service]:
        """Exporter, Alertmanager and Prometheus, in the order in which they are started."""
        found = programs("prometheus", "alertmanager")
        return [
            self._service(
                "exporter",
                [sys.executable, "-m", "gpuwhy", "serve", *serve],
                self.ports.exporter,
                {"GPUWHY_WEB_LISTEN_ADDRESS": f"{ADDRESS}:{self.ports.exporter}"},
            ),
            self._service(
                "alertmanager",
                [
                    str(found["alertmanager"]),
                    f"--config.file={self.folder}/alertmanager/alertmanager.yml",
                    f"--storage.path={self.folder}/data/alertmanager",
                    f"--web.listen-address={ADDRESS}:{self.ports.alertmanager}",
                    "--cluster.listen-address=",
                ],
                self.ports.alertmanager,
            ),
            self._service(
                "prometheus",
                [
                    str(found["prometheus"]),
                    f"--config.file={self.folder}/prometheus/prometheus.yml",
                    f"--storage.tsdb.path={self.folder}/data/prometheus",
                    f"--web.listen-address={ADDRESS}:{self.ports.prometheus}",
                    "--storage.tsdb.retention.time=15d",
                    "--storage.tsdb.retention.size=5GB",
                ],
                self.ports.prometheus,
            ),
        ]

    def _service(
        self, name: str, command: list[str], port: int, more: Mapping[str, str] | None = None
    ) -> Service:
        environment = {"PYTHONPATH": os.pathsep.join((str(ROOT / "exporter"), str(ROOT)))}
        ready = f"http://{ADDRESS}:{port}/-/ready"
        cwd = working_folder(Path(command[0]))
        return Service(name, command, ready, self.folder, cwd, {**environment, **(more or {})})


UP = RUN / "up"
DEMO = RUN / "demo"
