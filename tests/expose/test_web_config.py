"""``--web.config.file``: what it may say, and a message that names the key for what it may not."""

from __future__ import annotations

import base64
import os
import shutil
import ssl
import time
from pathlib import Path

import bcrypt
import pytest

from gpuwhy.expose import auth
from gpuwhy.expose.auth import Authenticator, Web, credentials
from gpuwhy.expose.web_config import WebConfig, WebConfigError, load

FIXTURES = Path(__file__).parent / "fixtures"
HASH = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
TLS = "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"


def write(folder: Path, text: str) -> Path:
    for name in ("cert.pem", "key.pem"):
        shutil.copy(FIXTURES / name, folder / name)
    file = folder / "web.yml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_whole_form_is_understood(tmp_path: Path) -> None:
    text = f"""
tls_server_config:
  cert_file: cert.pem
  key_file: key.pem
  client_ca_file: cert.pem
  client_auth_type: RequireAndVerifyClientCert
  min_version: TLS13
http_server_config:
  http2: false
  headers:
    Strict-Transport-Security: max-age=31536000
basic_auth_users:
  ada: {HASH}
"""
    config = load(write(tmp_path, text))
    assert config.tls is not None
    assert config.tls.cert_file == tmp_path / "cert.pem"
    assert config.tls.client_auth is ssl.CERT_REQUIRED
    assert config.tls.min_version is ssl.TLSVersion.TLSv1_3
    assert config.users == {"ada": HASH.encode()}
    assert config.headers == {"Strict-Transport-Security": "max-age=31536000"}


@pytest.mark.parametrize("text", ["", "---\n", "{}", "basic_auth_users:\n"])
def test_an_empty_file_asks_for_nothing(tmp_path: Path, text: str) -> None:
    assert load(write(tmp_path, text)) == WebConfig()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("tls_server_config: {cert_file: cert.pem}", "tls_server_config.key_file"),
        ("tls_server_config: [1]", "tls_server_config"),
        ("tls_server_config: {cert_file: no.pem, key_file: key.pem}", "cert_file"),
        ("tls_server_config: {cert_file: cert.pem, key_file: no.pem}", "key_file"),
        ("tls_server_config: {cert_file: web.yml, key_file: key.pem}", "cert_file"),
        (TLS[:-2] + ", client_auth_type: RequireAnyClientCert}", "client_auth_type"),
        (TLS[:-2] + ", client_auth_type: RequireAndVerifyClientCert}", "client_ca_file"),
        (TLS[:-2] + ", client_ca_file: key.pem}", "client_ca_file"),
        (TLS[:-2] + ", min_version: TLS10}", "min_version"),
        (TLS[:-2] + ", cipher_suites: [X]}", "tls_server_config.cipher_suites"),
        ("basic_auth_users: {ada: secret}", "basic_auth_users.ada"),
        ("basic_auth_users: {ada: }", "basic_auth_users.ada"),
        ("basic_auth_users: ada", "basic_auth_users"),
        ("http_server_config: {headers: {Server: x}}", "http_server_config.headers.Server"),
        ('http_server_config: {headers: {X-Frame-Options: "a\\nb"}}', "X-Frame-Options"),
        ("rate_limit: {interval: 1s}", "rate_limit"),
        ("tls_server_conf: {}", "tls_server_conf"),
        ("- 1", "the file"),
        ("a: [", "YAML"),
        ("a: &a [*a]", "is not supported"),
    ],
)
def test_a_bad_file_is_refused_by_the_name_of_the_key(
    tmp_path: Path, text: str, named: str
) -> None:
    with pytest.raises(WebConfigError) as error:
        load(write(tmp_path, text))
    assert named in str(error.value) and "web.yml" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(WebConfigError, match=r"none\.yml: cannot be read: No such file"):
        load(tmp_path / "none.yml")


def test_only_the_right_password_of_a_known_user_is_let_in() -> None:
    check = Authenticator({"ada": HASH.encode()})

    def header(text: str) -> str:
        return "Basic " + base64.b64encode(text.encode()).decode()

    assert check.allows(header("ada:secret"))
    assert check.allows(header("ada:secret")), "remembered"
    long = "ada:" + "x" * 99
    for wrong in ("ada:Secret", "ada:", "bob:secret", ":", "ada", "ada:secret\0", long):
        assert not check.allows(header(wrong)), wrong
        assert not check.allows(header(wrong)), wrong
    for header_text in (None, "", "Bearer x", "Basic", "Basic !!!", "basic " + "=" * 9):
        assert not check.allows(header_text)


def test_without_users_everybody_is_let_in() -> None:
    assert Authenticator({}).allows(None)


def test_credentials_keep_colons_of_the_password() -> None:
    assert credentials("Basic YTpiOmM=") == ("a", "b:c")


def test_wrong_passwords_in_plenty_are_bounded_and_push_nobody_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A scrape goes on while passwords are tried out, without another bcrypt."""
    monkeypatch.setattr(auth, "KEPT", 3)
    monkeypatch.setattr(auth, "WRONG_PAUSE_S", 0.001)
    check = Authenticator({"ada": HASH.encode()})

    def header(password: str) -> str:
        return "Basic " + base64.b64encode(f"ada:{password}".encode()).decode()

    assert check.allows(header("secret"))
    for n in range(8):
        assert not check.allows(header(f"wrong {n}"))
    assert len(check._wrong) == 3
    monkeypatch.setattr(auth.bcrypt, "checkpw", lambda *_: pytest.fail("checked again"))
    assert check.allows(header("secret"))
    assert not check.allows(header("wrong 7"))


def test_a_slot_rests_after_a_wrong_password() -> None:
    check = Authenticator({"ada": HASH.encode()})
    began = time.monotonic()
    assert not check.allows("Basic YWRhOm5v")
    assert time.monotonic() - began >= auth.WRONG_PAUSE_S


def touch(file: Path, text: str) -> None:
    before = file.stat().st_mtime_ns
    file.write_text(text, encoding="utf-8")
    os.utime(file, ns=(before + 10**9, before + 10**9))


def test_users_are_read_again_when_the_file_changes(tmp_path: Path) -> None:
    file = write(tmp_path, "")
    web = Web(file)
    assert web.authenticator.allows(None)
    touch(file, f"basic_auth_users: {{ada: {HASH}}}")
    web.refresh()
    assert not web.authenticator.allows(None)


def test_a_file_that_became_invalid_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write(tmp_path, f"basic_auth_users: {{ada: {HASH}}}")
    web = Web(file)
    touch(file, "basic_auth_users: {ada: clear}")
    web.refresh()
    web.refresh()
    assert not web.authenticator.allows(None), "an open door would be the wrong way to fail"
    assert [record.message for record in caplog.records] == ["web configuration not taken over"]
    touch(file, TLS)
    web.refresh()
    assert web.context is None
    assert "restart" in str(caplog.records[-1].__dict__["reason"])
