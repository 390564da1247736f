"""Flame graphs over HTTP: only ranks in sight, only whoever may, of a real process."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.expose.samples import Clock
from tests.expose.test_server import refused

from gpuwhy.expose import flame
from gpuwhy.expose.actions import HEADER, Actions, RefusedError
from gpuwhy.expose.app import make
from gpuwhy.expose.auth import Web
from gpuwhy.expose.notifications import Notifications
from gpuwhy.expose.state import State
from gpuwhy.observe import pyspy

TOKEN = "0123456789abcdef"
EVIL = "<script>alert(1)</script>"
JOB = f"""
import time
def inner():
    time.sleep(0.01)
def outer():
    while True:
        evil()
evil = type(inner)(inner.__code__.replace(co_name={EVIL!r}, co_qualname={EVIL!r})
                   if hasattr(inner.__code__, "co_qualname")
                   else inner.__code__.replace(co_name={EVIL!r}), globals())
print("ready", flush=True)
outer()
"""
NOW = 1_000_000.0


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The PID of a real Python process, in whose stack a function has a name that is markup."""
    script = tmp_path_factory.mktemp("job") / "train.py"
    script.write_text(JOB)
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    yield process.pid
    process.kill()
    process.communicate()


def state_of(pid: int, *, recorded: bool = False) -> State:
    state = State(recorded=recorded, clock=Clock(NOW))
    table = [{"pid": pid, "role": "rank", "run": "job"}, {"pid": 1, "role": "launcher"}]
    state.feed([{"t": NOW, "kind": "processes", "processes": table}])
    state.feed([{"t": NOW, "kind": "source", "source": "processes", "up": True}])
    return state


@pytest.fixture
def actions(tmp_path: Path) -> Actions:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    return Actions(path)


def client_of(state: State, actions: Actions | None) -> TestClient:
    return TestClient(make(state, Web(None), Notifications(), actions=actions))


def ask(client: TestClient, token: str = TOKEN, **body: Any) -> Any:
    return client.post("/api/v1/profile", json=body, headers={HEADER: token})


def needs_pyspy() -> None:
    try:
        pyspy.executable()
    except pyspy.PySpyError as error:
        pytest.skip(str(error))


def test_a_real_process_is_sampled_and_then_there_is_a_pause(job: int, actions: Actions) -> None:
    needs_pyspy()
    client = client_of(state_of(job), actions)
    response = ask(client, pid=job, seconds=1)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/plain")
    assert "outer" in response.text and EVIL in response.text
    *_, line = response.text.strip().splitlines()
    assert int(line.rsplit(" ", 1)[1]) > 0
    again = ask(client, pid=job, seconds=1)
    assert again.status_code == 429 and int(again.headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"pid": 1}, 404),
        ({"pid": "1"}, 400),
        ({"pid": True}, 400),
        ({"pid": 4194304}, 404),
        ({}, 400),
        ({"pid": 7, "seconds": 0}, 400),
        ({"pid": 7, "seconds": 61}, 400),
        ({"pid": 7, "seconds": "10"}, 400),
        ({"pid": 7, "seconds": float("1e999")}, 400),
    ],
)
def test_only_ranks_in_sight_and_sensible_times(
    actions: Actions, body: dict[str, Any], status: int
) -> None:
    client = client_of(state_of(7), actions)
    text = str(body).replace("'", '"').replace("True", "true").replace("inf", "1e999")
    headers = {HEADER: TOKEN, "Content-Type": "application/json"}
    response = client.post("/api/v1/profile", content=text, headers=headers)
    assert response.status_code == status, response.text
    assert ask(client, pid=1).status_code == 404, "a refused request holds nobody up"


def test_odd_bodies_are_refused(actions: Actions) -> None:
    client = client_of(state_of(7), actions)
    headers = {HEADER: TOKEN, "Content-Type": "application/json"}
    for body, status in ((b"[", 400), (b"[1]", 400), (b"null", 400), (b"x" * 2000, 413)):
        response = client.post("/api/v1/profile", content=body, headers=headers)
        assert response.status_code == status


def test_nobody_without_the_token_and_nothing_where_it_is_off(actions: Actions) -> None:
    assert ask(client_of(state_of(7), actions), token="wrong", pid=7).status_code == 403
    assert ask(client_of(state_of(7), None), pid=7).status_code == 404
    client = client_of(state_of(7), actions)
    evil = client.post(
        "/api/v1/profile", json={"pid": 7}, headers={HEADER: TOKEN, "Origin": "http://evil"}
    )
    assert evil.status_code == 403


def test_a_recorded_job_cannot_be_sampled(actions: Actions) -> None:
    assert ask(client_of(state_of(7, recorded=True), actions), pid=7).status_code == 409


def test_a_rank_that_has_gone_is_told_as_such(actions: Actions) -> None:
    needs_pyspy()
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    response = ask(client_of(state_of(process.pid), actions), pid=process.pid, seconds=1)
    assert response.status_code == 502
    assert str(process.pid) in response.json()["detail"]


@pytest.mark.parametrize("which", ["given up", "ended"])
def test_sampling_ends_when_nobody_waits_or_the_exporter_ends(job: int, which: str) -> None:
    needs_pyspy()
    events = {"given up": threading.Event(), "ended": threading.Event()}
    threading.Timer(0.5, events[which].set).start()
    began = time.monotonic()
    with pytest.raises(flame.GivenUpError):
        flame.take(job, 60, events["given up"], events["ended"])
    assert time.monotonic() - began < 30


def test_a_bad_token_file_is_refused_before_anything_is_served(tmp_path: Path) -> None:
    path = tmp_path / "token"
    status, log = refused("--web.listen-address", "127.0.0.1:0", "--web.token-file", path)
    assert status == 2 and "cannot be read" in log
    path.write_text("short")
    status, log = refused("--web.listen-address", "127.0.0.1:0", "--web.token-file", path)
    assert status == 2 and "openssl rand" in log


def test_an_answer_is_bounded_and_keeps_what_is_frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flame, "MOST_BYTES", 12)
    assert flame._bounded(b"a 1\nbb 20\nc 3\n") == b"bb 20\nc 3\n"


def test_no_room_for_stacks_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flame.tempfile, "tempdir", "/proc")
    with pytest.raises(RefusedError, match="remedy: room and rights in /proc"):
        flame.take(7, 1, threading.Event(), threading.Event())


def test_a_profile_error_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> int:
        raise flame.ProfileError("py-spy is missing; remedy: install it")

    monkeypatch.setattr(flame, "profile", fails)
    with pytest.raises(RefusedError, match="remedy"):
        flame.take(7, 1, threading.Event(), threading.Event())
