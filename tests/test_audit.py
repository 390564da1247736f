"""The audit of dependencies: what is not known is not called clean."""

from __future__ import annotations

from typing import Any

import pytest
from scripts.audit import CLEAN, LOCKS, NOT_AUDITED, WEAK, verdict

Report = dict[str, Any]


def report(*vulns: str, skipped: bool = False) -> Report:
    weak = [{"id": name, "fix_versions": ["3.0"]} for name in vulns]
    package = {"name": "a", "version": "1.0", "vulns": weak}
    return {"dependencies": [{"name": "a", "skip_reason": "not found"} if skipped else package]}


KNOWN = report("CVE-1")


@pytest.mark.parametrize(
    ("known_weak", "lock", "status", "said"),
    [
        (KNOWN, report(), CLEAN, "no weakness known"),
        (KNOWN, report("CVE-2"), WEAK, "a 1.0: CVE-2, mended in 3.0"),
        (report(), report(), NOT_AUDITED, "NOT audited"),
        (None, None, NOT_AUDITED, "NOT audited"),
        (KNOWN, None, NOT_AUDITED, "requirements.lock"),
        (KNOWN, report(skipped=True), NOT_AUDITED, "requirements.lock"),
        (report(), report("CVE-2"), WEAK, "CVE-2"),
    ],
)
def test_verdict(known_weak: Report | None, lock: Report | None, status: int, said: str) -> None:
    found, sentence = verdict(known_weak, dict.fromkeys(LOCKS, lock))
    assert found == status
    assert said in sentence
