"""The environment of a job must not make gpuwhy call other hosts."""

from __future__ import annotations

import socket

import pytest

from gpuwhy.observe.nccl_ras_client import RasError, is_here, query


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", socket.gethostname()])
def test_this_host(host: str) -> None:
    assert is_here(host)


@pytest.mark.parametrize("host", ["192.0.2.1", "example.org", "2001:db8::1", "", "127.0.0.1 x"])
def test_another_host_is_neither_looked_up_nor_asked(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a connection was begun")

    monkeypatch.setattr(socket, "create_connection", never)
    monkeypatch.setattr(socket, "getaddrinfo", never)
    with pytest.raises(RasError, match="not asked"):
        query((host, 80), 1.0)
