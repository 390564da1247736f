"""The doctor as a whole: every check runs, one that breaks stops no other, words and JSON agree."""

from __future__ import annotations

from pathlib import Path

from tests.doctor_checks.fixture import host

from gpuwhy import doctor
from gpuwhy.doctor_checks.check import Check, degraded, failed, not_applicable, ok
from gpuwhy.doctor_checks.host import Host
from gpuwhy.evidence.terminal import Style


def broken(_: Host) -> doctor.Result:
    raise RuntimeError("no\x1b")


CHECKS = (
    Check("well", lambda _: ok("580.1")),
    Check("none", lambda _: not_applicable("no GPU")),
    Check("partly", lambda _: degraded("half", "the other half", "get it")),
    Check("broken", broken),
    Check("not", lambda _: failed("nothing", "all", "start anew")),
)


def test_one_broken_check_is_a_finding_and_the_others_go_on() -> None:
    findings = doctor.examine(Host(), CHECKS)
    assert [(name, result.state) for name, result in findings] == [
        ("well", "ok"),
        ("none", "not-applicable"),
        ("partly", "degraded"),
        ("broken", "failed"),
        ("not", "failed"),
    ]
    assert "RuntimeError" in dict(findings)["broken"].found


def test_json_has_every_check_with_four_fields() -> None:
    made = doctor.as_json(doctor.examine(Host(), CHECKS))
    assert made["checks"][2] == {
        "name": "partly",
        "state": "degraded",
        "lost": "the other half",
        "remedy": "get it",
    }
    assert [set(check) for check in made["checks"]] == [{"name", "state", "lost", "remedy"}] * 5


def test_text_has_what_is_wrong_first_and_a_count() -> None:
    shown = doctor.as_text(doctor.examine(Host(), CHECKS), Style())
    places = [shown.index(f"{name} ") for name in ("failed", "degraded", "ok", "not-applicable")]
    assert places == sorted(places)
    assert "remedy  start anew" in shown
    assert shown.endswith("\n2 failed, 1 degraded, 1 ok, 1 not-applicable\n")
    assert "\x1b" not in shown


def test_the_exit_status_is_1_if_a_check_failed() -> None:
    assert doctor.status(doctor.examine(Host(), CHECKS)) == 1
    assert doctor.status(doctor.examine(Host(), CHECKS[:3])) == 0


def test_names_are_unique_and_a_healthy_host_has_no_complaint(tmp_path: Path) -> None:
    findings = doctor.examine(host(tmp_path))
    assert len({name for name, _ in findings}) == len(findings) >= 20
    assert doctor.status(findings) == 0
    assert {result.state for _, result in findings} == {"ok"}
