"""The page of options is the one that the code makes, and its example is a good file."""

from __future__ import annotations

import re
from pathlib import Path

from gpuwhy import settings_page
from gpuwhy.settings import load

ROOT = Path(__file__).parent.parent


def test_the_page_is_up_to_date() -> None:
    written = (ROOT / settings_page.PATH).read_text(encoding="utf-8")
    assert written == settings_page.page(), "python -m gpuwhy.settings_page --write"


def test_its_example_is_a_good_configuration(tmp_path: Path) -> None:
    example = re.search(r"```yaml\n(.*?)```", settings_page.page(), re.DOTALL)
    assert example is not None
    path = tmp_path / "gpuwhy.yml"
    path.write_text(example[1])
    assert load({}, {}, path).log_level == "warning"
