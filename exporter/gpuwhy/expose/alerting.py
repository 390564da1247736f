"""``gpuwhy alerting render``: Alertmanager's configuration from a small settings file.

    # everything is optional; without a receiver notifications are shown on gpuwhy's page
    page: http://exporter:9877/api/v1/notifications
    repeat: 12h
    receivers:
      - slack: {channel: "#gpus", url_file: /run/secrets/slack}
      - email:
          to: [ml-platform@example.org]
          from: gpuwhy@example.org
          smarthost: smtp.example.org:587
          username: gpuwhy
          password_file: /run/secrets/smtp
        severities: [critical]
      - webhook: {url: http://pager.internal:8080/hook}
      - wecom: {corp_id: ww00, agent_id: "1000002", secret_file: /run/secrets/wecom}

The kinds are in ``alerting_receivers``. Secrets are named as files, never written here. Routing,
grouping and inhibition are the same for everybody: one notification for a run, the specific before
the general.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpuwhy import values
from gpuwhy.expose.alerting_receivers import KINDS, ReceiverError

SEVERITIES = ("critical", "warning", "info")
SENT = ("critical", "warning")
"""Where a receiver names none: info is context, and is not worth a message."""
PAGE = "http://exporter:9877/api/v1/notifications"
"""The exporter as the compose file names it."""
REPEAT = "12h"
TEMPLATES = "templates/*.tmpl"
"""Beside the configuration."""

GROUPING: Mapping[str, Any] = {
    "group_by": ["run", "instance"],
    "group_wait": "30s",
    "group_interval": "5m",
}
"""Alerts of a run have no ``instance``, those of a host or GPU have: either way one message."""

INHIBITION: Sequence[Mapping[str, Any]] = (
    {  # the same loss, at its worst severity only
        "source_matchers": ['severity="critical"'],
        "target_matchers": ['severity=~"warning|info"'],
        "equal": ["alertname", "run", "instance", "uuid"],
    },
    {
        "source_matchers": ['severity="warning"'],
        "target_matchers": ['severity="info"'],
        "equal": ["alertname", "run", "instance", "uuid"],
    },
    {  # what is wrong before what it looks like
        "source_matchers": ['cause!=""', 'severity=~"critical|warning"'],
        "target_matchers": ['scope="general"'],
        "equal": ["run"],
    },
    {  # a job that stands still waits in a collective, and does so in step
        "source_matchers": ['alertname="TrainingStalled"'],
        "target_matchers": ['alertname!="TrainingStalled"', 'cause!=""'],
        "equal": ["run"],
    },
    {
        "source_matchers": ['alertname="GPUSawtoothInLockstep"'],
        "target_matchers": ['alertname="GPUSawtooth"'],
        "equal": ["run"],
    },
    {  # nobody can be judged on a host that says nothing
        "source_matchers": ['alertname="GpuwhyDown"'],
        "target_matchers": ['alertname=~"Gpuwhy.+|GPUSourceMissing"', 'alertname!="GpuwhyDown"'],
        "equal": ["host"],
    },
    {  # one that is down has delivered nothing either
        "source_matchers": ['alertname="AlertmanagerDown"'],
        "target_matchers": ['alertname="NotificationsFailing"'],
        "equal": ["instance"],
    },
)

HEAD = "# Made by `gpuwhy alerting render`: change its settings file and make it again.\n"


class AlertingError(Exception):
    """The settings cannot be used; the message names the file and the key."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """Somebody to be told: Alertmanager's receiver, and for which severities."""

    name: str
    config: Mapping[str, Any]
    severities: Sequence[str]


@dataclass(frozen=True, slots=True)
class Alerting:
    """The settings file, read."""

    page: str = PAGE
    repeat: str = REPEAT
    receivers: Sequence[Receiver] = ()


def read(path: Path) -> Alerting:
    """The settings of a file. Raises AlertingError."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AlertingError(f"{path}: {error.strerror or error}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # 2026-99-99 is a ValueError
        raise AlertingError(f"{path}: no YAML: {' '.join(str(error).split())}") from error
    try:
        return parse({} if found is None else found)
    except (ReceiverError, ValueError) as error:
        raise AlertingError(f"{path}: {error}") from error


def parse(found: Any) -> Alerting:
    """The settings of a parsed file. Raises ValueError or ReceiverError, naming the key."""
    if not isinstance(found, dict):
        raise ValueError("keys and values are wanted: page, repeat, receivers")
    if any(
        "\ud800" <= letter <= "\udfff"
        for letter in json.dumps(found, ensure_ascii=False, default=str)
    ):
        raise ValueError("half a character (\\ud800 to \\udfff) cannot be written to a file")
    _only(found, ("page", "repeat", "receivers"), "")
    listed = found.get("receivers") or []
    if not isinstance(listed, list):
        raise ValueError("receivers: a list is wanted, each item begun with `- `")
    repeat = str(found.get("repeat", REPEAT))
    try:
        values.duration(60, 30 * 86400)(repeat)
    except ValueError as error:
        raise ValueError(f"repeat: {error}") from error
    return Alerting(
        str(found.get("page", PAGE)),
        repeat,
        [_receiver(item, number) for number, item in enumerate(listed, 1)],
    )


def _receiver(item: Any, number: int) -> Receiver:
    where = f"receivers[{number}]"
    if not isinstance(item, dict):
        raise ValueError(f"{where}: one of {', '.join(KINDS)} is wanted")
    _only(item, (*KINDS, "severities"), f"{where}: ")
    kinds = [kind for kind in item if kind in KINDS]
    if len(kinds) != 1:
        raise ValueError(f"{where}: exactly one of {', '.join(KINDS)} is wanted")
    kind = kinds[0]
    severities = item.get("severities", list(SENT))
    known = isinstance(severities, list) and all(each in SEVERITIES for each in severities)
    if not known or not severities:
        raise ValueError(f"{where}: severities: a list of {', '.join(SEVERITIES)} is wanted")
    return Receiver(f"{kind}-{number}", KINDS[kind](item[kind], f"{where}: {kind}"), severities)


def _only(found: Mapping[Any, Any], known: Sequence[str], where: str) -> None:
    for key in found:
        if key not in known:
            raise ValueError(f"{where}unknown key {key!r}; known: {', '.join(known)}")


def render(alerting: Alerting) -> str:
    """Alertmanager's configuration."""
    config = {
        "route": {
            "receiver": "page",
            **GROUPING,
            "repeat_interval": alerting.repeat,
            "routes": _routes(alerting),
        },
        "inhibit_rules": list(INHIBITION),
        "templates": [TEMPLATES],
        "receivers": [
            {"name": "none"},
            {"name": "page", "webhook_configs": [{"url": alerting.page}]},
            *({"name": each.name, **each.config} for each in alerting.receivers),
        ],
    }
    return HEAD + str(yaml.safe_dump(config, sort_keys=False, width=100, allow_unicode=True))


def _routes(alerting: Alerting) -> list[dict[str, Any]]:
    """Information goes nowhere; each receiver takes its severities; the rest is for the page, and
    so is the word that receivers fail, or that Alertmanager did: it may be theirs that cannot be
    delivered."""
    routes: list[dict[str, Any]] = [{"receiver": "none", "matchers": ['severity="none"']}]
    if alerting.receivers:
        failing = 'alertname=~"NotificationsFailing|AlertmanagerDown"'
        routes.append({"receiver": "page", "matchers": [failing], "continue": True})
    for each in alerting.receivers:
        chosen = "|".join(each.severities)
        route = {"receiver": each.name, "matchers": [f'severity=~"{chosen}"'], "continue": True}
        routes.append(route)
    if alerting.receivers:
        sent = "|".join(sorted({s for each in alerting.receivers for s in each.severities}))
        routes.append({"receiver": "none", "matchers": [f'severity=~"{sent}"']})
    return routes


def main(arguments: Sequence[str]) -> int:
    """The command; its exit status: 0 rendered, 1 it cannot be written, 2 bad settings."""
    parsed = _parser().parse_args(arguments)
    try:
        alerting = read(parsed.settings) if parsed.settings else Alerting()
        text = render(alerting)
    except AlertingError as error:
        return _fail(str(error), 2)
    if not alerting.receivers:
        _warn("no receiver is set: notifications are shown on gpuwhy's page and in its log only")
    if parsed.output is None:
        sys.stdout.write(text)
        return 0
    try:
        _replace(parsed.output, text)
    except OSError as error:
        return _fail(f"{parsed.output}: {error.strerror or error}", 1)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpuwhy alerting",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    render_parser = actions.add_parser(
        "render", help="print Alertmanager's configuration", allow_abbrev=False
    )
    render_parser.add_argument(
        "settings",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="the settings file (none: no receiver)",
    )
    render_parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write there instead of to standard output"
    )
    return parser


def _replace(path: Path, text: str) -> None:
    """Whole or not at all: Alertmanager may read it at any moment."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        file.write(text)
    made = Path(file.name)
    made.chmod(0o644)
    made.replace(path)


def _warn(message: str) -> None:
    sys.stderr.write(f"gpuwhy alerting: {message}\n")


def _fail(message: str, status: int) -> int:
    _warn(message)
    return status
