"""The stand-in driver, built once, and exporters that run on it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.faults.rig import PY_SPY, Rig
from tests.standin_nvml.standin import build


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.services)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None or not PY_SPY.exists():
        pytest.skip("no C compiler, or no py-spy beside this interpreter")
    return build(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def rig(driver: Path, tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """Starts exporters; each is ended, and its end looked at."""
    begun: list[Rig] = []

    def start(*arguments: object, **more: object) -> Rig:
        folder = tmp_path / str(len(begun))
        folder.mkdir()
        begun.append(Rig(folder, driver, *arguments, **more))  # type: ignore[arg-type]
        return begun[-1]

    yield start
    for one in begun:
        one.end()


@pytest.fixture(scope="module")
def shared(driver: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One exporter for the tests of a module, each of which leaves it healthy."""
    one = Rig(tmp_path_factory.mktemp("rig"), driver)
    yield one
    one.end()
