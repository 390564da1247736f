"""Notifications as the real Alertmanager renders and delivers them: grouping, inhibition, texts.

The texts are held in ``golden/``; UPDATE_GOLDEN=1 writes them anew.
"""

from __future__ import annotations

import email
import email.policy
import json
import os
import re
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.alerting.receivers import Mails, Posts, alertmanager, serving

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
TIME = re.compile(r"(\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(\.\d+)?Z?")
DEADLINE_S = 40

Labels = Mapping[str, str]


def now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


def alert(name: str, severity: str = "warning", ends: str = "", **labels: str) -> dict[str, Any]:
    return {
        "labels": {"alertname": name, "severity": severity, **labels},
        "annotations": {
            "summary": f"{labels.get('run', 'host')}: {name}, 48% of GPU time",
            "description": f"{name} <tokenize> at /job/train.py:24 & more.\nNext: mend it.",
            "runbook_url": f"https://example.org/runbooks/{name}.md",
            "dashboard_url": "http://localhost:3000/d/gpuwhy-why?var-run=a&from=1&to=now",
        },
        "startsAt": now(),  # an older one is not held back for its group
        **({"endsAt": ends} if ends else {}),
    }


def send(url: str, alerts: Sequence[Mapping[str, Any]]) -> None:
    request = urllib.request.Request(
        f"{url}/api/v2/alerts",
        json.dumps(alerts).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=10).close()


def until(condition: Callable[[], object], seconds: float = DEADLINE_S) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return bool(condition())


def data(**more: str) -> dict[str, Any]:
    return alert("GPUDataStarved", run="a", cause="data", **more)


def everything() -> list[dict[str, Any]]:
    return [
        data(),
        alert("GPUDataStarved", "info", run="a", cause="data"),
        alert("GPUSawtooth", run="a", scope="general"),
        alert("GPULossUnknown", run="a", scope="general"),
        alert("GPUSawtooth", run="b", scope="general"),
        alert("GPUSawtoothInLockstep", run="b", scope="general"),
        alert("TrainingStalled", "critical", run="c", cause="stalled"),
        alert("GPUWaitingInCollectives", run="c", cause="comm"),
        alert("GPUAtDefaultPowerLimit", "none", run="d", cause="throttle"),
        alert("GPUSawtooth", run="d", scope="general"),
        alert("GPUHostWork", run="e", cause="host"),
        alert("GPUCopyBound", run="e", cause="copy"),
        alert("GPUXidCritical", "critical", instance="x:9877", host="x", uuid="GPU-1"),
        alert("GPULinkDegraded", instance="x:9877", host="x", uuid="GPU-2"),
        alert("GpuwhyDown", "critical", instance="y:9877", host="y"),
        alert("GpuwhySourceMissing", instance="y:9877", host="y", source="stacks"),
        alert("AlertmanagerDown", "critical", instance="z:9093", host="z"),
        alert("NotificationsFailing", instance="z:9093", host="z", integration="slack"),
    ]


WANTED = {
    "a": {("GPUDataStarved", "warning")},
    "b": {("GPUSawtoothInLockstep", "warning")},
    "c": {("TrainingStalled", "critical")},
    "d": {("GPUSawtooth", "warning")},
    "e": {("GPUHostWork", "warning"), ("GPUCopyBound", "warning")},
    "x:9877": {("GPUXidCritical", "critical"), ("GPULinkDegraded", "warning")},
    "y:9877": {("GpuwhyDown", "critical")},
    "z:9093": {("AlertmanagerDown", "critical")},
}


def test_one_notification_for_a_run_and_the_specific_before_the_general(tmp_path: Path) -> None:
    posts = Posts()
    with serving(posts.server), alertmanager(tmp_path, {"page": f"{posts.url}/page"}) as url:
        send(url, everything())
        assert until(lambda: len(posts.to("/page")) >= len(WANTED))
        time.sleep(3)  # whatever else would come with them
    found: dict[str, list[set[tuple[str, str]]]] = {}
    for body in posts.to("/page"):
        subject = body["groupLabels"].get("run") or body["groupLabels"]["instance"]
        names = {(a["labels"]["alertname"], a["labels"]["severity"]) for a in body["alerts"]}
        found.setdefault(subject, []).append(names)
    assert found == {subject: [names] for subject, names in WANTED.items()}


def settings_of(posts: Posts, mails: Mails, folder: Path) -> dict[str, Any]:
    def file(name: str, text: str) -> str:
        path = folder / name
        path.write_text(text)
        return str(path)

    return {
        "receivers": [
            {"slack": {"channel": "#gpus", "url_file": file("slack", f"{posts.url}/slack")}},
            {
                "email": {
                    "to": "a@example.org",
                    "from": "gpuwhy@example.org",
                    "smarthost": mails.address,
                    "require_tls": False,
                }
            },
            {"webhook": {"url": f"{posts.url}/webhook"}},
            {
                "wecom": {
                    "corp_id": "ww00",
                    "agent_id": 1000002,
                    "secret_file": file("secret", "s"),
                    "api_url": f"{posts.url}/wecom/",
                }
            },
            {"wecom_robot": {"url_file": file("robot", f"{posts.url}/robot")}},
            {"dingtalk": {"url_file": file("dingtalk", f"{posts.url}/dingtalk")}},
            {"feishu": {"url_file": file("feishu", f"{posts.url}/feishu")}},
        ]
    }


PATHS = ("/slack", "/webhook", "/wecom/message/send", "/robot", "/dingtalk", "/feishu")


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each receiver got of two alerts of a recorded run, and of their end."""
    folder = tmp_path_factory.mktemp("alertmanager")
    posts, mails = Posts(), Mails()
    copies = alert("GPUCopyBound", run="a", cause="copy", recorded="true")
    firing = [data(recorded="true"), copies]
    with (
        serving(posts.server, mails.server),
        alertmanager(folder, settings_of(posts, mails, folder)) as url,
    ):
        send(url, firing)
        assert until(lambda: all(posts.to(path) for path in PATHS) and mails.kept), posts.kept
        send(url, [{**one, "endsAt": now()} for one in firing])
        assert until(lambda: all(len(posts.to(path)) > 1 for path in PATHS)), posts.kept
        assert until(lambda: len(mails.kept) > 1)
    texts = {path.strip("/").replace("/", "-"): readable(posts.to(path)[:2]) for path in PATHS}
    texts["email"] = "\n=====\n".join(mail_text(mail) for mail in mails.kept[:2])
    return {name: TIME.sub("TIME", text) for name, text in texts.items()}


def readable(bodies: Sequence[Any]) -> str:
    volatile = (
        "fingerprint",
        "generatorURL",
        "externalURL",
        "notification_reason",
        "groupKey",
        "receiver",
        "truncatedAlerts",
    )

    def steady(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: steady(v) for k, v in value.items() if k not in (*volatile, "ts", "endsAt")}
        return [steady(each) for each in value] if isinstance(value, list) else value

    return json.dumps([steady(body) for body in bodies], indent=1, ensure_ascii=False)


def mail_text(mail: bytes) -> str:
    message = email.message_from_bytes(mail, policy=email.policy.default)
    parts = [part.get_content().strip() for part in message.walk() if not part.is_multipart()]
    parts = [part.replace("\r\n", "\n") for part in parts]
    return "\n-----\n".join([f"Subject: {message['Subject']}", *parts])


NAMES = ("slack", "email", "webhook", "wecom-message-send", "robot", "dingtalk", "feishu")


@pytest.mark.parametrize("name", NAMES)
def test_texts(name: str, delivered: dict[str, str]) -> None:
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(delivered[name] + "\n")
    assert delivered[name] + "\n" == golden.read_text()


def test_what_every_text_holds(delivered: dict[str, str]) -> None:
    for name, text in delivered.items():
        for wanted in (
            "[recorded]",
            "48% of GPU time",
            "/job/train.py:24",
            "/GPUDataStarved.md",
        ):
            assert wanted in text or name == "webhook", (name, wanted)
        assert "esolved" in text, name
        assert "<no value>" not in text


def test_a_text_of_a_job_is_escaped_in_mail(delivered: dict[str, str]) -> None:
    html = delivered["email"].partition("<!doctype html>")[2]
    assert "&lt;tokenize&gt;" in html
    assert "<tokenize>" not in html.partition("=====")[0]


def test_robots_take_no_more_than_they_can(tmp_path: Path) -> None:
    """WeCom's robot refuses more than 4096 bytes."""
    posts = Posts()
    address = tmp_path / "robot"
    address.write_text(f"{posts.url}/robot")
    many = [
        alert("GPULinkDegraded", instance="x:9877", host="x", uuid=f"GPU-{i}") for i in range(64)
    ]
    settings = {"receivers": [{"wecom_robot": {"url_file": str(address)}}]}
    with serving(posts.server), alertmanager(tmp_path / "am", settings) as url:
        send(url, many)
        assert until(lambda: posts.to("/robot"))
    content = posts.to("/robot")[0]["markdown"]["content"]
    assert len(content.encode()) <= 4096


def test_a_broken_template_is_caught(tmp_path: Path) -> None:
    """Alertmanager drops such a notification or sends an empty one: only texts like these tell."""
    posts = Posts()
    address = tmp_path / "slack"
    address.write_text(f"{posts.url}/slack")
    settings = {"receivers": [{"slack": {"channel": "x", "url_file": str(address)}}]}

    def broken(text: str) -> str:
        return text.replace(".Annotations.summary", ".Annotations.summary.nothing")

    with serving(posts.server), alertmanager(tmp_path / "am", settings, broken) as url:
        send(url, [data()])
        until(lambda: posts.to("/slack"), 6)
    assert "GPUDataStarved" not in json.dumps(posts.kept)
