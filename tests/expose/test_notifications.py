"""Notifications without a receiver: what is kept of a webhook, and who may post one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuwhy.expose.notifications import KEPT, LONGEST, Notifications, may_post, parse
from gpuwhy.values import networks

ALERT = {
    "status": "firing",
    "labels": {"alertname": "TrainingDataStarved", "severity": "warning", "run": "job-7"},
    "annotations": {"summary": "Starved", "description": "47 % lost in tokenize"},
    "startsAt": "2026-01-01T00:00:00Z",
    "fingerprint": "abc",
}


def body(**more: Any) -> bytes:
    return json.dumps({"version": "4", "status": "firing", "alerts": [ALERT], **more}).encode()


def test_a_webhook_is_read() -> None:
    (one,) = parse(body(newInLaterVersion={"a": [1]}))
    assert (one.name, one.severity, one.run) == ("TrainingDataStarved", "warning", "job-7")
    assert (one.status, one.summary) == ("firing", "Starved")
    assert one.received.endswith("Z")


@pytest.mark.parametrize(
    "odd",
    [
        {"alerts": None},
        {"alerts": {"a": 1}},
        {"alerts": [1, None, "x"]},
        {"alerts": [{}]},
        {"alerts": [{"labels": 3, "annotations": [1]}]},
        {"alerts": [{"labels": {"alertname": {"deep": 1}}, "status": 7}]},
    ],
)
def test_what_is_odd_is_passed_over(odd: dict[str, Any]) -> None:
    parse(body(**odd))


@pytest.mark.parametrize("bad", [b"", b"[]", b"1", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_webhook_is_refused(bad: bytes) -> None:
    with pytest.raises(ValueError):
        parse(bad)


def test_texts_and_number_are_bounded() -> None:
    long = {**ALERT, "annotations": {"summary": "x" * 10_000}}
    (one,) = parse(body(alerts=[long]))
    assert len(one.summary) == LONGEST
    received = Notifications()
    for n in range(KEPT + 10):
        named = {**ALERT, "labels": {"alertname": str(n)}}
        received.add(parse(body(alerts=[named])))
    assert [one.name for one in received.latest()][:2] == [str(KEPT + 9), str(KEPT + 8)]
    assert len(received.latest()) == KEPT


def test_networks_are_read_from_an_option() -> None:
    assert networks("172.16.0.0/12, fd00::/8") == ("172.16.0.0/12", "fd00::/8")
    for bad in ("", "172.16.0.1/12", "x", "10.0.0.0/8,"):
        with pytest.raises(ValueError, match="is no network"):
            networks(bad)


@pytest.mark.parametrize(
    ("host", "allowed", "may"),
    [
        ("127.0.0.1", (), True),
        ("127.9.9.9", (), True),
        ("::1", (), True),
        ("::ffff:127.0.0.1", (), True),
        ("10.0.0.1", (), False),
        ("10.0.0.1", ("10.0.0.0/8",), True),
        ("::ffff:10.0.0.1", ("10.0.0.0/8",), True),
        ("192.168.0.1", ("10.0.0.0/8",), False),
        ("testclient", (), False),
        (None, (), False),
    ],
)
def test_who_may_post(host: str | None, allowed: tuple[str, ...], may: bool) -> None:
    assert may_post(host, allowed) is may
