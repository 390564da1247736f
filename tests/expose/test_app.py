"""The HTTP interface, asked as Prometheus, a browser and Alertmanager ask."""

from __future__ import annotations

import gzip
import json
import math
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.expose.samples import Clock, replay
from tests.expose.test_notifications import body
from tests.expose.test_web_config import HASH, write

from gpuwhy.expose import app as app_module
from gpuwhy.expose.app import make
from gpuwhy.expose.auth import Web
from gpuwhy.expose.families import wave
from gpuwhy.expose.notifications import Notifications
from gpuwhy.expose.state import State

LOOPBACK = ("127.0.0.1", 50000)


@pytest.fixture(scope="module")
def state() -> State:
    return replay("data_slow")


@pytest.fixture
def client(state: State) -> Iterator[TestClient]:
    with TestClient(make(state, Web(None), Notifications()), client=LOOPBACK) as client:
        yield client


def test_metrics_in_the_classic_format(client: TestClient) -> None:
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    assert "# TYPE gpuwhy_gpu_busy_ratio gauge" in response.text


def test_metrics_as_prometheus_3_asks(client: TestClient) -> None:
    accept = (
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
        "application/openmetrics-text;version=0.0.1;q=0.5,"
        "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
    )
    response = client.get("/metrics", headers={"Accept": accept})
    assert response.headers["content-type"].startswith("application/openmetrics-text")
    assert response.text.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("encoding", "zipped"),
    [("gzip", True), ("deflate, GZIP;q=0.5", True), ("gzip;q=0", False), ("identity", False)],
)
def test_metrics_are_compressed_when_asked(client: TestClient, encoding: str, zipped: bool) -> None:
    with client.stream("GET", "/metrics", headers={"Accept-Encoding": encoding}) as response:
        raw = b"".join(response.iter_raw())
    assert (response.headers.get("content-encoding") == "gzip") is zipped
    text = gzip.decompress(raw) if zipped else raw
    assert b"gpuwhy_gpu_busy_ratio{" in text


@pytest.mark.parametrize(
    ("timeout", "least", "most"),
    [("10", 9.0, 9.6), ("0.4", 0.1, 0.3), ("", math.inf, math.inf), ("x", math.inf, math.inf)],
)
def test_the_timeout_of_the_scrape_is_a_deadline(timeout: str, least: float, most: float) -> None:
    left = app_module._deadline(timeout) - time.monotonic()
    assert least <= left <= most
    for odd in ("nan", "-1", "0", "inf"):
        assert app_module._deadline(odd) == math.inf


def test_a_timeout_that_has_passed_leaves_families_out_and_still_answers(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "_deadline", lambda _: 0.0)
    response = client.get("/metrics")
    assert response.status_code == 200
    assert "gpuwhy_gpu_busy_ratio" not in response.text
    assert 'gpuwhy_scrape_family_failures_total{family="gpu"} 1.0' in response.text


def test_failures_of_scrapes_add_up(
    state: State, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state.view().about.failures.get("wave", 0)
    monkeypatch.setattr(wave, "collect", lambda _: 1 / 0)
    client.get("/metrics")
    text = client.get("/metrics").text
    assert f'gpuwhy_scrape_family_failures_total{{family="wave"}} {before + 2}.0' in text


def test_health_and_readiness(state: State) -> None:
    assert TestClient(make(state, Web(None), Notifications())).get("/-/ready").status_code == 200
    empty = State(clock=Clock(100.0))
    client = TestClient(make(empty, Web(None), Notifications()))
    assert client.get("/-/healthy").status_code == 200
    assert client.head("/-/healthy").status_code == 200
    assert client.get("/-/ready").status_code == 503
    empty.feed([{"t": 99.0, "kind": "source", "source": "nvml", "up": False, "why": "no driver"}])
    assert client.get("/-/ready").status_code == 200, "known to be down is an answer"


def test_verdicts_are_those_of_diagnose(state: State, client: TestClient) -> None:
    response = client.get("/api/v1/verdicts")
    assert response.json() == json.loads(json.dumps(state.verdicts(None)))
    assert response.json()["gpus"][0]["cause"] == "data"
    short = client.get("/api/v1/verdicts", params={"window": "5s"}).json()
    start, end = (datetime.fromisoformat(short["window"][k][:19]) for k in ("start", "end"))
    assert (end - start).total_seconds() == 5


@pytest.mark.parametrize("window", ["5", "x", "0s", "2h", "-5s", ""])
def test_a_bad_window_is_refused_with_a_reason(client: TestClient, window: str) -> None:
    response = client.get("/api/v1/verdicts", params={"window": window})
    assert response.status_code == 400
    assert "window" in response.json()["detail"]


def test_processes_are_listed_with_named_fields_only(state: State, client: TestClient) -> None:
    listed = client.get("/api/v1/processes").json()
    assert listed["recorded"] is True
    assert listed["processes"][0]["role"] == "rank"
    assert {p["role"] for p in listed["processes"]} >= {"rank", "worker"}
    assert all(
        {"voluntary", "read_bytes"} <= p.keys()
        for p in listed["processes"]
        if p["role"] == "worker"
    )
    table = state._facts._last["processes"][""]
    table["processes"][0]["environ"] = {"TOKEN": "x"}
    try:
        assert "environ" not in client.get("/api/v1/processes").text
    finally:
        del table["processes"][0]["environ"]


@pytest.mark.parametrize("path", ["/", "/metrics", "/nowhere", "/api/v1/verdicts"])
def test_every_response_has_the_security_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


def test_headers_of_the_web_configuration_take_part(state: State, tmp_path: Path) -> None:
    text = "http_server_config: {headers: {X-Frame-Options: sameorigin}}"
    client = TestClient(make(state, Web(write(tmp_path, text)), Notifications()))
    assert client.get("/-/healthy").headers["x-frame-options"] == "sameorigin"


def test_nothing_is_served_without_the_password(state: State, tmp_path: Path) -> None:
    web = Web(write(tmp_path, f"basic_auth_users: {{ada: {HASH}}}"))
    client = TestClient(make(state, web, Notifications()), client=("10.1.1.1", 1))
    paths = ("/", "/metrics", "/-/healthy", "/-/ready", "/api/v1/verdicts", "/api/v1/processes")
    for path in (*paths, "/static/style.css"):
        refused = client.get(path)
        assert refused.status_code == 401, path
        assert refused.headers["www-authenticate"].startswith("Basic ")
        assert client.get(path, auth=("ada", "wrong")).status_code == 401
        assert client.get(path, auth=("ada", "secret")).status_code == 200
    assert client.post("/api/v1/notifications", content=body()).status_code == 401


def test_notifications_from_this_host_are_kept_and_shown(state: State) -> None:
    received = Notifications()
    client = TestClient(make(state, Web(None), received), client=LOOPBACK)
    headers = {"Content-Type": "application/json"}
    response = client.post("/api/v1/notifications", content=body(unknown=1), headers=headers)
    assert response.status_code == 200
    assert received.latest()[0].name == "TrainingDataStarved"
    assert "TrainingDataStarved" in client.get("/").text
    assert "gpuwhy_notifications_received_total 1.0" in client.get("/metrics").text


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"[1]", "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"{}", "", 415),
        (b"x" * ((1 << 20) + 1), "application/json", 413),
        (b"{}", "application/json; charset=utf-8", 200),
    ],
)
def test_what_is_no_notification_is_refused(
    client: TestClient, content: bytes, kind: str, status: int
) -> None:
    headers = {"Content-Type": kind} if kind else {}
    response = client.post("/api/v1/notifications", content=content, headers=headers)
    assert response.status_code == status


def test_notifications_from_elsewhere_are_refused_unless_allowed(
    state: State, tmp_path: Path
) -> None:
    def post(networks: tuple[str, ...] = (), web: Web | None = None, **more: Any) -> int:
        app = make(state, web or Web(None), Notifications(), networks)
        client = TestClient(app, client=("10.1.1.1", 1))
        headers = {"Content-Type": "application/json", "X-Forwarded-For": "127.0.0.1"}
        return client.post(
            "/api/v1/notifications", content=body(), headers=headers, **more
        ).status_code

    assert post() == 403
    assert post(("10.0.0.0/8",)) == 200
    web = Web(write(tmp_path, f"basic_auth_users: {{ada: {HASH}}}"))
    assert post(web=web, auth=("ada", "secret")) == 200


def test_no_outside_documentation_is_served(client: TestClient) -> None:
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert client.get(path).status_code == 404
