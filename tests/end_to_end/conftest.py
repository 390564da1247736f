"""The stack as plain processes, for the tests that start it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.stack import packages
from tests.end_to_end.clones import Up, clone


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            judges = item.path.stem in ("test_live", "test_harmless")
            item.add_marker(pytest.mark.live if judges else pytest.mark.services)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    """A checkout of its own with free ports; what it starts is ended."""
    packages.programs("prometheus", "alertmanager")
    found = Up(clone(tmp_path / "clone"))
    yield found
    found.run("down")
