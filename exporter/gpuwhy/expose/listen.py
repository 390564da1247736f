"""The socket that is served on, opened early so that a bad address is told at once."""

from __future__ import annotations

import errno
import socket


class ListenError(Exception):
    """The address cannot be served on; the message says why and what to do."""


def split(address: str) -> tuple[str, int]:
    """Host ("" for every interface) and port of ``HOST:PORT``, ``[IPv6]:PORT`` or ``:PORT``."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def open_socket(address: str) -> socket.socket:
    """A listening socket. Raises ListenError."""
    host, port = split(address)
    try:
        if not host:
            return _every_interface(port)
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise ListenError(_message(address, port, error)) from error


def _every_interface(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, backlog=128, dualstack_ipv6=True
        )
    return socket.create_server(("", port), backlog=128)


def _message(address: str, port: int, error: OSError) -> str:
    option = "--web.listen-address"
    if error.errno == errno.EADDRINUSE:
        return (
            f"cannot listen on {address}: the port is taken, perhaps by another gpuwhy; end what "
            f"holds it (`ss -ltnp 'sport = :{port}'` shows it) or choose another with {option}"
        )
    if error.errno == errno.EACCES:
        return (
            f"cannot listen on {address}: permission denied; choose a port from 1024 on with "
            f"{option}"
        )
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return (
            f"cannot listen on {address}: this host has no such address; choose another with "
            f"{option}, such as 127.0.0.1:9877"
        )
    return f"cannot listen on {address}: {error.strerror or error}; choose another with {option}"


def url(sock: socket.socket, *, tls: bool) -> str:
    """Where a browser on this host finds the page."""
    host, port = sock.getsockname()[:2]
    if host in ("::", "0.0.0.0"):  # noqa: S104 - every interface: name the one that is always there
        host = "127.0.0.1"
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{shown}:{port}/"
