"""Where what is up can be looked at, as the commands print it.

Debian builds Prometheus and Alertmanager without their web interfaces: then the address of the
same in JSON is told, and gpuwhy's page shows the notifications.
"""

from __future__ import annotations

from scripts.stack.layout import ADDRESS, Ports
from scripts.stack.processes import read

WITHOUT = "  (JSON: this build has no web interface)"


def addresses(ports: Ports) -> list[str]:
    """A line for each that is up."""
    return [
        f"gpuwhy        http://{ADDRESS}:{ports.exporter}/",
        f"Prometheus    {_place(ports.prometheus, '/alerts', '/api/v1/alerts')}",
        f"Alertmanager  {_place(ports.alertmanager, '/', '/api/v2/alerts')}",
    ]


def _place(port: int, page: str, api: str) -> str:
    base = f"http://{ADDRESS}:{port}"
    return base + page if _is_application(base + page) else base + api + WITHOUT


def _is_application(url: str) -> bool:
    """Whether a page with a program in it is there: Debian's Alertmanager has a page that says
    that there is none."""
    return b"<script" in (read(url) or b"")
