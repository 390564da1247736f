"""The Kubernetes examples: valid, and with the rights of the compose file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from alerting.source import build

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/kubernetes"
VERSION = "1.33"


def document(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / f"{name}.yaml").read_text()))


@pytest.mark.parametrize("name", ["daemonset", "service"])
def test_against_the_api_s_schemas(name: str) -> None:
    validator = pytest.importorskip(
        "kubernetes_validate", reason="the package kubernetes-validate has the schemas"
    )
    validator.validate(document(name), VERSION, strict=True)


def test_the_service_monitor() -> None:
    """Its schema is a custom resource's and comes with the operator: what it must have, by hand."""
    monitor = document("servicemonitor")
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    assert monitor["kind"] == "ServiceMonitor"
    spec = monitor["spec"]
    assert set(spec) <= {"selector", "endpoints", "jobLabel", "namespaceSelector"}
    (endpoint,) = spec["endpoints"]
    assert set(endpoint) <= {"port", "interval", "scrapeTimeout", "relabelings", "scheme"}
    for relabeling in endpoint["relabelings"]:
        assert set(relabeling) <= {"sourceLabels", "targetLabel", "regex", "replacement", "action"}


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
