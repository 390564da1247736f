"""The address: what can be listened on, and what is said where it cannot."""

from __future__ import annotations

import socket

import pytest

from gpuwhy.expose.listen import ListenError, open_socket, split, url


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("127.0.0.1:9877", ("127.0.0.1", 9877)),
        (":9877", ("", 9877)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_addresses(address: str, parts: tuple[str, int]) -> None:
    assert split(address) == parts


def test_every_interface_answers_on_ipv4() -> None:
    with open_socket(":0") as sock:
        port = sock.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        assert url(sock, tls=True) == f"https://127.0.0.1:{port}/"


def test_a_port_that_is_taken_is_told_with_the_remedy() -> None:
    with open_socket("127.0.0.1:0") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError) as error:
            open_socket(f"127.0.0.1:{port}")
    assert "is taken" in str(error.value)
    assert "--web.listen-address" in str(error.value) and str(port) in str(error.value)


@pytest.mark.parametrize("address", ["192.0.2.1:0", "no-such-host.invalid:9877"])
def test_an_address_of_another_host_is_told(address: str) -> None:
    with pytest.raises(ListenError, match="no such address"):
        open_socket(address)
