"""A dcgm-exporter that runs on this host already: Prometheus scrapes it as well."""

from __future__ import annotations

from dataclasses import replace

from scripts.stack.layout import ADDRESS, Ports
from scripts.stack.processes import read


def seen(ports: Ports) -> Ports:
    """The ports, without that of a dcgm-exporter where none answers."""
    found = read(f"http://{ADDRESS}:{ports.dcgm}/metrics") if ports.dcgm else None
    return ports if b"\nDCGM_FI_" in (found or b"") else replace(ports, dcgm=0)
