"""What is wrong on this host, what is lost by it, and what mends it.

Every check runs on every host. Most look at files; those of the GPUs and of the jobs look at what
a short trial of the real observer saw, so they tell what gpuwhy itself will see.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from gpuwhy.doctor_checks import gpu, kernel, stack, stacks
from gpuwhy.doctor_checks.check import Check, Result, State, failed
from gpuwhy.doctor_checks.host import Host
from gpuwhy.evidence.terminal import Style, printable

log = logging.getLogger(__name__)

CHECKS: tuple[Check, ...] = (*gpu.CHECKS, *stacks.CHECKS, *kernel.CHECKS, *stack.CHECKS)

COLOUR = {"ok": "green", "degraded": "yellow", "failed": "red", "not-applicable": "dim"}

Findings = list[tuple[str, Result]]


def examine(host: Host, checks: Iterable[Check] = CHECKS) -> Findings:
    """Run every check, each by itself: one that breaks is a finding, the others go on."""
    return [(check.name, _look(check, host)) for check in checks]


def _look(check: Check, host: Host) -> Result:
    try:
        return check.look(host)
    except Exception as error:
        log.debug("check failed", exc_info=True, extra={"check": check.name})
        return failed(
            f"the check itself failed: {type(error).__name__}: {error}",
            "what this check would have told",
            "run it with --log.level debug and report the lines",
        )


def as_json(findings: Findings) -> dict[str, list[dict[str, str]]]:
    """The object of ``gpuwhy doctor --json``."""
    return {
        "checks": [
            {"name": name, "state": found.state, "lost": found.lost, "remedy": found.remedy}
            for name, found in findings
        ]
    }


def as_text(findings: Findings, style: Style) -> str:
    """What is wrong first, then what is well in one line each, then the count."""
    order: tuple[State, ...] = ("failed", "degraded", "ok", "not-applicable")
    lines: list[str] = []
    for name, result in sorted(findings, key=lambda finding: order.index(finding[1].state)):
        lines += _lines(name, result, style)
    counts = Counter(result.state for _, result in findings)
    lines += ["", ", ".join(f"{counts[state]} {state}" for state in order if counts[state])]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _lines(name: str, result: Result, style: Style) -> list[str]:
    state = style.paint(result.state, COLOUR[result.state])
    head = state + " " * (15 - len(result.state))
    if result.state in ("ok", "not-applicable"):
        return [f"{head}{name:<25}{printable(result.found)}"]
    texts = [("found", result.found), ("lost", result.lost), ("remedy", result.remedy)]
    lines = [f"{head}{style.paint(name, 'bold')}"]
    for label, text in texts:
        lines += style.column(label, printable(text), 15, 8) if text else []
    return lines


def status(findings: Sequence[tuple[str, Result]]) -> int:
    """1 if any check failed, else 0."""
    return int(any(result.state == "failed" for _, result in findings))
