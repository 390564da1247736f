"""Golden expositions of recordings. ``UPDATE_GOLDEN=1`` writes them again: look at the difference.

Values are rounded to four digits, and to 1e-9 (Python sums floats otherwise from 3.12 on); what
depends on the machine that runs the tests is left out.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.expose.samples import replay

from gpuwhy.expose import exposition

GOLDEN = Path(__file__).parent / "golden"
OF_THE_MACHINE = re.compile(
    r"^(process_|gpuwhy_scrape_family_duration|gpuwhy_build_info|gpuwhy_series_limit)"
)


def normalised(text: str) -> str:
    """Sorted samples with rounded values."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#") and not OF_THE_MACHINE.match(line):
            series, _, value = line.rpartition(" ")
            lines.append(f"{series} {float(value) if abs(float(value)) >= 1e-9 else 0.0:.4g}")
    return "\n".join(sorted(lines)) + "\n"


@pytest.mark.parametrize("name", ["data_slow", "ddp_straggler", "shared_victim", "cpu_quota"])
def test_golden(name: str) -> None:
    body, _, _ = exposition.render(replay(name).view(), "")
    found, file = normalised(body.decode()), GOLDEN / f"{name}.prom"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8"), (
        "the exposition has changed: look at it, then UPDATE_GOLDEN=1"
    )
