"""What README.md shows is what the program prints; UPDATE_GOLDEN=1 writes it anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from gpuwhy.cli import COMMANDS, main
from gpuwhy.evidence.words import CAUSE_WORDS

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
COMMAND = "gpuwhy diagnose --recording tests/recordings/data_slow.gpuwhy.gz"
SHOWN = re.compile(rf"```\n\$ {re.escape(COMMAND)}\n(.*?)```", re.DOTALL)


def test_the_verdict_shown_is_the_one_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(COMMAND.split()[1:]) == 0
    printed = capsys.readouterr().out
    text = README.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_GOLDEN"):
        text = SHOWN.sub(lambda _: f"```\n$ {COMMAND}\n{printed}```", text)
        README.write_text(text, encoding="utf-8")
    found = SHOWN.search(text)
    assert found is not None
    assert found[1] == printed, "UPDATE_GOLDEN=1 ./run test tests/test_readme.py"


def test_every_cause_and_command_is_told() -> None:
    text = README.read_text(encoding="utf-8")
    missing = [cause for cause in CAUSE_WORDS if f"`{cause}`" not in text]
    missing += [c.name for c in COMMANDS if f"`gpuwhy {c.name}" not in text]
    assert not missing


def test_links_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "docs/architecture.md"):
        page = ROOT / name
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{name}: {target}"
