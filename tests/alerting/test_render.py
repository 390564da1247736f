"""``gpuwhy alerting render``: what the settings file may say, and what becomes of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripts.stack import packages

from gpuwhy.expose import alerting
from gpuwhy.expose.alerting import main

ROOT = Path(__file__).parents[2]
EVERYBODY = """
page: http://127.0.0.1:9877/api/v1/notifications
repeat: 6h
receivers:
  - slack: {channel: "#gpus", url_file: /run/secrets/slack}
  - email:
      to: [a@example.org, b@example.org]
      from: gpuwhy@example.org
      smarthost: smtp.example.org:587
      username: gpuwhy
      password_file: /run/secrets/smtp
    severities: [critical]
  - webhook: {url: "http://pager.internal:8080/hook", bearer_token_file: /run/secrets/token}
  - wecom: {corp_id: ww00, agent_id: 1000002, secret_file: /run/secrets/wecom}
  - wecom_robot: {url_file: /run/secrets/robot}
  - dingtalk: {url_file: /run/secrets/robot}
  - feishu: {url_file: /run/secrets/robot}
    severities: [critical, warning, info]
"""


def rendered(tmp_path: Path, text: str) -> tuple[int, Path]:
    settings, output = tmp_path / "receivers.yml", tmp_path / "alertmanager.yml"
    settings.write_text(text)
    return main(["render", str(settings), "--output", str(output)]), output


def test_the_committed_configuration_is_that_of_no_receiver(tmp_path: Path) -> None:
    status, output = rendered(tmp_path, "")
    assert status == 0
    assert output.read_text() == (ROOT / "alerting/alertmanager.yml").read_text()


def test_without_a_receiver_it_warns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rendered(tmp_path, "repeat: 1h\n")
    assert "no receiver is set" in capsys.readouterr().err


def test_alertmanager_takes_everybody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, output = rendered(tmp_path, EVERYBODY)
    assert (status, capsys.readouterr().err) == (0, "")
    (tmp_path / "templates").symlink_to(ROOT / "alerting/templates")
    tool = packages.programs("amtool")["amtool"]
    done = subprocess.run([tool, "check-config", output], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_secrets_are_files_only(tmp_path: Path) -> None:
    _, output = rendered(tmp_path, EVERYBODY)
    text = output.read_text()
    for key in ("api_url:", "auth_password:", "api_secret:", "credentials:"):
        assert key not in text


def routes(tmp_path: Path, severity: str, *labels: str) -> list[str]:
    """Receivers that Alertmanager itself says an alert of this severity reaches."""
    _, output = rendered(tmp_path, EVERYBODY)
    tool = packages.programs("amtool")["amtool"]
    command = [tool, "config", "routes", "test", f"--config.file={output}"]
    command += [f"severity={severity}", *labels]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip().split(",")


def test_information_goes_nowhere(tmp_path: Path) -> None:
    assert routes(tmp_path, "none") == ["none"]


def test_severities_go_where_they_are_wanted(tmp_path: Path) -> None:
    assert set(routes(tmp_path, "critical")) >= {"slack-1", "email-2", "webhook-3", "feishu-7"}
    assert "email-2" not in routes(tmp_path, "warning")
    assert set(routes(tmp_path, "info")) == {"feishu-7", "none"}


def test_failing_receivers_are_told_to_the_page_too(tmp_path: Path) -> None:
    for name in ("NotificationsFailing", "AlertmanagerDown"):
        told = routes(tmp_path, "warning", f"alertname={name}")
        assert set(told) >= {"page", "slack-1", "webhook-3"}
    assert "page" not in routes(tmp_path, "warning", "alertname=GPUDataStarved")


BAD: tuple[tuple[str, str], ...] = (
    ("receivers: [", "no YAML"),
    ("just text", "keys and values"),
    ("receiver: []", "unknown key 'receiver'"),
    ("repeat: often", "repeat"),
    ("receivers: {slack: x}", "a list is wanted"),
    ("receivers: [{}]", "receivers[1]: exactly one of"),
    ("receivers: [{pager: {}}]", "receivers[1]: unknown key 'pager'"),
    ("receivers: [{slack: {channel: x, url_file: /a}, webhook: {url: 'http://a'}}]", "exactly one"),
    ("receivers: [{slack: {channel: x}}]", "receivers[1]: slack: url_file is missing"),
    ("receivers: [{slack: {channel: x, url: 'https://hooks/T/B/x'}}]", "url is a secret"),
    ("receivers: [{slack: {channel: x, url_file: slack}}]", "must be the full path"),
    ("receivers: [{slack: text}]", "keys and values are wanted"),
    (
        "receivers: [{email: {to: a, from: b, smarthost: 'c:25', username: d, password: e}}]",
        "password is a secret",
    ),
    ("receivers: [{email: {to: a, from: b, smarthost: 'c:25', require_tls: 3}}]", "require_tls"),
    ("receivers: [{email: {to: a, from: b, smarthost: 'c:25', username: d}}]", "password_file"),
    ("receivers: [{webhook: {}}]", "either url or url_file"),
    ("receivers: [{webhook: {url: 'ftp://a'}}]", "http://"),
    ("receivers: [{webhook: {url: 'http://u:p@a/'}}]", "may be a secret"),
    ("receivers: [{webhook: {url: 'http://a/?key=1'}}]", "may be a secret"),
    ("receivers: [{wecom: {corp_id: a, agent_id: 1, secret: x}}]", "secret is a secret"),
    ("receivers: [{feishu: {url_file: /a}, severities: [bad]}]", "severities"),
)


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_settings_are_named(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, output = rendered(tmp_path, text)
    told = capsys.readouterr().err
    assert status == 2
    assert message in told
    assert "receivers.yml" in told
    assert not output.exists()


def test_a_missing_file_and_one_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", str(tmp_path / "nothing.yml")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["render", "--output", str(tmp_path / "no/where.yml")]) == 1


def test_inhibition_matches_the_labels_of_the_rules() -> None:
    """Names and labels that the configuration speaks of must exist in the rules."""
    rules: list[dict[str, Any]] = [
        rule
        for path in (ROOT / "alerting/rules").glob("*.yml")
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    ]
    names = {rule["alert"] for rule in rules}
    labels = {key for rule in rules for key in rule["labels"]} | {"alertname"}
    for rule in alerting.INHIBITION:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            label, _, value = matcher.replace("=~", "=").replace("!=", "=").partition("=")
            assert label in labels
            if label == "alertname" and ".+" not in value:
                assert value.strip('"') in names
