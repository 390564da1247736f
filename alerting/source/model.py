"""What a rule is, and how rules are written as a file of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

SEVERITIES = ("critical", "warning", "info", "none")
"""critical wakes somebody, warning is a ticket, info is context, none is never sent."""


@dataclass(frozen=True)
class Record:
    """A recording rule: ``level:metric:operation``."""

    name: str
    expr: str


@dataclass(frozen=True)
class Alert:
    """An alerting rule. ``dashboard`` is the path below Grafana's URL, a template."""

    name: str
    expr: str
    severity: str
    summary: str  # under 60 characters when filled in
    description: str
    dashboard: str
    pending: str  # "for"
    keep_firing_for: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """Rules that are evaluated one after the other, every ``interval`` (Prometheus's own: "")."""

    name: str
    rules: Sequence[Record | Alert]
    interval: str = ""


def document(made_by: str, groups: Sequence[Group], links: Mapping[str, str]) -> str:
    """The text of a rule file."""
    head = f"# Made by `{made_by}`: do not edit. Numbers are in alerting/thresholds.yml.\n"
    content = {
        "groups": [
            {
                "name": group.name,
                **({"interval": group.interval} if group.interval else {}),
                "rules": [_rule(rule, links) for rule in group.rules],
            }
            for group in groups
        ]
    }
    return head + yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=10**6)


def _rule(rule: Record | Alert, links: Mapping[str, str]) -> dict[str, Any]:
    if isinstance(rule, Record):
        return {"record": rule.name, "expr": rule.expr}
    assert rule.severity in SEVERITIES, rule
    return {
        "alert": rule.name,
        "expr": rule.expr,
        "for": rule.pending,
        "keep_firing_for": rule.keep_firing_for,
        "labels": {"severity": rule.severity, **rule.labels},
        "annotations": {
            "summary": rule.summary,
            "description": rule.description.rstrip("\n"),
            "runbook_url": f"{links['runbooks']}/{rule.name}.md",
            "dashboard_url": links["grafana"] + rule.dashboard,
        },
    }


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, lists indented: as a person would write them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
