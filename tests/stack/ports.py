"""Ports for the processes of a test."""

from __future__ import annotations

import random
import socket

_PORTS = range(10_000, 32_768)
"""Below those that the kernel gives to connections (``ip_local_port_range``): nobody takes one of
them by chance before the process listens there."""


def free_port() -> int:
    """A port of loopback that nothing listens on."""
    for port in random.sample(_PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("a hundred ports are taken")
