"""``./run up``: the stack on this host as plain processes, without Docker and without root.

Prometheus and Alertmanager are those on PATH or Debian's, unpacked under .run. Everything listens
on loopback; GPUWHY_PORT, PROMETHEUS_PORT, ALERTMANAGER_PORT and GRAFANA_PORT choose other ports.
Grafana takes part where a grafana-server is installed; elsewhere gpuwhy's page stands in. A
dcgm-exporter that runs here already (DCGM_PORT, 9400) is scraped as well. `./run down` ends it all.
Options after `--` go to `gpuwhy serve`.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scripts.stack import dcgm, grafana, tell
from scripts.stack.layout import ADDRESS, UP, LayoutError, Ports, Stack, unwritable
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
    if already := _already():
        return _fail(already)
    try:
        defaults = {"exporter": 9877, "prometheus": 9090, "alertmanager": 9093, "dcgm": 9400}
        server = grafana.installed()
        if server is not None:
            defaults["grafana"] = 3000
        ports = dcgm.seen(Ports.from_environment(os.environ, **defaults))
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
    except OSError as error:
        stop_all(UP)
        return _fail(unwritable(error))
    except KeyboardInterrupt:
        stop_all(UP)
        return 130
    _tell(ports)
    return 0


def _already() -> str:
    """What of an earlier start is there; "" where nothing is."""
    alive = {file.stem: running(file) is not None for file in sorted(UP.glob("*.pid"))}
    if not any(alive.values()):
        return ""
    ended = [name for name, runs in alive.items() if not runs]
    if not ended:
        return "the stack is up already; ./run down ends it"
    return f"{', '.join(ended)} ended (see the logs in {UP}): ./run down, then ./run up"


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
    if found.page == alerting.PAGE:  # the compose file's
        found = replace(found, page=page)
    return alerting.render(found)


def _tell(ports: Ports) -> None:
    print(*tell.addresses(ports), sep="\n")
    if ports.grafana:
        print(
            f"Grafana       http://{ADDRESS}:{ports.grafana}/  (admin, {grafana.password_file(UP)})"
        )
    else:
        print("Grafana       is not installed: gpuwhy's page stands in")
    if ports.dcgm:
        print(f"dcgm-exporter http://{ADDRESS}:{ports.dcgm}/metrics  (was here: scraped as well)")
    print(f"Logs and data are under {UP}; ./run down ends everything.")


def _fail(message: str) -> int:
    sys.stderr.write(f"./run up: {message}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
