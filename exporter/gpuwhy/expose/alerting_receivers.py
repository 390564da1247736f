"""The kinds of receivers of ``gpuwhy alerting render``: each makes a receiver of Alertmanager's.

A secret (a password, a token, an address that holds one) is only ever the name of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

SUBJECT = '{{ template "gpuwhy.subject" . }}'
TEXT = '{{ template "gpuwhy.text" . }}'
MARKDOWN = '{{ template "gpuwhy.markdown" . }}'

Config = dict[str, Any]
Kind = Callable[[Any, str], Config]


class ReceiverError(Exception):
    """A receiver cannot be made; the message names its keys."""


def email(found: Any, where: str) -> Config:
    """Mail by SMTP, with TLS unless `require_tls: false` (a relay on this host)."""
    optional = ("username", "password_file", "require_tls")
    keys = _keys(found, where, ("to", "from", "smarthost"), optional)
    require_tls = keys.get("require_tls", True)
    if not isinstance(require_tls, bool):
        raise ReceiverError(f"{where}: require_tls must be true or false")
    to = keys["to"] if isinstance(keys["to"], list) else [keys["to"]]
    config: Config = {
        "to": ", ".join(str(address) for address in to),
        "from": keys["from"],
        "smarthost": keys["smarthost"],
        "require_tls": require_tls,
        "headers": {"Subject": SUBJECT},
        "text": TEXT,
        "html": '{{ template "gpuwhy.html" . }}',
        "send_resolved": True,
    }
    if "username" in keys:
        config["auth_username"] = keys["username"]
        config["auth_password_file"] = _file(keys, "password_file", where)
    return {"email_configs": [config]}


def slack(found: Any, where: str) -> Config:
    """Slack, by an incoming webhook whose address is a secret."""
    keys = _keys(found, where, ("channel", "url_file"))
    return {
        "slack_configs": [
            {
                "api_url_file": _file(keys, "url_file", where),
                "channel": keys["channel"],
                "title": SUBJECT,
                "title_link": "{{ (index .Alerts 0).Annotations.dashboard_url }}",
                "text": '{{ template "gpuwhy.slack" . }}',
                "color": '{{ if eq .Status "firing" }}danger{{ else }}good{{ end }}',
                "send_resolved": True,
            }
        ]
    }


def webhook(found: Any, where: str) -> Config:
    """Alertmanager's own JSON, posted to an address."""
    keys = _keys(found, where, (), ("url", "url_file", "bearer_token_file"))
    if ("url" in keys) == ("url_file" in keys):
        raise ReceiverError(f"{where}: either url or url_file is wanted")
    config: Config = {"send_resolved": True}
    if "url_file" in keys:
        config["url_file"] = _file(keys, "url_file", where)
    else:
        config["url"] = _plain_url(keys["url"], where)
    if "bearer_token_file" in keys:
        token = _file(keys, "bearer_token_file", where)
        config["http_config"] = {"authorization": {"credentials_file": token}}
    return {"webhook_configs": [config]}


def wecom(found: Any, where: str) -> Config:
    """An application of WeCom (Enterprise WeChat)."""
    keys = _keys(
        found, where, ("corp_id", "agent_id", "secret_file"), ("to_user", "to_party", "api_url")
    )
    return {
        "wechat_configs": [
            {
                "api_secret_file": _file(keys, "secret_file", where),
                "corp_id": keys["corp_id"],
                "agent_id": str(keys["agent_id"]),
                "to_user": str(keys.get("to_user", "" if "to_party" in keys else "@all")),
                **({"to_party": str(keys["to_party"])} if "to_party" in keys else {}),
                **({"api_url": str(keys["api_url"])} if "api_url" in keys else {}),
                "message": TEXT,
                "send_resolved": True,
            }
        ]
    }


def wecom_robot(found: Any, where: str) -> Config:
    """A robot in a WeCom group."""
    return _robot(found, where, {"msgtype": "markdown", "markdown": {"content": MARKDOWN}})


def dingtalk(found: Any, where: str) -> Config:
    """A robot in a DingTalk group, secured by the keyword `gpuwhy`."""
    text = f"gpuwhy\n\n{MARKDOWN}"
    return _robot(
        found, where, {"msgtype": "markdown", "markdown": {"title": SUBJECT, "text": text}}
    )


def feishu(found: Any, where: str) -> Config:
    """A robot in a Feishu (Lark) group."""
    card = {
        "header": {"title": {"tag": "plain_text", "content": SUBJECT}},
        "elements": [{"tag": "markdown", "content": MARKDOWN}],
    }
    return _robot(found, where, {"msg_type": "interactive", "card": card})


KINDS: Mapping[str, Kind] = {
    "email": email,
    "slack": slack,
    "webhook": webhook,
    "wecom": wecom,
    "wecom_robot": wecom_robot,
    "dingtalk": dingtalk,
    "feishu": feishu,
}
"""By their names in the settings file."""


def _robot(found: Any, where: str, payload: Config) -> Config:
    """A group's robot: a webhook with a body of its own (`payload` of Alertmanager 0.33)."""
    keys = _keys(found, where, ("url_file",))
    url_file = _file(keys, "url_file", where)
    return {"webhook_configs": [{"url_file": url_file, "payload": payload, "send_resolved": True}]}


def _keys(
    found: Any, where: str, wanted: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise ReceiverError(f"{where}: keys and values are wanted: {', '.join(wanted + optional)}")
    for key in found:
        if f"{key}_file" in (*wanted, *optional) and key not in (*wanted, *optional):
            raise ReceiverError(
                f"{where}: {key} is a secret: put it into a file and name that with {key}_file"
            )
        if key not in (*wanted, *optional):
            raise ReceiverError(
                f"{where}: unknown key {key!r}; known: {', '.join((*wanted, *optional))}"
            )
    for key in wanted:
        if found.get(key) in (None, ""):
            raise ReceiverError(f"{where}: {key} is missing")
    return found


def _file(keys: Mapping[str, Any], key: str, where: str) -> str:
    """A path as Alertmanager will see it: it may run in a container, so it is not opened here."""
    path = keys.get(key)
    if not isinstance(path, str) or not path.startswith("/"):
        raise ReceiverError(f"{where}: {key} must be the full path of a file: {path!r}")
    return path


def _plain_url(url: Any, where: str) -> str:
    """An address without a secret in it."""
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ReceiverError(f"{where}: url must begin with http:// or https://: {url!r}")
    if parts.username or parts.password or parts.query:
        raise ReceiverError(
            f"{where}: url holds what may be a secret: put it into a file and name that with "
            "url_file"
        )
    return str(url)
