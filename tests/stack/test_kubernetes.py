"""The Kubernetes examples: valid, and with the rights of the compose file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from alerting.source import build

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/kubernetes"
VERSIONS = ("1.30", "1.37")
"""From the one that brought `appArmorProfile` to the newest that the validator knows."""


def document(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / f"{name}.yaml").read_text()))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["daemonset", "service"])
def test_against_the_api_s_schemas(name: str, version: str) -> None:
    kubernetes_validate.validate(document(name), version, strict=True)


def test_a_key_that_the_api_does_not_know_is_refused() -> None:
    """The check itself: what is misspelt must not pass."""
    misspelt = document("daemonset")
    misspelt["spec"]["template"]["spec"]["hostPid"] = True
    with pytest.raises(kubernetes_validate.ValidationError, match="hostPid"):
        kubernetes_validate.validate(misspelt, VERSIONS[0], strict=True)


@pytest.fixture
def of_the_operator() -> jsonschema.Draft202012Validator:
    """The schema of a ServiceMonitor; keys that it does not name are refused."""
    schema = json.loads((Path(__file__).parent / "vendor/servicemonitor.schema.json").read_text())
    for one in (schema, *schema["$defs"].values()):
        if "properties" in one:
            one["additionalProperties"] = False
    return jsonschema.Draft202012Validator(schema)


def test_the_service_monitor(of_the_operator: jsonschema.Draft202012Validator) -> None:
    assert list(of_the_operator.iter_errors(document("servicemonitor"))) == []


@pytest.mark.parametrize(
    ("key", "value"), [("scrapetimeout", "4s"), ("interval", "5 s"), ("relabelings", [{"to": "x"}])]
)
def test_what_the_operator_would_not_take(
    of_the_operator: jsonschema.Draft202012Validator, key: str, value: object
) -> None:
    monitor = document("servicemonitor")
    monitor["spec"]["endpoints"][0][key] = value
    assert list(of_the_operator.iter_errors(monitor))


def test_they_fit_together() -> None:
    daemonset, service = document("daemonset"), document("service")
    template = daemonset["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert daemonset["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in [p["name"] for p in container["ports"]]
    (endpoint,) = document("servicemonitor")["spec"]["endpoints"]
    assert endpoint["port"] == port["name"]


def test_the_job_is_the_one_that_the_rules_speak_of() -> None:
    monitor, service = document("servicemonitor"), document("service")
    job = service["metadata"]["labels"][monitor["spec"]["jobLabel"]]
    rules = "".join(build.files(build.thresholds.load()).values())
    assert f'up{{job="{job}"}}' in rules


def test_the_rights_are_those_of_the_compose_file() -> None:
    (container,) = document("daemonset")["spec"]["template"]["spec"]["containers"]
    exporter = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["exporter"]
    rights = container["securityContext"]
    assert rights["capabilities"]["drop"] == ["ALL"]
    assert rights["capabilities"]["add"] == exporter["cap_add"]
    assert rights["allowPrivilegeEscalation"] is False
    assert rights["readOnlyRootFilesystem"] is True
    assert container["args"] == exporter["command"][:3]
