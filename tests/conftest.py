"""What all tests share: an environment without settings of the developer's own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest


def pytest_configure() -> None:
    """Ctrl-C works in the tests and what they start: `pytest &` in a script has it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUWHY_... and colour settings of the shell that runs the tests decide nothing."""
    for name in list(os.environ):
        if name.startswith("GPUWHY_") or name in ("NO_COLOR", "COLUMNS"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of the recorded jobs."""
    return Path(__file__).parent / "recordings"
