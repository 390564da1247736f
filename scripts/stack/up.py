"""``./run up``: the stack on this host as plain processes, without Docker and without root.

Prometheus and Alertmanager are those on PATH or Debian's, unpacked under .run. Everything listens
on loopback; GPUWHY_PORT, PROMETHEUS_PORT, ALERTMANAGER_PORT and GRAFANA_PORT choose other ports.
Grafana takes part where a grafana-server is installed; elsewhere gpuwhy's page stands in. `./run
down` ends it. Options after `--` go to `gpuwhy serve`.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.stack import grafana
from scripts.stack.layout import ADDRESS, UP, LayoutError, Ports, Stack
from scripts.stack.packages import PackageError
from scripts.stack.processes import (
    ProcessError,
    ended_by_signals,
    running,
    start,
    stop_all,
    wait_ready,
)

from gpuwhy.expose import alerting


def main(arguments: Sequence[str]) -> int:
    """The command; its exit status: 0 all is up, 1 it is not, 2 bad usage."""
    parsed = _parser().parse_args(arguments)
    with ended_by_signals():
        return _up(parsed)


def _up(parsed: argparse.Namespace) -> int:
    if any(running(file) for file in UP.glob("*.pid")):
        return _fail("the stack is up already; ./run down ends it")
    try:
        defaults = {"exporter": 9877, "prometheus": 9090, "alertmanager": 9093}
        server = grafana.installed()
        if server is not None:
            defaults["grafana"] = 3000
        ports = Ports.from_environment(os.environ, **defaults)
        ports.check_free()
        stack = Stack(UP, ports, platform.node() or "localhost")
        stack.lay_out(_alertmanager(parsed.receivers, ports))
        services = stack.services(parsed.serve)
        if server is not None:
            services.append(grafana.service(server, UP, ports))
        for service in services:
            start(service)
        for service in services:
            wait_ready(service)
    except (LayoutError, PackageError, ProcessError, alerting.AlertingError) as error:
        stop_all(UP)
        return _fail(str(error))
    except KeyboardInterrupt:
        stop_all(UP)
        return 130
    _tell(ports)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./run up",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--receivers",
        type=Path,
        metavar="FILE",
        help="who is told, as `gpuwhy alerting render` reads it (default: gpuwhy's page)",
    )
    parser.add_argument("serve", nargs="*", help="options of `gpuwhy serve`, after --")
    return parser


def _alertmanager(receivers: Path | None, ports: Ports) -> str:
    page = f"http://{ADDRESS}:{ports.exporter}/api/v1/notifications"
    found = alerting.read(receivers) if receivers else alerting.Alerting()
    if not found.receivers:
        print("No receiver is set: notifications are on gpuwhy's page (--receivers FILE).")
    return alerting.render(
        alerting.Alerting(page, found.repeat, found.receivers) if not receivers else found
    )


def _tell(ports: Ports) -> None:
    print(f"gpuwhy        http://{ADDRESS}:{ports.exporter}/")
    print(f"Prometheus    http://{ADDRESS}:{ports.prometheus}/alerts")
    print(f"Alertmanager  http://{ADDRESS}:{ports.alertmanager}/")
    if ports.grafana:
        print(
            f"Grafana       http://{ADDRESS}:{ports.grafana}/  (admin, {grafana.password_file(UP)})"
        )
    else:
        print("Grafana       is not installed: gpuwhy's page stands in")
    print(f"Logs and data are under {UP}; ./run down ends everything.")


def _fail(message: str) -> int:
    sys.stderr.write(f"./run up: {message}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
